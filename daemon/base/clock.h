// Time as an interface, so that logic that looks at the clock can be tested without waiting.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace kernelwright {

class Clock {
 public:
  virtual ~Clock() = default;
  // Milliseconds since 1970 UTC; may jump when the machine's clock is set.
  virtual int64_t NowMs() const = 0;
  // Never goes back; for durations.
  virtual std::chrono::steady_clock::time_point Monotonic() const = 0;
};

// The machine's clock; lives for ever.
const Clock& SystemClock();

// Stands still until moved; thread-safe.
class FakeClock : public Clock {
 public:
  explicit FakeClock(int64_t now_ms = 1'700'000'000'000) : now_ms_(now_ms) {}
  int64_t NowMs() const override { return now_ms_.load(); }
  std::chrono::steady_clock::time_point Monotonic() const override {
    return std::chrono::steady_clock::time_point(std::chrono::milliseconds(now_ms_.load()));
  }
  void Advance(std::chrono::milliseconds by) { now_ms_.fetch_add(by.count()); }
  void Set(int64_t now_ms) { now_ms_.store(now_ms); }

 private:
  std::atomic<int64_t> now_ms_;
};

// "2026-11-30T18:11:08.123Z"
std::string FormatTimeUtc(int64_t ms_since_epoch);

}  // namespace kernelwright
