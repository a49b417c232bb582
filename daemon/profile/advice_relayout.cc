// Data moved across lanes and sublanes: transposes, rotations, broadcasts; they share a few slow slots.
#include <algorithm>

#include "daemon/profile/advice.h"

namespace kernelwright::profile {
namespace {
constexpr double kLeastShare = 0.05;  // of the kernel's cycles
}

std::vector<Advice> AdviseRelayout(const KernelView& view) {
  const KernelProfile& kernel = view.kernel;
  if (kernel.relayouts <= 0 || kernel.cycles <= 0 || view.chip.xlu_slots <= 0) return {};
  const double cycles = kernel.relayouts / view.chip.xlu_slots;
  if (cycles < kLeastShare * kernel.cycles) return {};
  const auto lines = view.LinesWith([](const LineProfile& line) { return line.relayouts; });
  Advice advice = view.Make("relayout", cycles / kernel.cycles, lines);
  const bool inserted =
      std::any_of(lines.begin(), lines.end(), [](const auto* line) { return line->relayouts_inserted; });
  const double per_step = kernel.relayouts / view.steps();
  advice.title = Amount(per_step) + " moves across lanes a step";
  advice.text =
      (inserted ? std::string("The source asks for no transpose or broadcast here: the compiler changes the "
                              "layout between operations. ")
                : std::string("They come from transposes, broadcasts, reshapes or rotations on these lines. ")) +
      "They fill at least " + Percent(cycles / kernel.cycles) +
      " of the kernel's cycles in the cross-lane unit. Let the product take a transposed operand "
      "(dot_general), keep operands in the layout that the next step needs, or do the move once outside of the "
      "loop.";
  advice.evidence = {{"moves_per_step", per_step}, {"moves", kernel.relayouts}, {"cycles_at_least", cycles}};
  return {advice};
}

}  // namespace kernelwright::profile
