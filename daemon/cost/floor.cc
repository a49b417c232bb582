// The floor under every time: what the chip's peak rates allow for the work of the algorithm.
#include <algorithm>

#include "daemon/cost/chips.h"
#include "daemon/cost/estimate.h"

namespace kernelwright::cost {
namespace {
// Peak figures are rounded in their sources; only a time clearly below them is impossible.
constexpr double kFloorTolerance = 0.95;
}  // namespace

double FloorMilliseconds(const Work& work, const Chip& chip) {
  double floor = 0;
  if (work.flops) {
    if (const auto peak = chip.DevicePeakFlops(work.flop_dtype)) floor = *work.flops / *peak * 1e3;
  }
  if (work.bytes) floor = std::max(floor, *work.bytes / chip.DeviceBandwidth() * 1e3);
  return floor;
}

bool BelowFloor(double milliseconds, const Work& work, const Chip& chip) {
  return milliseconds < kFloorTolerance * FloorMilliseconds(work, chip);
}

}  // namespace kernelwright::cost
