// More values in use than there are vector registers: the compiler stores some and loads them again.
#include <algorithm>

#include "daemon/profile/advice.h"

namespace kernelwright::profile {
namespace {
constexpr double kLeastShare = 0.01;  // of the kernel's cycles, one slot a cycle
}

std::vector<Advice> AdviseSpills(const KernelView& view) {
  const KernelProfile& kernel = view.kernel;
  // What XLA's own kernels spill, nobody can change.
  if (!kernel.is_pallas || kernel.spills <= 0 || kernel.cycles <= 0) return {};
  double fills = 0;
  for (const LineProfile& line : kernel.lines) fills += line.fills;
  const double stores = kernel.spills - fills;
  const double cycles =
      std::max(stores / std::max(view.chip.store_slots, 1), fills / std::max(view.chip.load_slots, 1));
  if (cycles < kLeastShare * kernel.cycles) return {};
  const auto lines = view.LinesWith([](const LineProfile& line) { return line.spills; });
  Advice advice = view.Make("spills", cycles / kernel.cycles, lines);
  advice.title = Amount(kernel.spills / view.steps()) + " vector spills and fills a step";
  advice.text =
      "Up to " + std::to_string(kernel.live_registers) + " of " + std::to_string(kVectorRegisters) +
      " vector registers are in use. A step stores " + Amount(stores / view.steps()) + " registers and loads " +
      Amount(fills / view.steps()) +
      " again. Work on smaller pieces at a time (a smaller block, or a loop over row groups inside of it), or "
      "accumulate into a scratch ref instead of a value.";
  advice.evidence = {
      {"spills", stores}, {"fills", fills}, {"cycles_at_least", cycles}, {"live_registers", kernel.live_registers}};
  return {advice};
}

}  // namespace kernelwright::profile
