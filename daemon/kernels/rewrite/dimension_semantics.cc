// On chips whose device drives two cores a grid axis that is "parallel" is split over both; without one, half the chip
// stands idle. An axis can be parallel when each of its steps stores blocks of its own and nothing is carried from one
// to the next.
#include <algorithm>

#include "daemon/cost/chips.h"
#include "daemon/diagnose/kernel_lint_refs.h"
#include "daemon/diagnose/kernel_lint_steps.h"
#include "daemon/kernels/index_map.h"
#include "daemon/kernels/rewrite/rule.h"

namespace kernelwright::rewrite {

void DimensionSemantics(const KernelView& view, Answer& answer) {
  if (view.call.grid.empty()) return;
  if (!view.request.chip.megacore) {
    answer.Refuse("a kernel runs on one core of " + view.request.chip.name + ", so that the semantics change nothing");
    return;
  }
  const auto& given = view.call.dimension_semantics;
  if (std::find(given.begin(), given.end(), "parallel") != given.end()) {
    answer.Refuse("an axis is parallel already");
    return;
  }
  const std::set<int> free = kernels::OutputAxes(view.call);
  const auto revisited = kernels::RevisitingAxes(view.call);
  if (!revisited) {
    answer.Refuse("the index map of an output is not computable");
    return;
  }
  std::vector<std::string> semantics(view.call.grid.size(), "arbitrary");
  std::vector<int> parallel;
  for (const int axis : free) {
    if (revisited->contains(axis)) continue;
    if (view.call.grid[static_cast<size_t>(axis)] < 2) continue;
    // Tried on the traced body: what is left in scratch by another step of the axis must not be read.
    PallasCall tried = view.call;
    tried.dimension_semantics = semantics;
    tried.dimension_semantics[static_cast<size_t>(axis)] = "parallel";
    const auto steps = diagnose::RunSteps(tried, diagnose::KernelRefs(tried));
    const bool carried = std::any_of(steps.findings.begin(), steps.findings.end(), [&](const auto& finding) {
      return finding.kind == diagnose::StepFinding::Kind::kCarried;
    });
    if (carried) {
      answer.Refuse("scratch is carried over the steps of grid axis " + std::to_string(axis));
      continue;
    }
    semantics[static_cast<size_t>(axis)] = "parallel";
    parallel.push_back(axis);
  }
  if (parallel.empty()) {
    answer.Refuse("every grid axis visits a block of an output again, or has one step");
    return;
  }
  auto edits = ParamsEdits(view, semantics, std::nullopt);
  if (edits.empty()) {
    answer.Refuse("compiler_params is not written in the call, or its semantics are not literals");
    return;
  }
  const int64_t steps = view.call.grid[static_cast<size_t>(parallel.front())];
  answer.Propose(
      view.launch.call,
      {"declare independent grid axes parallel",
       "One device of " + view.request.chip.name + " drives two cores, and only a parallel axis is split over them.",
       "graph: grid axis " + std::to_string(parallel.front()) + " has " + Count(steps) +
           " steps, each with output blocks of its own; no axis is declared parallel",
       steps % 2 == 0 ? 1.9 : 1.5, kernels::Exactness::kBitEqual},
      std::move(edits));
}

}  // namespace kernelwright::rewrite
