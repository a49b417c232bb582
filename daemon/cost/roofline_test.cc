#include "daemon/cost/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "daemon/cost/cost_test_util.h"
#include "daemon/cost/kernel_test_util.h"

namespace kernelwright::cost {
namespace {

double Rank(const PallasCall& call, const std::string& chip) {
  const CostResult result = RankEstimate(call, ShippedChip(chip));
  if (const auto* refusal = std::get_if<Refusal>(&result)) {
    ADD_FAILURE() << refusal->reason;
    return 0;
  }
  return std::get<Estimate>(result).milliseconds;
}

double Rank4096(int64_t bm, int64_t bn, int64_t bk, const std::string& chip) {
  return Rank(MatmulCall(4096, 4096, 4096, bm, bn, bk), chip);
}

// The body was traced with 128-blocks; the counts follow the variant's windows.
TEST(KernelWorkTest, SizesFollowTheWindows) {
  const StepWork work = CountStep(MatmulCall(4096, 4096, 4096, 512, 1024, 256));
  ASSERT_EQ(work.products.size(), 1u);
  EXPECT_EQ(work.products[0].m, 512);
  EXPECT_EQ(work.products[0].n, 1024);
  EXPECT_EQ(work.products[0].k, 256);
  EXPECT_EQ(work.products[0].dtype, "bfloat16");
  EXPECT_EQ(work.flops(), 2.0 * 512 * 1024 * 256);
  // add every step; the conversion only in the last of 16.
  EXPECT_NEAR(work.vector_elements, 512 * 1024 * (1 + 1.0 / 16), 100);
  EXPECT_NEAR(work.loaded_bytes, 512 * 1024 * 4 * (1 + 1.0 / 16) + 2.0 * 256 * (512 + 1024), 100);
  EXPECT_FALSE(work.has_unknown_loops);
}

TEST(KernelWorkTest, ReductionsAndTranscendentals) {
  PallasCall call;
  call.grid = {4};
  call.blocks = {Blocked("x", TypeOf("float32", {1024, 512}), {256, 512}, PickMap(1, {0, -1}))};
  call.kernel.inputs = {{0, TypeOf("float32", {8, 512}), ""}};
  Operation sum = Op("reduce_sum", {ValueOperand(1)}, 2, TypeOf("float32", {8}));
  sum.attributes["axes"] = std::vector<int64_t>{1};
  Operation rows = Op("reduce_sum", {ValueOperand(1)}, 3, TypeOf("float32", {512}));
  rows.attributes["axes"] = std::vector<int64_t>{0};
  Operation scan;
  scan.name = "scan";
  scan.attributes["length"] = int64_t{10};
  scan.inputs = {ValueOperand(1)};
  Graph body;
  body.inputs = {{10, TypeOf("float32", {8, 512}), ""}};
  body.operations = {Op("exp", {ValueOperand(10)}, 11, TypeOf("float32", {8, 512}))};
  scan.regions = {body};
  scan.region_names = {"jaxpr"};
  call.kernel.operations = {Op("get", {ValueOperand(0)}, 1, TypeOf("float32", {8, 512})), sum, rows, scan};
  const StepWork work = CountStep(call);
  EXPECT_EQ(work.lane_elements, 256 * 512);
  EXPECT_EQ(work.vector_elements, 256 * 512);
  EXPECT_EQ(work.transcendental, 10 * 256 * 512);
}

TEST(KernelWorkTest, WorkOfAProgram) {
  Graph main;
  main.inputs = {{0, TypeOf("bfloat16", {4096, 4096}), ""}, {1, TypeOf("bfloat16", {4096, 4096}), ""}};
  Operation kernel = Op("pallas_call", {ValueOperand(0), ValueOperand(1)}, 2, TypeOf("bfloat16", {4096, 4096}));
  kernel.pallas = {MatmulCall(4096, 4096, 4096, 512, 512, 512)};
  main.operations = {kernel};
  main.outputs = {ValueOperand(2)};
  const Work work = WorkOfProgram(main);
  EXPECT_EQ(work.flops.value_or(0), 2.0 * 4096 * 4096 * 4096);
  EXPECT_EQ(work.bytes.value_or(0), 3.0 * 4096 * 4096 * 2);
  EXPECT_EQ(work.flop_dtype, "bfloat16");
  main.operations[0] = Op("dot_general", {ValueOperand(0), ValueOperand(1)}, 2, TypeOf("bfloat16", {4096, 4096}));
  EXPECT_EQ(WorkOfProgram(main).flops.value_or(0), 2.0 * 4096 * 4096 * 4096);
  Operation loop;
  loop.name = "while";
  Graph body;
  body.inputs = main.inputs;
  body.operations = main.operations;
  loop.regions = {body};
  main.operations = {loop};
  EXPECT_FALSE(WorkOfProgram(main).flops) << "an unknown number of rounds";
}

// 128-blocks of 4096^3 took 11.77 ms on a v5e, 512x1024x1024 blocks 0.79 ms.
TEST(RankTest, MeasuredMatmuls) {
  EXPECT_NEAR(Rank4096(128, 128, 128, "v5e"), 11.7, 2.5);
  EXPECT_NEAR(Rank4096(512, 1024, 1024, "v5e"), 0.79, 0.25);
}

TEST(RankTest, BiggerBlocksRankBetter) {
  for (const char* chip : {"v5e", "v5p", "v6e", "tpu7x"}) {
    EXPECT_GT(Rank4096(128, 128, 128, chip), 3 * Rank4096(512, 512, 512, chip)) << chip;
    EXPECT_GE(Rank4096(256, 256, 256, chip), Rank4096(512, 512, 512, chip)) << chip;
    EXPECT_GT(Rank4096(512, 128, 1024, chip), Rank4096(512, 1024, 1024, chip)) << chip;
  }
}

TEST(RankTest, TrafficOfTheIndexMaps) {
  const CostResult result = RankEstimate(MatmulCall(4096, 4096, 4096, 512, 1024, 1024), ShippedChip("v5e"));
  const auto& estimate = std::get<Estimate>(result);
  // 8 x 4 x 4 steps; x and y anew in each, the output once per (i, j): the compiled kernel moves exactly this.
  EXPECT_EQ(estimate.dma_bytes, 436207616);
  EXPECT_EQ(estimate.evidence.method, "analytic");
  EXPECT_EQ(estimate.confidence, Confidence::kLow);
  EXPECT_GT(estimate.roofline_fraction, 0.5);
}

TEST(RankTest, MegacoreSharesAParallelAxis) {
  PallasCall call = MatmulCall(4096, 4096, 4096, 512, 512, 512);
  const double shared = Rank(call, "v5p");
  call.dimension_semantics = {"arbitrary", "arbitrary", "arbitrary"};
  EXPECT_NEAR(Rank(call, "v5p") / shared, 2, 0.1);
}

TEST(RankTest, Refusals) {
  PallasCall call = MatmulCall(1024, 1024, 1024, 128, 128, 128);
  call.grid[1] = -1;
  EXPECT_TRUE(std::holds_alternative<Refusal>(RankEstimate(call, ShippedChip("v5e"))));
  call = MatmulCall(1024, 1024, 1024, 128, 128, 128);
  call.blocks[0].index_map.outputs[0] = ValueOperand(999);
  const CostResult result = RankEstimate(call, ShippedChip("v5e"));
  ASSERT_TRUE(std::holds_alternative<Refusal>(result));
  EXPECT_NE(std::get<Refusal>(result).reason.find("x_ref"), std::string::npos);
}

TEST(RankTest, ThousandsASecond) {
  const PallasCall call = MatmulCall(4096, 4096, 4096, 128, 128, 128);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 300; ++i) (void)Rank(call, "v5e");
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  EXPECT_LT(taken.count(), 3.0) << "a hundred a second even in a sanitizer build";
}

}  // namespace
}  // namespace kernelwright::cost
