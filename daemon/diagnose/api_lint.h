// Names of jax and Pallas that the user's version no longer has, found in the source text before anything is imported:
// with the exact range of the name and the edit that mends it. Silent about names that still work, about names that it
// cannot trace to an import, and about code that asks which name there is.
#pragma once

#include <string_view>
#include <vector>

#include "daemon/diagnose/api_names.h"
#include "daemon/diagnose/diagnostic.h"
#include "daemon/kernels/syntax.h"

namespace kernelwright::diagnose {

// Diagnostics of stage kApi in source order, without chips: they hold for all. `jax_version`: "0.10.2".
std::vector<Diagnostic> LintApi(const kernels::SourceFile& file, const ApiNames& names, std::string_view jax_version);

}  // namespace kernelwright::diagnose
