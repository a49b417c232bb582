// Windows narrower than a tile are padded: the copies move, and VMEM holds, more than the data.
#include <algorithm>

#include "daemon/cost/dtype.h"
#include "daemon/cost/vmem.h"
#include "daemon/profile/advice.h"

namespace kernelwright::profile {
namespace {
constexpr double kMostWaste = 0.3;
}

std::vector<Advice> AdviseNarrowDma(const KernelView& view) {
  if (view.call == nullptr) return {};
  double bytes = 0;
  double padded = 0;
  double worst = 0;
  std::string operand;
  int64_t last_dim = 0;
  for (const BlockMapping& block : view.call->blocks) {
    if (!block.has_index_map || block.memory_space != "vmem" || block.block.empty()) continue;
    const std::optional<int> bits = cost::DtypeBits(block.array.dtype);
    std::vector<int64_t> dims;
    double elements = 1;
    bool fixed = bits.has_value();
    for (const BlockDim& dim : block.block) {
      if (dim.kind == BlockDim::Kind::kSqueezed) continue;
      fixed &= dim.size > 0;
      dims.push_back(dim.size);
      elements *= static_cast<double>(dim.size);
    }
    if (!fixed || dims.empty()) continue;
    const double own = elements * *bits / 8;
    const auto tiled = static_cast<double>(cost::PaddedWindowBytes(dims, *bits, view.chip));
    bytes += own;
    padded += tiled;
    if (tiled > 0 && (tiled - own) > worst) {
      worst = tiled - own;
      operand = block.origin;
      last_dim = dims.back();
    }
  }
  if (padded <= 0 || (padded - bytes) / padded < kMostWaste) return {};
  const double waste = (padded - bytes) / padded;
  const double transfer = view.kernel.step && view.kernel.step->cycles > 0
                              ? std::min(1.0, view.kernel.step->dma_cycles / view.kernel.step->cycles)
                              : view.kernel.dma_wait_cycles / std::max(view.kernel.cycles, 1.0);
  Advice advice = view.Make("narrow_dma", waste * transfer, {});
  advice.title = Percent(waste) + " of each window is padding";
  advice.text = "The blocks hold " + Amount(bytes / 1024) + " KiB of data and take " + Amount(padded / 1024) +
                " KiB of tiles; most of it is lost on " + operand + ", whose last dimension is " +
                std::to_string(last_dim) + " of a multiple of " + std::to_string(view.chip.lanes) +
                ". Put a long axis last, or several rows into one.";
  advice.evidence = {
      {"window_bytes", bytes}, {"padded_bytes", padded}, {"last_dimension", static_cast<double>(last_dim)}};
  return {advice};
}

}  // namespace kernelwright::profile
