// See retry.h.
#include "daemon/models/retry.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>

namespace kernelwright::models {
namespace {

class SystemRandomSource : public RandomSource {
 public:
  double Uniform() override {
    const std::lock_guard lock(mutex_);
    return std::uniform_real_distribution<double>(0.0, 1.0)(engine_);
  }

 private:
  std::mutex mutex_;
  std::mt19937_64 engine_{std::random_device{}()};
};

class ConditionSleeper : public Sleeper {
 public:
  bool Sleep(std::chrono::milliseconds duration, const std::stop_token& stop) override {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, duration, [] { return false; });
    return !stop.stop_requested();
  }
};

}  // namespace

RandomSource& SystemRandom() {
  static SystemRandomSource source;
  return source;
}

Sleeper& SystemSleeper() {
  static ConditionSleeper sleeper;
  return sleeper;
}

bool AfterAnswer(const CallError& error) {
  return error.cause == Cause::kCut || error.cause == Cause::kEmpty || error.cause == Cause::kMalformed ||
         error.cause == Cause::kSilent;
}

RetryDecision DecideRetry(const RetryPolicy& policy, const CallError& error, int attempts, int answers, double random) {
  if (!MayRetry(error) || attempts >= policy.most_attempts) return {};
  if (AfterAnswer(error) && answers >= policy.most_after_answer) return {};
  // Between half and the whole of a doubling time: callers that failed together do not come back together.
  const int doublings = std::min(attempts - 1, 20);
  const double base = std::min(static_cast<double>(policy.first_wait.count()) * static_cast<double>(1LL << doublings),
                               static_cast<double>(policy.longest_wait.count()));
  std::chrono::milliseconds wait(static_cast<int64_t>(base * (0.5 + 0.5 * random)));
  if (error.retry_after_ms) {
    const std::chrono::milliseconds asked(*error.retry_after_ms);
    if (asked > policy.longest_server_wait) return {};
    // Never earlier than asked; a little later, so that not all come at once.
    wait = std::max(wait, asked + std::chrono::milliseconds(static_cast<int64_t>(250 * random)));
  }
  return {true, wait};
}

}  // namespace kernelwright::models
