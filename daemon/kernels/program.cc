// Walks over the program graph; see program.h.
#include "daemon/kernels/program.h"

#include <algorithm>
#include <set>

namespace kernelwright {
namespace {

void Collect(const Graph& graph, std::vector<const PallasCall*>& calls) {
  for (const Operation& operation : graph.operations) {
    for (const PallasCall& call : operation.pallas) {
      calls.push_back(&call);
      Collect(call.kernel, calls);
    }
    for (const Graph& region : operation.regions) Collect(region, calls);
  }
}

std::set<uint32_t> UsedValues(const Graph& graph) {
  std::set<uint32_t> used;
  for (const Operation& operation : graph.operations) {
    for (const Operand& operand : operation.inputs) used.insert(operand.value.value_or(0));
  }
  for (const Operand& operand : graph.outputs) used.insert(operand.value.value_or(0));
  used.erase(0);  // what has no name
  return used;
}

}  // namespace

std::vector<const PallasCall*> FindPallasCalls(const Program& program) { return FindPallasCalls(program.main); }

std::vector<const PallasCall*> FindPallasCalls(const Graph& graph) {
  std::vector<const PallasCall*> calls;
  Collect(graph, calls);
  return calls;
}

bool HasUnreadResults(const Graph& graph) {
  const std::set<uint32_t> used = UsedValues(graph);
  return std::any_of(graph.operations.begin(), graph.operations.end(), [&](const Operation& operation) {
    const bool unread =
        !operation.pallas.empty() && std::any_of(operation.outputs.begin(), operation.outputs.end(),
                                                 [&](const GraphValue& value) { return !used.contains(value.id); });
    return unread || std::any_of(operation.regions.begin(), operation.regions.end(), HasUnreadResults);
  });
}

}  // namespace kernelwright
