// See copy_queue.h. What has been waited for is dropped from the front now and then instead of one by one.
#include "daemon/cost/copy_queue.h"

#include <algorithm>

namespace kernelwright::cost {
namespace {
constexpr size_t kDropBehind = 64;
}

int64_t CopyQueue::Transfer(int64_t now, int64_t ticks) { return hbm_free_ = std::max(hbm_free_, now) + ticks; }

void CopyQueue::Start(uint64_t flag, int64_t done, uint64_t granules) {
  flags_[flag].copies.push_back({done, granules});
}

int64_t CopyQueue::Wait(uint64_t flag, uint64_t granules, int64_t now, bool* matched) {
  Flag& queue = flags_[flag];
  while (granules > 0 && queue.head < queue.copies.size()) {
    Copy& copy = queue.copies[queue.head];
    const uint64_t taken = std::min(granules, copy.granules);
    now = std::max(now, copy.done);
    granules -= taken;
    copy.granules -= taken;
    if (copy.granules == 0) ++queue.head;
  }
  *matched = granules == 0;
  if (queue.head == queue.copies.size()) {
    queue.copies.clear();
    queue.head = 0;
  } else if (queue.head > kDropBehind) {
    queue.copies.erase(queue.copies.begin(), queue.copies.begin() + static_cast<std::ptrdiff_t>(queue.head));
    queue.head = 0;
  }
  return now;
}

CopyState CopyQueue::Capture(int64_t now) const {
  CopyState state;
  state.queue_ahead = std::max<int64_t>(hbm_free_ - now, 0);
  for (const auto& [address, flag] : flags_) {
    if (flag.head == flag.copies.size()) continue;
    auto& entry = state.flags.emplace_back(address, std::vector<std::pair<int64_t, uint64_t>>{});
    for (size_t i = flag.head; i < flag.copies.size(); ++i) {
      entry.second.emplace_back(std::max<int64_t>(flag.copies[i].done - now, 0), flag.copies[i].granules);
    }
  }
  std::sort(state.flags.begin(), state.flags.end());
  return state;
}

void CopyQueue::Shift(int64_t ticks) {
  hbm_free_ += ticks;
  for (auto& [address, flag] : flags_) {
    for (Copy& copy : flag.copies) copy.done += ticks;
  }
}

}  // namespace kernelwright::cost
