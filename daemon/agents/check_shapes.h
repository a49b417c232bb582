// At which reduced shapes a candidate is checked: two blocks of its own on each grid axis and the same tails as at full
// size, dimensions that its blocks do not cut left whole; where the code rounds its grid up, tails as well. All shapes
// that candidates can need are proposed at the run's start and frozen with it.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "daemon/agents/frozen_reference.h"
#include "daemon/agents/toolchain.h"

namespace kernelwright::agents {

// Shapes proposed for kernels with these blocks, best first. `program` is the traced original, whose kernels are
// replaced by `calls` (it is changed; give it again for the next candidate).
std::vector<CheckShape> ProposeCheckShapes(const std::vector<kernels::InputSpec>& inputs, Program& program,
                                           const std::vector<PallasCall>& calls, bool with_tails);

// Adds the shapes that are not in the ladder yet.
void AddToLadder(const std::vector<CheckShape>& shapes, std::vector<CheckShape>& ladder);

struct ShapeChoice {
  std::vector<CheckShape> shapes;  // empty: no reduced check is possible
  std::string why_none;
};

// Traces the candidate's files at its proposed shapes, as far as they are in the frozen ladder, until one stands for
// the full size. `full`: its kernels at full size.
Expected<ShapeChoice> ChooseShapes(const FrozenReference& frozen, const std::vector<CheckShape>& proposed,
                                   const std::vector<FileText>& files, const std::vector<PallasCall>& full,
                                   const std::string& chip, Toolchain& toolchain, const Limits& limits,
                                   std::stop_token stop);

}  // namespace kernelwright::agents
