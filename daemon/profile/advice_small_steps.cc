// The pipeline's own work (indices, semaphores, starting copies) is the same for a small step as for a large one.
#include <algorithm>

#include "daemon/profile/advice.h"

namespace kernelwright::profile {
namespace {
constexpr double kSmallStepUs = 1.5;
constexpr double kLeastOverhead = 0.3;
}  // namespace

std::vector<Advice> AdviseSmallSteps(const KernelView& view) {
  const KernelProfile& kernel = view.kernel;
  if (!kernel.is_pallas || !kernel.step || kernel.grid_steps < 16) return {};
  const Step& step = *kernel.step;
  const double step_us = step.cycles / (view.chip.clock_ghz.value * 1e3);
  const double scalar_cycles = step.busy_cycles * step.scalar_only_share;
  const double latency_cycles = step.bound == cost::Bound::kLatency ? step.wait_cycles : 0;
  const double overhead = (scalar_cycles + latency_cycles) / std::max(step.cycles, 1.0);
  if (step_us > kSmallStepUs || overhead < kLeastOverhead) return {};
  Advice advice = view.Make("small_steps", overhead, {});
  advice.title = "steps of " + Amount(step_us) + " µs are too small";
  advice.text = std::to_string(kernel.grid_steps) + " steps, each with " + Amount(scalar_cycles) +
                " cycles in which only the scalar unit works" +
                (latency_cycles > 0 ? " and " + Amount(latency_cycles) + " spent on the latency of copies" : "") +
                ", of " + Amount(step.cycles) +
                ". Larger blocks make fewer steps; the overhead of each stays the same.";
  advice.evidence = {{"grid_steps", static_cast<double>(kernel.grid_steps)},
                     {"step_us", step_us},
                     {"step_cycles", step.cycles},
                     {"scalar_only_cycles", scalar_cycles},
                     {"latency_cycles", latency_cycles}};
  return {advice};
}

}  // namespace kernelwright::profile
