// Walks over the program graph; see program.h.
#include "daemon/kernels/program.h"

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

}  // namespace

std::vector<const PallasCall*> FindPallasCalls(const Program& program) { return FindPallasCalls(program.main); }

std::vector<const PallasCall*> FindPallasCalls(const Graph& graph) {
  std::vector<const PallasCall*> calls;
  Collect(graph, calls);
  return calls;
}

}  // namespace kernelwright
