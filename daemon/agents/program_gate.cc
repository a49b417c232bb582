// G11 and the compiled half of G20; see program_gate.h. The rules themselves (tiles, VMEM) belong to daemon/cost.
// Whether steps of a parallel axis write the same block is left to the interpreter's race detection: kernels that ship
// with jax keep outputs that nobody reads in one block under a parallel axis, and compile.
#include "daemon/agents/program_gate.h"

#include "daemon/agents/evaluator.h"
#include "daemon/agents/gate_list.h"
#include "daemon/base/units.h"
#include "daemon/cost/vmem.h"
#include "daemon/kernels/candidates.h"

namespace kernelwright::agents {
namespace {

std::string CheckSemantics(const PallasCall& call) {
  if (call.dimension_semantics.empty()) return "";
  if (call.dimension_semantics.size() != call.grid.size()) {
    return call.name + ": " + std::to_string(call.dimension_semantics.size()) + " dimension_semantics for a grid of " +
           std::to_string(call.grid.size()) + " axes";
  }
  return "";
}

}  // namespace

GateResult CheckKernelCalls(const std::vector<const PallasCall*>& calls, const cost::Chip& chip) {
  for (const PallasCall* call : calls) {
    if (const std::string problem = CheckSemantics(*call); !problem.empty()) return FailGate("G11", problem);
    if (const auto illegal = kernels::IllegalBlocks({*call})) return FailGate("G11", *illegal);
    const cost::VmemUse use = cost::ComputeVmem(*call, chip);
    if (use.limit_above_physical) {
      return FailGate("G11",
                      call->name + ": vmem_limit_bytes is above the " + FormatBytes(use.physical) + " of " + chip.name);
    }
    // The model counts what must be there; the compiler adds spills, and has the last word below the limit.
    if (use.total > use.physical) {
      return FailGate("G11", call->name + ": needs " + FormatBytes(use.total) + " of VMEM, " + chip.name + " has " +
                                 FormatBytes(use.physical));
    }
  }
  return Pass("G11");
}

GateResult CheckHlo(const HloContents& contents, bool claims_kernel, double reference_flops) {
  if (contents.host_callbacks > 0) {
    return FailGate("G20", "the compiled program calls the host " + std::to_string(contents.host_callbacks) + " times");
  }
  if (!claims_kernel) return Pass("G20");
  if (contents.kernels == 0) return FailGate("G20", "no kernel is left in the compiled program");
  if (reference_flops > 0 && contents.outside_flops > 0.1 * reference_flops) {
    return FailGate("G20", "products outside the kernels do " +
                               std::to_string(static_cast<int>(100 * contents.outside_flops / reference_flops)) +
                               " % of the reference's work; at most 10 % are allowed");
  }
  return Pass("G20");
}

GateResult CheckIdentity(const std::vector<FileText>& shown, const std::string& evaluated_sha256) {
  return ContentHash(shown) == evaluated_sha256 ? Pass("G22")
                                                : FailGate("G22", "the shown text is not the text that was evaluated");
}

GateResult CheckScheduleFloor(const cost::CostResult& cost, const cost::Work& work, const cost::Chip& chip) {
  if (const auto* refusal = std::get_if<cost::Refusal>(&cost)) return NotRun("G54", "no estimate: " + refusal->reason);
  const auto& estimate = std::get<cost::Estimate>(cost);
  if (!cost::BelowFloor(estimate.milliseconds, work, chip)) return Pass("G54");
  return FailGate("G54",
                  "the estimate is below the roofline floor of " + std::to_string(estimate.floor_milliseconds) + " ms");
}

}  // namespace kernelwright::agents
