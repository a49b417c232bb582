// No limit is ever exceeded, and what is not known is said so.
#include "daemon/models/budget.h"

#include <random>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright::models {
namespace {

using ::testing::HasSubstr;

ModelFacts Priced() {
  ModelFacts facts;
  facts.provider = "p";
  facts.id = "m";
  facts.prices = {{.input = 1.0, .output = 10.0}};
  return facts;
}
ModelFacts Unpriced() {
  ModelFacts facts = Priced();
  facts.prices.clear();
  return facts;
}

TEST(BudgetTest, WithoutLimitsEverythingIsAllowedAndCounted) {
  Budget budget;
  const auto reservation = budget.Reserve(Priced(), 1000, 2000, 500);
  ASSERT_TRUE(reservation);
  EXPECT_EQ(reservation->output_tokens, 2000);
  const auto cost =
      budget.Settle(*reservation, Priced(), {.known = true, .input_tokens = 300, .output_tokens = 40}, true);
  EXPECT_DOUBLE_EQ(*cost, 0.0007);
  EXPECT_EQ(budget.spent().tokens, 340);
  EXPECT_EQ(ToJson(budget.spent())["usd"], 0.0007);
}

TEST(BudgetTest, DollarsLimitTheAnswerThenTheCall) {
  Budget budget({.usd = 0.02});
  const auto first = budget.Reserve(Priced(), 1000, 100'000, 500);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->output_tokens, 1900) << "0.001 for the prompt, the rest for the answer";
  const auto second = budget.Reserve(Priced(), 1000, 1000, 500);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().cause, Cause::kBudget);
  EXPECT_EQ(second.error().status.kind(), ErrorKind::kLimit);
  (void)budget.Settle(*first, Priced(), {.known = true, .input_tokens = 200, .output_tokens = 100}, true);
  EXPECT_TRUE(budget.Reserve(Priced(), 1000, 1000, 500)) << "what was not used is free again";
}

TEST(BudgetTest, UnknownPriceCannotKeepADollarBudget) {
  Budget budget({.usd = 100});
  const auto reservation = budget.Reserve(Unpriced(), 10, 10, 1);
  ASSERT_FALSE(reservation);
  EXPECT_THAT(reservation.error().status.message(), HasSubstr("price"));
  EXPECT_THAT(reservation.error().status.remedy(), HasSubstr("tokens"));
}

TEST(BudgetTest, C58UnknownCostIsNotZero) {
  Budget budget({.tokens = 1000});
  const auto reservation = budget.Reserve(Unpriced(), 10, 10, 1);
  ASSERT_TRUE(reservation);
  EXPECT_FALSE(budget.Settle(*reservation, Unpriced(), {.known = true, .input_tokens = 5, .output_tokens = 5}, true));
  EXPECT_TRUE(ToJson(budget.spent())["usd"].is_null());
  EXPECT_EQ(budget.spent().unknown_cost_calls, 1);
}

TEST(BudgetTest, WhatTheServerDidNotCountIsTakenAtTheMost) {
  Budget budget({.tokens = 1000});
  const auto reservation = budget.Reserve(Priced(), 300, 400, 1);
  ASSERT_TRUE(reservation);
  (void)budget.Settle(*reservation, Priced(), {}, true);
  EXPECT_EQ(budget.spent().tokens, 700);
  EXPECT_EQ(budget.spent().assumed_tokens, 700);
  const auto unsent = budget.Reserve(Priced(), 100, 100, 1);
  ASSERT_TRUE(unsent);
  EXPECT_EQ(budget.Settle(*unsent, Priced(), {}, false), 0.0);
  EXPECT_EQ(budget.spent().tokens, 700) << "a request that never left cost nothing";
}

TEST(BudgetTest, CallsAreLimited) {
  Budget budget({.calls = 1});
  ASSERT_TRUE(budget.Reserve(Priced(), 1, 1, 1));
  EXPECT_FALSE(budget.Reserve(Priced(), 1, 1, 1));
}

// Whatever many callers do at once, what is spent never passes the limits.
TEST(BudgetTest, BudgetedHoldsUnderConcurrency) {
  const double usd = 0.5;
  const int64_t tokens = 60'000;
  Budget budget({.usd = usd, .tokens = tokens});
  std::vector<std::jthread> callers;
  for (unsigned seed = 0; seed < 4; ++seed) {
    callers.emplace_back([&budget, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 400; ++i) {
        const int64_t input = 1 + random() % 3000;
        const int64_t output = 1 + random() % 3000;
        const auto reservation = budget.Reserve(Priced(), input, output, std::min<int64_t>(output, 100));
        if (!reservation) continue;
        Usage usage{.known = random() % 5 != 0,
                    .input_tokens = static_cast<int64_t>(random() % (input + 1)),
                    .output_tokens = static_cast<int64_t>(random() % (reservation->output_tokens + 1))};
        if (!usage.known) usage = {};
        (void)budget.Settle(*reservation, Priced(), usage, random() % 3 != 0);
      }
    });
  }
  callers.clear();
  EXPECT_LE(budget.spent().known_usd, usd + 1e-9);
  EXPECT_LE(budget.spent().tokens, tokens);
  EXPECT_GT(budget.spent().tokens, tokens / 2);
}

}  // namespace
}  // namespace kernelwright::models
