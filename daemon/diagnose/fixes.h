// Edits that mend a diagnostic without asking what is meant. Each family of the catalogue has a small file of its own
// (fix_blocks.cc, fix_index_map.cc, …) that looks at the syntax tree around the diagnostic's place and, where it can,
// at the shapes and types of the trace. A proposal says the same thing mathematically; whether it compiles and passes
// the checks is for the caller to find out before it offers one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/cost/chips.h"
#include "daemon/diagnose/diagnostic.h"
#include "daemon/kernels/program.h"

namespace kernelwright::diagnose {

struct FixContext {
  const std::map<std::string, std::string>& texts;  // path -> text of the user's files
  const std::vector<PallasCall>& calls;             // kernels of the trace, in order; none when it failed early
  std::vector<const cost::Chip*> chips;             // asked for
};

// Alternatives, the smallest edit first; `verified` is empty. Nothing when no edit is certain: a diagnostic of another
// kind, code in a form that is not understood, a place outside `texts`.
std::vector<Fix> ProposeFixes(const Diagnostic& diagnostic, const FixContext& context);

}  // namespace kernelwright::diagnose
