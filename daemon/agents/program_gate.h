// The program gates that look at what was traced and compiled: G11 (kernel calls are legal for the chip) and the
// compiled half of G20 (what runs is a kernel, and no large product is left beside it), G22 (what is shown is what was
// evaluated) and G54 (no estimate beats the hardware).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/agents/toolchain.h"
#include "daemon/cost/chips.h"
#include "daemon/cost/estimate.h"

namespace kernelwright::agents {

// G11 over all kernels of a traced program: block legality and VMEM against the chip's limits, semantics that fit the
// grid.
GateResult CheckKernelCalls(const std::vector<const PallasCall*>& calls, const cost::Chip& chip);

// What optimised HLO text holds outside of kernels.
struct HloContents {
  int kernels = 0;           // custom calls to tpu_custom_call
  int host_callbacks = 0;    // custom calls and infeed/outfeed/send/recv that reach the host
  double outside_flops = 0;  // of dot and convolution instructions
};
HloContents ReadHlo(std::string_view text);

// G20, compiled half. `reference_flops`: of the algorithm, 0 when unknown.
GateResult CheckHlo(const HloContents& contents, bool claims_kernel, double reference_flops);

// G22. `shown`: the files as they are about to be shown; `evaluated_sha256`: ContentHash of what was evaluated.
GateResult CheckIdentity(const std::vector<FileText>& shown, const std::string& evaluated_sha256);

// G54. A refusal has no time, so the gate is not run.
GateResult CheckScheduleFloor(const cost::CostResult& cost, const cost::Work& work, const cost::Chip& chip);

}  // namespace kernelwright::agents
