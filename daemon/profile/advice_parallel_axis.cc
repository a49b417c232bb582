// On chips that drive two cores as one device, only an axis that is said to be parallel is split over them.
#include <algorithm>

#include "daemon/profile/advice.h"

namespace kernelwright::profile {

std::vector<Advice> AdviseParallelAxis(const KernelView& view) {
  if (view.call == nullptr || !view.chip.megacore || view.chip.cores_per_device < 2) return {};
  const PallasCall& call = *view.call;
  if (view.kernel.grid_steps < view.chip.cores_per_device) return {};
  const auto& semantics = call.dimension_semantics;
  if (std::find(semantics.begin(), semantics.end(), "parallel") != semantics.end()) return {};
  Advice advice = view.Make("parallel_axis", 1.0 - 1.0 / view.chip.cores_per_device, {});
  advice.title = "one of " + std::to_string(view.chip.cores_per_device) + " cores does all the work";
  advice.text = "No axis of the grid is said to be parallel, so " + view.chip.name +
                " does not split it over its cores. If the steps along an axis do not depend on each other, give "
                "dimension_semantics with \"parallel\" for it.";
  advice.evidence = {{"cores", view.chip.cores_per_device},
                     {"grid_steps", static_cast<double>(view.kernel.grid_steps)}};
  return {advice};
}

}  // namespace kernelwright::profile
