#include "daemon/profile/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/profile/profile_test_util.h"

namespace kernelwright::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A kernel with a settled step, as a rule sees it.
struct Case {
  ProfileReport report;
  KernelProfile kernel;
  std::optional<PallasCall> call;
  const cost::Chip* chip = &cost::ShippedChip("v5e");

  Case() {
    kernel.name = "k.1";
    kernel.is_pallas = true;
    kernel.share = 1;
    kernel.calls = 1;
    kernel.cycles = 100000;
    kernel.grid = {100};
    kernel.grid_steps = 100;
    kernel.step.emplace();
    kernel.step->cycles = kernel.step->busy_cycles = 1000;
  }
  KernelView view() const { return {report, *chip, kernel, call ? &*call : nullptr}; }
};

LineProfile LineWith(int number) {
  LineProfile line;
  line.file = "k.py";
  line.line = number;
  return line;
}

TEST(AdviceTest, CastsOfAGoldenKernel) {
  const ProfileReport report = Report("v5e", "casts");
  const Advice* advice = FindAdvice(report, "casts");
  // Four short steps: mostly pipeline work, so the casts are a small part and no reason to act.
  EXPECT_EQ(advice, nullptr);
}

TEST(AdviceTest, CastsThatFillTheVectorUnit) {
  Case c;
  LineProfile line = LineWith(7);
  line.casts = c.kernel.casts = 128 * 100;
  line.casts_inserted = true;
  c.kernel.lines = {line};
  const auto advice = AdviseCasts(c.view());
  ASSERT_EQ(advice.size(), 1);
  EXPECT_THAT(advice[0].title, HasSubstr("128 type conversions"));
  EXPECT_THAT(advice[0].text, HasSubstr("the compiler adds them"));
  EXPECT_THAT(advice[0].lines, ElementsAre(7));
  EXPECT_EQ(advice[0].evidence.at("casts_per_step"), 128);
  EXPECT_NEAR(advice[0].share, 12800.0 / c.chip->valu_slots / 100000, 1e-9);
  c.kernel.casts = 10;
  EXPECT_TRUE(AdviseCasts(c.view()).empty());
}

TEST(AdviceTest, WaitsForCopiesAndRoomForLargerBlocks) {
  const Program program = ProgramOf(cost::MatmulCall(256, 256, 256, 128, 128, 128));
  const ProfileReport report = Report("v5e", "mms", &program);
  const Advice* advice = FindAdvice(report, "dma_wait");
  ASSERT_NE(advice, nullptr);
  EXPECT_THAT(advice->text, HasSubstr("Blocks twice as large fit"));
  EXPECT_GT(advice->evidence.at("wait_share"), 0.1);
  EXPECT_EQ(advice->evidence.at("vmem_limit_bytes"), 16 << 20);
  EXPECT_GT(advice->share, 0.1);
}

TEST(AdviceTest, AKernelAtTheMemorysSpeedIsToldSo) {
  Case c;
  c.call = cost::MatmulCall(256, 256, 256, 128, 128, 128);
  c.kernel.dma_wait_cycles = 50000;
  c.kernel.dma_bytes = 3.0 * 256 * 256 * 2;
  c.kernel.step->wait_cycles = 500;
  c.kernel.step->busy_cycles = 500;
  c.kernel.step->bound = cost::Bound::kMemory;
  const auto advice = AdviseDmaWait(c.view());
  ASSERT_EQ(advice.size(), 1);
  EXPECT_THAT(advice[0].text, HasSubstr("at the memory's speed"));
}

TEST(AdviceTest, WhatXlaMadeIsNotForTheUserToBlock) {
  Case c;
  c.kernel.is_pallas = false;
  c.kernel.dma_wait_cycles = 50000;
  c.kernel.dma_bytes = 2 << 20;
  c.kernel.spills = 10000;
  const auto advice = AdviseDmaWait(c.view());
  ASSERT_EQ(advice.size(), 1);
  EXPECT_THAT(advice[0].text, HasSubstr("XLA makes this unit, which moves 2 MiB"));
  EXPECT_TRUE(AdviseSpills(c.view()).empty());
}

TEST(AdviceTest, NoWaitNoAdvice) {
  const Case c;
  EXPECT_TRUE(AdviseDmaWait(c.view()).empty());
  EXPECT_TRUE(AdviseSpills(c.view()).empty());
  EXPECT_TRUE(AdviseRelayout(c.view()).empty());
  EXPECT_TRUE(AdviseF32Passes(c.view()).empty());
  EXPECT_TRUE(AdviseMxuFill(c.view()).empty());
  EXPECT_TRUE(AdviseNarrowDma(c.view()).empty());
  EXPECT_TRUE(AdviseParallelAxis(c.view()).empty());
  EXPECT_TRUE(AdviseSmallSteps(c.view()).empty());
}

TEST(AdviceTest, SpillsOfAGoldenKernel) {
  const ProfileReport report = Report("v5e", "spill");
  const KernelProfile* kernel = FindKernel(report, "spill.1");
  ASSERT_NE(kernel, nullptr);
  const KernelView view{report, cost::ShippedChip("v5e"), *kernel, nullptr};
  const auto advice = AdviseSpills(view);
  ASSERT_EQ(advice.size(), 1);
  EXPECT_THAT(advice[0].text, HasSubstr("of 64 vector registers"));
  EXPECT_EQ(advice[0].evidence.at("spills") + advice[0].evidence.at("fills"), kernel->spills);
  EXPECT_FALSE(advice[0].lines.empty());
}

TEST(AdviceTest, ProductsSmallerThanTheMxu) {
  Case c;
  c.call = cost::MatmulCall(256, 64, 64, 128, 64, 64);
  c.kernel.products = 20000;
  LineProfile line = LineWith(15);
  line.slots["MXU"] = 20000;
  c.kernel.lines = {line};
  const auto advice = AdviseMxuFill(c.view());
  ASSERT_EQ(advice.size(), 1);
  EXPECT_EQ(advice[0].evidence.at("fill"), 0.25);
  EXPECT_EQ(advice[0].evidence.at("k"), 64);
  EXPECT_THAT(advice[0].text, HasSubstr("128 x 128"));
  EXPECT_THAT(advice[0].lines, ElementsAre(15));
  c.call = cost::MatmulCall(256, 256, 256, 128, 128, 128);
  EXPECT_TRUE(AdviseMxuFill(c.view()).empty());
  c.chip = &cost::ShippedChip("v6e");
  EXPECT_EQ(AdviseMxuFill(c.view()).size(), 1) << "half filled each way on an array of 256";
}

TEST(AdviceTest, ASecondCoreWantsAParallelAxis) {
  Case c;
  c.call = cost::MatmulCall(512, 512, 512, 128, 128, 128);
  c.call->dimension_semantics = {};
  c.call->spans = {{"k.py", 33, 1, 33, 9, "mm"}};
  EXPECT_TRUE(AdviseParallelAxis(c.view()).empty()) << "v5e has one core";
  c.chip = &cost::ShippedChip("v5p");
  const auto advice = AdviseParallelAxis(c.view());
  ASSERT_EQ(advice.size(), 1);
  EXPECT_EQ(advice[0].share, 0.5);
  EXPECT_THAT(advice[0].lines, ElementsAre(33));
  c.call->dimension_semantics = {"parallel", "arbitrary", "arbitrary"};
  EXPECT_TRUE(AdviseParallelAxis(c.view()).empty());
}

TEST(AdviceTest, WindowsThatAreMostlyPadding) {
  Case c;
  PallasCall call;
  call.name = "narrow";
  call.grid = {4};
  call.blocks = {
      cost::Blocked("x_ref", cost::TypeOf("float32", {512, 16}), {128, 16}, cost::PickMap(1, {0, -1})),
      cost::Blocked("o_ref", cost::TypeOf("float32", {512, 16}), {128, 16}, cost::PickMap(1, {0, -1}), true)};
  c.call = call;
  const auto advice = AdviseNarrowDma(c.view());
  ASSERT_EQ(advice.size(), 1);
  EXPECT_EQ(advice[0].evidence.at("padded_bytes"), 8 * advice[0].evidence.at("window_bytes"));
  EXPECT_THAT(advice[0].text, HasSubstr("last dimension is 16"));
  const Program program = ProgramOf(call);
  EXPECT_NE(FindAdvice(Report("v5e", "narrow", &program), "narrow_dma"), nullptr);
}

TEST(AdviceTest, MovesAcrossLanes) {
  Case c;
  LineProfile line = LineWith(23);
  line.relayouts = c.kernel.relayouts = 1600 * 100;
  c.kernel.lines = {line};
  const auto advice = AdviseRelayout(c.view());
  ASSERT_EQ(advice.size(), 1);
  EXPECT_EQ(advice[0].evidence.at("moves_per_step"), 1600);
  EXPECT_THAT(advice[0].text, HasSubstr("They come from transposes"));
}

TEST(AdviceTest, StepsThatAreAllOverhead) {
  Case c;
  c.kernel.step->busy_cycles = 200;
  c.kernel.step->wait_cycles = 600;
  c.kernel.step->cycles = 800;
  c.kernel.step->scalar_only_share = 0.8;
  c.kernel.step->bound = cost::Bound::kLatency;
  const auto advice = AdviseSmallSteps(c.view());
  ASSERT_EQ(advice.size(), 1);
  EXPECT_EQ(advice[0].evidence.at("scalar_only_cycles"), 160);
  EXPECT_EQ(advice[0].evidence.at("latency_cycles"), 600);
  EXPECT_NEAR(advice[0].share, 760.0 / 800, 1e-9);
  c.kernel.step->cycles = 80000;
  EXPECT_TRUE(AdviseSmallSteps(c.view()).empty());
}

// precision=HIGHEST makes six passes of it.
TEST(AdviceTest, PassesOfFloat32Products) {
  PallasCall call = cost::MatmulCall(32, 128, 64, 16, 128, 64);
  call.name = "f32dot";
  call.grid = {2};
  call.kernel.operations.clear();
  const Program program = ProgramOf(call);
  const ProfileReport report = Report("v5e", "f32dot", &program);
  const KernelProfile* kernel = FindKernel(report, "f32dot.1");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->f32_products, 2 * 12);
  EXPECT_EQ(kernel->products, 2 * 12);

  Case c;
  c.kernel.f32_products = c.kernel.products = 12 * 100;
  LineProfile line = LineWith(34);
  line.slots["MXU"] = 1200;
  c.kernel.lines = {line};
  c.kernel.cycles = 10000;
  const auto advice = AdviseF32Passes(c.view());
  ASSERT_EQ(advice.size(), 1);
  EXPECT_THAT(advice[0].title, HasSubstr("float32"));
  EXPECT_THAT(advice[0].lines, ElementsAre(34));
}

TEST(AdviceTest, MostImportantFirstAndOnlyForWhatMatters) {
  const Program program = ProgramOf(cost::MatmulCall(256, 256, 256, 128, 128, 128));
  const ProfileReport report = Report("v5e", "mms", &program);
  for (size_t i = 1; i < report.advice.size(); ++i) EXPECT_GE(report.advice[i - 1].share, report.advice[i].share);
  for (const Advice& advice : report.advice) {
    EXPECT_FALSE(advice.evidence.empty()) << advice.id;
    EXPECT_FALSE(advice.title.empty());
    EXPECT_GE(advice.share, 0);
    EXPECT_LE(advice.share, 1);
  }
}

TEST(AdviceTest, NumbersForPeople) {
  EXPECT_EQ(Amount(128), "128");
  EXPECT_EQ(Amount(0.355), "0.35");
  EXPECT_EQ(Amount(12.34), "12.3");
  EXPECT_EQ(Percent(0.4), "40 %");
  EXPECT_EQ(Percent(0.031), "3.1 %");
  EXPECT_EQ(LineList({15}), "line 15");
  EXPECT_EQ(LineList({15, 18, 20}), "lines 15, 18 and 20");
}

}  // namespace
}  // namespace kernelwright::profile
