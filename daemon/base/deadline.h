// A point in time after which work must stop, and the check that joins it with a stop token. Deadlines are absolute,
// so that a chain of calls shares one instead of adding up timeouts.
#pragma once

#include <algorithm>
#include <chrono>
#include <climits>
#include <stop_token>
#include <string>

#include "daemon/base/status.h"

namespace kernelwright {

class Deadline {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  Deadline() = default;  // never
  static Deadline Never() { return Deadline(); }
  static Deadline At(TimePoint time) { return Deadline(time); }
  static Deadline After(std::chrono::milliseconds from_now) {
    const TimePoint now = std::chrono::steady_clock::now();
    if (from_now >= std::chrono::duration_cast<std::chrono::milliseconds>(TimePoint::max() - now)) return Never();
    return Deadline(now + from_now);
  }

  bool never() const { return time_ == TimePoint::max(); }
  bool expired() const { return !never() && std::chrono::steady_clock::now() >= time_; }
  TimePoint time() const { return time_; }
  Deadline Earlier(Deadline other) const { return Deadline(std::min(time_, other.time_)); }

  // Time left, never negative, rounded up so that a wait of this length ends after the deadline.
  std::chrono::milliseconds Remaining() const {
    if (never()) return std::chrono::milliseconds::max();
    const auto left = time_ - std::chrono::steady_clock::now();
    if (left <= left.zero()) return std::chrono::milliseconds(0);
    return std::chrono::ceil<std::chrono::milliseconds>(left);
  }
  // For poll(2): -1 waits without end.
  int PollTimeout() const {
    if (never()) return -1;
    return static_cast<int>(std::min<int64_t>(Remaining().count(), INT_MAX));
  }

 private:
  explicit Deadline(TimePoint time) : time_(time) {}
  TimePoint time_ = TimePoint::max();
};

// kCancelled when a stop was asked for, kLimit when the deadline has passed, else ok. `what` names the work.
inline Status CheckRunning(const std::stop_token& stop, const Deadline& deadline, const std::string& what) {
  if (stop.stop_requested()) return Status(ErrorKind::kCancelled, what + " was cancelled");
  if (deadline.expired()) {
    return Status(ErrorKind::kLimit, what + " did not end in time", {}, "Raise --timeout, or make the input smaller.");
  }
  return {};
}

}  // namespace kernelwright
