// What keeps a daemon alive: calls and streams in progress. It answers when the daemon was last used, and lets exactly
// one party close the door, after which no new work is taken: so "idle" cannot change between the question and the end.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace kernelwright::service {

class Activity {
 public:
  enum class Kind {
    kBrief,   // a question; counts as use, keeps nobody waiting
    kWork,    // starts or does something that a stop would cut off
    kStream,  // a client that watches events
  };

  // Held while a call is in progress. Move-only; the activity must outlive it.
  class Call {
   public:
    Call(Call&& other) noexcept : activity_(std::exchange(other.activity_, nullptr)), kind_(other.kind_) {}
    Call& operator=(Call&&) = delete;
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() {
      if (activity_ != nullptr) activity_->End(kind_);
    }

   private:
    friend class Activity;
    Call(Activity* activity, Kind kind) : activity_(activity), kind_(kind) {}
    Activity* activity_;
    Kind kind_;
  };

  using Clock = std::chrono::steady_clock;

  // Nothing once the daemon is closing, except for brief calls.
  std::optional<Call> Begin(Kind kind);

  struct Busy {
    uint32_t runs = 0;
    uint32_t streams = 0;
    bool work = false;  // a call that starts something is in progress
    bool any() const { return runs > 0 || streams > 0 || work; }
  };
  // Closes the door unless something is in progress; `active_runs` is asked under the lock. With `even_if_busy` it
  // closes in any case. Returns what it was busy with.
  Busy TryClose(const std::function<uint32_t()>& active_runs, bool even_if_busy);

  bool closing() const;
  uint32_t streams() const;
  // Since when no call is in progress; nothing while one is.
  std::optional<Clock::time_point> idle_since() const;

 private:
  void End(Kind kind);

  mutable std::mutex mutex_;
  bool closing_ = false;
  uint32_t brief_ = 0;
  uint32_t work_ = 0;
  uint32_t streams_ = 0;
  Clock::time_point last_end_ = Clock::now();
};

}  // namespace kernelwright::service
