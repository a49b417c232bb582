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
  if (const auto it = flags_.find(flag); it != flags_.end()) {
    Flag& queue = it->second;
    while (granules > 0 && queue.head < queue.copies.size()) {
      Copy& copy = queue.copies[queue.head];
      const uint64_t taken = std::min(granules, copy.granules);
      now = std::max(now, copy.done);
      granules -= taken;
      copy.granules -= taken;
      if (copy.granules == 0) ++queue.head;
    }
    if (queue.head == queue.copies.size()) {
      queue.copies.clear();
      queue.head = 0;
    } else if (queue.head > kDropBehind) {
      queue.copies.erase(queue.copies.begin(), queue.copies.begin() + static_cast<std::ptrdiff_t>(queue.head));
      queue.head = 0;
    }
  } else if (const auto semaphore = semaphores_.find(flag);
             semaphore != semaphores_.end() && semaphore->second >= static_cast<int64_t>(granules)) {
    granules = 0;  // the copies were done by loads and stores, which then raised the flag
  }
  *matched = granules == 0;
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
  state.semaphores.assign(semaphores_.begin(), semaphores_.end());
  std::sort(state.semaphores.begin(), state.semaphores.end());
  return state;
}

void CopyQueue::Signal(uint64_t flag, int64_t amount, int64_t now) {
  if (!flags_.contains(flag)) {
    semaphores_[flag] += amount;
  } else if (amount > 0) {
    Start(flag, now, static_cast<uint64_t>(amount));
  }
}

void CopyQueue::ForgetSignals() { signals_known_ = false; }

bool CopyQueue::IsRaised(uint64_t flag, int64_t least) const {
  const auto it = semaphores_.find(flag);
  return signals_known_ && it != semaphores_.end() && it->second >= least;
}

void CopyQueue::Shift(int64_t ticks) {
  hbm_free_ += ticks;
  for (auto& [address, flag] : flags_) {
    for (Copy& copy : flag.copies) copy.done += ticks;
  }
}

}  // namespace kernelwright::cost
