// Vectors that change type (bfloat16 unpacked to float32 and packed again) take slots of the vector unit.
#include <algorithm>

#include "daemon/profile/advice.h"

namespace kernelwright::profile {
namespace {
constexpr double kLeastShare = 0.03;  // of the kernel's cycles
}

std::vector<Advice> AdviseCasts(const KernelView& view) {
  const KernelProfile& kernel = view.kernel;
  if (kernel.casts <= 0 || kernel.cycles <= 0 || view.chip.valu_slots <= 0) return {};
  const double cycles = kernel.casts / view.chip.valu_slots;
  if (cycles < kLeastShare * kernel.cycles) return {};
  const auto lines = view.LinesWith([](const LineProfile& line) { return line.casts; });
  Advice advice = view.Make("casts", cycles / kernel.cycles, lines);
  const bool inserted = std::any_of(lines.begin(), lines.end(), [](const auto* line) { return line->casts_inserted; });
  const double per_step = kernel.casts / view.steps();
  advice.title = Amount(per_step) + " type conversions of vectors a step";
  advice.text = (inserted ? "The source does not ask for them: the compiler adds them because " + view.chip.name +
                                " computes these operations in another type than the data has. "
                          : "They come from the conversions on these lines. ") +
                "They fill at least " + Percent(cycles / kernel.cycles) +
                " of the kernel's cycles in the vector unit. Convert once and reuse the result, keep a chain of "
                "operations in one type, or compute in float32 from the start.";
  advice.evidence = {{"casts_per_step", per_step}, {"casts", kernel.casts}, {"cycles_at_least", cycles}};
  return {advice};
}

}  // namespace kernelwright::profile
