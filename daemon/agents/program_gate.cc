// G11 and the compiled half of G20; see program_gate.h. The rules themselves (tiles, VMEM) belong to daemon/cost.
#include "daemon/agents/program_gate.h"

#include <algorithm>
#include <set>

#include "daemon/agents/gate_list.h"
#include "daemon/cost/index_map.h"
#include "daemon/cost/vmem.h"

namespace kernelwright::agents {
namespace {

// Grid axes on which an index map's results depend, by following values from the grid ids through the graph.
std::set<size_t> AxesUsed(const Graph& index_map, size_t grid_rank) {
  std::map<uint32_t, std::set<size_t>> depends;
  for (size_t axis = 0; axis < std::min(grid_rank, index_map.inputs.size()); ++axis) {
    depends[index_map.inputs[axis].id] = {axis};
  }
  // A table given by scalar prefetch may hold any function of the grid: count it as using every axis that indexes it.
  for (const Operation& operation : index_map.operations) {
    std::set<size_t> joined;
    for (const Operand& input : operation.inputs) {
      if (!input.value) continue;
      const auto found = depends.find(*input.value);
      if (found != depends.end()) joined.insert(found->second.begin(), found->second.end());
    }
    for (const GraphValue& output : operation.outputs) depends[output.id] = joined;
  }
  std::set<size_t> used;
  for (const Operand& output : index_map.outputs) {
    if (!output.value) continue;
    const auto found = depends.find(*output.value);
    if (found != depends.end()) used.insert(found->second.begin(), found->second.end());
  }
  return used;
}

std::string CheckSemantics(const PallasCall& call) {
  if (call.dimension_semantics.empty()) return "";
  if (call.dimension_semantics.size() != call.grid.size()) {
    return call.name + ": " + std::to_string(call.dimension_semantics.size()) + " dimension_semantics for a grid of " +
           std::to_string(call.grid.size()) + " axes";
  }
  for (size_t axis = 0; axis < call.grid.size(); ++axis) {
    if (call.dimension_semantics[axis] != "parallel" || call.grid[axis] == 1) continue;
    for (const BlockMapping& block : call.blocks) {
      if (!block.is_output || !block.has_index_map) continue;
      if (!AxesUsed(block.index_map, call.grid.size()).contains(axis)) {
        return call.name + ": grid axis " + std::to_string(axis) + " is parallel, but output " + block.origin +
               " does not depend on it, so that its steps write the same block";
      }
    }
  }
  return "";
}

}  // namespace

GateResult CheckKernelCalls(const std::vector<const PallasCall*>& calls, const cost::Chip& chip) {
  for (const PallasCall* call : calls) {
    if (const std::string problem = CheckSemantics(*call); !problem.empty()) return FailGate("G11", problem);
    if (const Status legal = cost::CheckBlocks(*call, chip); !legal.ok()) return FailGate("G11", legal.ToString());
    const cost::VmemUse use = cost::ComputeVmem(*call, chip);
    if (const Status fits = cost::CheckVmem(use, chip); !fits.ok()) return FailGate("G11", fits.ToString());
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

}  // namespace kernelwright::agents
