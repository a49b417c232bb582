// When to ask again: by cause, by what the server says, never sooner than it wants.
#include "daemon/models/retry.h"

#include <thread>

#include "gtest/gtest.h"

namespace kernelwright::models {
namespace {

using std::chrono::milliseconds;

CallError Error(Cause cause, int status = 0) {
  CallError error = MakeError(cause, "x", "p:m");
  error.http_status = status;
  return error;
}

TEST(RetryTest, WhatCannotSucceedIsNotRepeated) {
  for (Cause cause : {Cause::kSetup, Cause::kAuth, Cause::kForbidden, Cause::kQuota, Cause::kBadRequest,
                      Cause::kTooLong, Cause::kNoModel, Cause::kRefused, Cause::kTruncated, Cause::kProtocol,
                      Cause::kTls, Cause::kProxy, Cause::kTimeout, Cause::kCancelled, Cause::kBudget}) {
    EXPECT_FALSE(DecideRetry({}, Error(cause), 1, 0, 0.5).again) << CauseName(cause);
  }
}

TEST(RetryTest, WhatMayPassIsRepeated) {
  for (Cause cause : {Cause::kRateLimit, Cause::kOverloaded, Cause::kServer, Cause::kCut, Cause::kNetwork,
                      Cause::kSilent, Cause::kEmpty, Cause::kMalformed}) {
    EXPECT_TRUE(DecideRetry({}, Error(cause), 1, 1, 0.5).again) << CauseName(cause);
  }
}

TEST(RetryTest, WaitsDoubleUpToALimitAndAreSpread) {
  const RetryPolicy policy{.most_attempts = 100};
  const CallError error = Error(Cause::kServer, 500);
  EXPECT_EQ(DecideRetry(policy, error, 1, 0, 0.0).wait, milliseconds(250));
  EXPECT_EQ(DecideRetry(policy, error, 1, 0, 0.999).wait, milliseconds(499));
  EXPECT_EQ(DecideRetry(policy, error, 3, 0, 0.0).wait, milliseconds(1000));
  EXPECT_EQ(DecideRetry(policy, error, 30, 0, 0.0).wait, milliseconds(15'000));
  EXPECT_LE(DecideRetry(policy, error, 99, 0, 0.999).wait, policy.longest_wait);
}

TEST(RetryTest, AttemptsAreLimited) {
  EXPECT_TRUE(DecideRetry({}, Error(Cause::kServer), 5, 0, 0).again);
  EXPECT_FALSE(DecideRetry({}, Error(Cause::kServer), 6, 0, 0).again);
  EXPECT_TRUE(DecideRetry({}, Error(Cause::kCut), 2, 2, 0).again);
  EXPECT_FALSE(DecideRetry({}, Error(Cause::kCut), 3, 3, 0).again) << "answers that were of no use cost tokens";
  EXPECT_TRUE(DecideRetry({}, Error(Cause::kServer), 4, 3, 0).again);
}

TEST(RetryTest, RetryAfterIsNeverShortened) {
  CallError error = Error(Cause::kRateLimit, 429);
  error.retry_after_ms = 7000;
  for (double random : {0.0, 0.4, 0.99}) {
    const RetryDecision decision = DecideRetry({}, error, 1, 0, random);
    EXPECT_TRUE(decision.again);
    EXPECT_GE(decision.wait, milliseconds(7000));
    EXPECT_LE(decision.wait, milliseconds(7250));
  }
  error.retry_after_ms = 60'001;
  EXPECT_FALSE(DecideRetry({}, error, 1, 0, 0.5).again) << "too long a wait ends the call instead";
  error.retry_after_ms = 0;
  EXPECT_GE(DecideRetry({}, error, 1, 0, 0.0).wait, milliseconds(250));
}

TEST(RetryTest, TheServersWordDecidesButNotAgainstTheCause) {
  CallError error = Error(Cause::kServer, 500);
  error.server_says_retry = false;
  EXPECT_FALSE(MayRetry(error));
  error = Error(Cause::kBadRequest, 400);
  error.server_says_retry = true;
  EXPECT_TRUE(MayRetry(error));
  error = Error(Cause::kQuota, 429);
  error.server_says_retry = true;
  EXPECT_FALSE(MayRetry(error)) << "money does not come back by waiting";
}

TEST(RetryTest, SleepEndsWithTheStopRequest) {
  std::stop_source stop;
  std::jthread stopper([&stop] { stop.request_stop(); });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(SystemSleeper().Sleep(milliseconds(60'000), stop.get_token()));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_TRUE(SystemSleeper().Sleep(milliseconds(1), std::stop_token()));
}

TEST(RetryTest, RandomnessIsBelowOne) {
  for (int i = 0; i < 1000; ++i) {
    const double value = SystemRandom().Uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
  }
}

}  // namespace
}  // namespace kernelwright::models
