// The Z function of the reversed history gives, for each distance, how far back the history agrees with itself shifted
// by that distance.
#include "daemon/cost/period_finder.h"

#include <algorithm>

namespace kernelwright::cost {

void PeriodFinder::Restart(size_t first_look) {
  history_.clear();
  next_look_ = std::max(first_look, kFirstLook);
}

std::optional<size_t> PeriodFinder::Add(uint64_t signature, size_t least) {
  history_.push_back(signature);
  const size_t n = history_.size();
  if (n < next_look_) return std::nullopt;
  next_look_ = n * 2;
  const auto at = [&](size_t i) { return history_[n - 1 - i]; };
  std::vector<size_t> z(n, 0);
  std::optional<size_t> found;
  for (size_t i = 1, left = 0, right = 0; i < n; ++i) {
    if (i < right) z[i] = std::min(right - i, z[i - left]);
    while (i + z[i] < n && at(z[i]) == at(i + z[i])) ++z[i];
    if (i + z[i] > right) {
      left = i;
      right = i + z[i];
    }
    if (!found && i >= least && z[i] >= i && (i + z[i]) * 4 >= n * 3) found = i;
  }
  if (n >= kLongest) Restart(kFirstLook);
  return found;
}

}  // namespace kernelwright::cost
