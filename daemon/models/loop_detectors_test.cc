// Circles that agents walk in.
#include "daemon/models/loop_detectors.h"

#include <vector>

#include "gtest/gtest.h"

namespace kernelwright::models {
namespace {

LoopStep Did(std::string action, std::string result = "ok") { return {std::move(action), std::move(result)}; }
LoopStep Failed(std::string action, std::string result = "no match") {
  return {.action = std::move(action), .result = std::move(result), .failed = true};
}
LoopStep Better(std::string action) { return {.action = std::move(action), .result = "", .progress = true}; }

TEST(LoopDetectorsTest, NothingToSayAboutNothing) { EXPECT_FALSE(FindLoop({})); }

TEST(LoopDetectorsTest, C37TheSecondEqualFailureStops) {
  std::vector<LoopStep> steps = {Failed("edit block 1")};
  EXPECT_FALSE(FindLoop(steps));
  steps.push_back(Failed("edit block 1"));
  const auto found = FindLoop(steps);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, LoopKind::kRepeat);
  EXPECT_EQ(found->rounds, 2);
}

TEST(LoopDetectorsTest, C60EqualFailuresCountAlsoWithOtherStepsBetween) {
  const std::vector<LoopStep> steps = {Failed("edit"), Did("read a"), Did("search b"), Failed("edit")};
  ASSERT_TRUE(FindLoop(steps));
  EXPECT_EQ(FindLoop(steps)->kind, LoopKind::kRepeat);
}

TEST(LoopDetectorsTest, ADifferentErrorOrProgressIsNoRepeat) {
  EXPECT_FALSE(FindLoop(std::vector{Failed("edit", "a"), Failed("edit", "b")}));
  EXPECT_FALSE(FindLoop(std::vector{Failed("compile"), Better("edit"), Failed("compile")}));
}

TEST(LoopDetectorsTest, EqualSuccessesMayHappenTwice) {
  std::vector<LoopStep> steps = {Did("read a"), Did("read a")};
  EXPECT_FALSE(FindLoop(steps));
  steps.push_back(Did("read a"));
  ASSERT_TRUE(FindLoop(steps));
  EXPECT_EQ(FindLoop(steps)->kind, LoopKind::kRepeat);
}

TEST(LoopDetectorsTest, C60PingPongOfAnyLength) {
  const std::vector<LoopStep> two = {Did("bm=128"), Did("bm=256"), Did("bm=128"), Did("bm=256")};
  ASSERT_TRUE(FindLoop(two));
  EXPECT_EQ(FindLoop(two)->kind, LoopKind::kPingPong);
  EXPECT_EQ(FindLoop(two)->length, 2);
  const std::vector<LoopStep> three = {Did("x"), Did("a"), Did("b"), Did("c"), Did("a"), Did("b"), Did("c")};
  ASSERT_TRUE(FindLoop(three));
  EXPECT_EQ(FindLoop(three)->length, 3);
  EXPECT_FALSE(FindLoop(std::vector{Did("a"), Did("b"), Did("a"), Did("c")}));
  EXPECT_FALSE(FindLoop(std::vector{Did("a"), Better("b"), Did("a"), Better("b")})) << "it does get better";
}

TEST(LoopDetectorsTest, C60NoProgress) {
  std::vector<LoopStep> steps = {Better("first")};
  for (int i = 0; i < 11; ++i) steps.push_back(Did("try " + std::to_string(i)));
  EXPECT_FALSE(FindLoop(steps));
  steps.push_back(Did("try 11"));
  ASSERT_TRUE(FindLoop(steps));
  EXPECT_EQ(FindLoop(steps)->kind, LoopKind::kNoProgress);
  EXPECT_EQ(FindLoop(steps)->length, 12);
  steps.push_back(Better("last"));
  EXPECT_FALSE(FindLoop(steps));
}

}  // namespace
}  // namespace kernelwright::models
