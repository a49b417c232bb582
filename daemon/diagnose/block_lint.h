// What can be said about the blocks, the grid and the on-chip memory of a kernel from its traced form, in milliseconds
// and before any compile. It follows the compiler's own rules (daemon/cost/vmem.h); where the rules do not decide, it
// says nothing, and the compiler has the last word.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/cost/chips.h"
#include "daemon/diagnose/diagnostic.h"
#include "daemon/kernels/program.h"

namespace kernelwright::diagnose {

// D01, D02, D03 (block shapes), D13 (dimension_semantics), D14 (map beyond the array), D17 (grid too short), D22 (parts
// without a grid), D82 (SMEM), D83 (empty operand), D90, D91, D92 (VMEM: above the limit, above what the chip has,
// scratch alone), D93 (limit above the chip), D94 (buffers). `texts`: path -> text of the user's files, for the places.
// Kernel bodies are not needed. In the order of the calls.
std::vector<Diagnostic> LintBlocks(const std::vector<PallasCall>& calls,
                                   const std::map<std::string, std::string>& texts, const cost::Chip& chip);

}  // namespace kernelwright::diagnose
