// Analytic time of a kernel before it is compiled, to rank block shapes: thousands of variants a second. Its numbers
// order candidates; a user is shown only what the compiler's schedule gives (program_estimate.h).
#pragma once

#include <map>
#include <string>

#include "daemon/cost/chips.h"
#include "daemon/cost/estimate.h"
#include "daemon/cost/kernel_work.h"
#include "daemon/kernels/program.h"

namespace kernelwright::cost {

// Estimate with method "analytic" and low confidence, or a refusal: a grid that is not fixed, an index map that reads
// prefetched scalars, an operand of unknown size. `call.grid`, blocks and scratch are those of the variant; the
// kernel's body may be the original's. Illegal blocks and VMEM are not looked at here (vmem.h).
CostResult RankEstimate(const PallasCall& call, const Chip& chip);

// Cycles of one grid step by unit, without copies.
struct StepCycles {
  double mxu = 0, vector = 0, transcendental = 0, lane = 0, load = 0, store = 0;
  double total = 0;  // largest, part of the others, and the fixed cost of a step
};
StepCycles EstimateStep(const StepWork& work, const Chip& chip);

}  // namespace kernelwright::cost
