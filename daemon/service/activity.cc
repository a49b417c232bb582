// Counting of calls and the one-way door; see activity.h.
#include "daemon/service/activity.h"

namespace kernelwright::service {

std::optional<Activity::Call> Activity::Begin(Kind kind) {
  const std::lock_guard lock(mutex_);
  if (closing_ && kind != Kind::kBrief) return std::nullopt;
  switch (kind) {
    case Kind::kBrief:
      ++brief_;
      break;
    case Kind::kWork:
      ++work_;
      break;
    case Kind::kStream:
      ++streams_;
      break;
  }
  return Call(this, kind);
}

void Activity::End(Kind kind) {
  const std::lock_guard lock(mutex_);
  switch (kind) {
    case Kind::kBrief:
      --brief_;
      break;
    case Kind::kWork:
      --work_;
      break;
    case Kind::kStream:
      --streams_;
      break;
  }
  last_end_ = Clock::now();
}

Activity::Busy Activity::TryClose(const std::function<uint32_t()>& active_runs, bool even_if_busy) {
  const std::lock_guard lock(mutex_);
  Busy busy{active_runs(), streams_, work_ > 0};
  if (!busy.any() || even_if_busy) closing_ = true;
  return busy;
}

bool Activity::closing() const {
  const std::lock_guard lock(mutex_);
  return closing_;
}

uint32_t Activity::streams() const {
  const std::lock_guard lock(mutex_);
  return streams_;
}

std::optional<Activity::Clock::time_point> Activity::idle_since() const {
  const std::lock_guard lock(mutex_);
  if (brief_ + work_ + streams_ > 0) return std::nullopt;
  return last_end_;
}

}  // namespace kernelwright::service
