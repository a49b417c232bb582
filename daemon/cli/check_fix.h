// Applies proven fixes of a check to the texts that they were made from, and writes them if the files still have these
// (invariant VersionedEdit).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/agents/check.h"
#include "daemon/base/status.h"

namespace kernelwright::cli {

using Texts = std::map<std::string, std::string>;  // path -> text

struct FixedTexts {
  Texts before;  // of the files that change
  Texts after;
  std::vector<std::string> titles;  // of the fixes in it
};

// The first proven fix of each diagnostic, as far as their edits go together; `most` limits their number. kConflict
// when a text is not the one that the fixes were made from.
Expected<FixedTexts> ApplyFixes(const std::vector<diagnose::Diagnostic>& diagnostics, const Texts& texts, size_t most);

// Writes all files or none. kConflict, with nothing written, when one has changed since.
Status WriteFixed(const FixedTexts& fixed);

}  // namespace kernelwright::cli
