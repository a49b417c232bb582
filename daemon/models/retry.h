// When to ask again, and after how long: a pure function of what failed, how often, and the clock. The only layer of
// retries there is.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>

#include "daemon/models/call_error.h"

namespace kernelwright::models {

// Randomness as an interface, so that backoff can be tested. Thread-safe.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual double Uniform() = 0;  // from 0, below 1
};
RandomSource& SystemRandom();

// Waiting as an interface. Thread-safe.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  // False when a stop was requested before the time was over.
  virtual bool Sleep(std::chrono::milliseconds duration, const std::stop_token& stop) = 0;
};
Sleeper& SystemSleeper();

struct RetryPolicy {
  int most_attempts = 6;      // of a call, the first one included
  int most_after_answer = 3;  // of these, after an answer that was cut, empty or malformed: each of them costs tokens
  std::chrono::milliseconds first_wait{500};
  std::chrono::milliseconds longest_wait{30'000};         // of our own choice
  std::chrono::milliseconds longest_server_wait{60'000};  // that a server may ask for; beyond it the call ends
};

struct RetryDecision {
  bool again = false;
  std::chrono::milliseconds wait{0};
};

// `attempts`: made so far; `answers`: of these, with an answer that was of no use. `random` in [0, 1). A wait that the
// server asked for is never shortened: when it is too long the decision is no.
RetryDecision DecideRetry(const RetryPolicy& policy, const CallError& error, int attempts, int answers, double random);

// Whether the failure came after the model had begun to answer.
bool AfterAnswer(const CallError& error);

}  // namespace kernelwright::models
