// Slots, consistency, grouping and substitution on hand-made calls; tuning_test.cc has traces of real kernels.
#include "daemon/kernels/params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/kernels/candidates.h"
#include "daemon/kernels/index_map.h"
#include "daemon/kernels/test_calls.h"

namespace kernelwright::kernels {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TunableSite Site(std::string name, int64_t value, SiteKind kind = SiteKind::kParameterDefault, int priority = 0) {
  TunableSite site;
  site.file = "k.py";
  site.name = std::move(name);
  site.value = value;
  site.text = std::to_string(value);
  site.kind = kind;
  site.priority = priority;
  site.context = "literal";
  return site;
}

Operation Op(std::string name, std::vector<Operand> inputs, uint32_t output) {
  Operation op;
  op.name = std::move(name);
  op.inputs = std::move(inputs);
  op.outputs.push_back({output, {}, ""});
  return op;
}

Operand Value(uint32_t id) {
  Operand operand;
  operand.value = id;
  return operand;
}

Operand Literal(int64_t value) {
  Operand operand;
  operand.literal = value;
  return operand;
}

TEST(IndexMap, EvaluatesArithmeticCallsAndChoices) {
  BlockMapping block = MakeBlock("x", "float32", {64, 64, 64}, {8, 8, 8}, {0, 0, 0}, 2);
  // min(j, i / 2), select(i < j, i, j), f(i) = -i + j through a call
  Graph& map = block.index_map;
  map.operations.push_back(Op("div", {Value(1), Literal(2)}, 10));
  map.operations.push_back(Op("min", {Value(2), Value(10)}, 11));
  map.operations.push_back(Op("lt", {Value(1), Value(2)}, 12));
  map.operations.push_back(Op("select_n", {Value(12), Value(2), Value(1)}, 13));
  Operation call = Op("pjit", {Value(1), Value(2)}, 14);
  Graph inner;
  inner.inputs = {{20, {}, ""}, {21, {}, ""}};
  inner.operations.push_back(Op("neg", {Value(20)}, 22));
  inner.operations.push_back(Op("add", {Value(22), Value(21)}, 23));
  inner.outputs = {Value(23)};
  call.regions.push_back(inner);
  map.operations.push_back(call);
  map.outputs = {Value(11), Value(13), Value(14)};
  EXPECT_THAT(EvaluateIndexMap(block, {7, 9}), ElementsAre(3, 7, 2));
  EXPECT_THAT(EvaluateIndexMap(block, {9, 2}), ElementsAre(2, 2, -7));
  map.operations.push_back(Op("get", {Value(3)}, 15));
  map.outputs[0] = Value(15);
  EXPECT_THAT(EvaluateIndexMap(block, {1, 1}), ElementsAre(std::nullopt, 1, 0));
}

TEST(IndexMap, FindsIdentityDependenceAndExtremes) {
  const PallasCall call = MakeMatmul(4096, 1024, 2048, 128, 128, 128);
  const auto uses = AnalyzeBlock(call, call.blocks[0]);
  EXPECT_EQ(uses[0].identity_axis, 0);
  EXPECT_EQ(uses[1].identity_axis, 2);
  EXPECT_EQ(uses[0].last, 31);
  EXPECT_THAT(uses[1].axes, ElementsAre(2));
  EXPECT_THAT(*RevisitingAxes(call), ElementsAre(2));
  EXPECT_THAT(OutputAxes(call), ElementsAre(0, 1));
}

TEST(IndexMap, AxisOfOneStepIsStillItsAxis) {
  const PallasCall call = MakeMatmul(128, 128, 128, 128, 128, 128);
  EXPECT_EQ(AnalyzeBlock(call, call.blocks[0])[1].identity_axis, 2);
  EXPECT_THAT(*RevisitingAxes(call), ElementsAre(2));
}

TEST(Slots, ConsistentOnlyWhenTheSameExtentsAreCovered) {
  const std::vector<PallasCall> base = {MakeMatmul(4096, 4096, 4096, 128, 128, 128)};
  EXPECT_TRUE(Consistent(base, {MakeMatmul(4096, 4096, 4096, 512, 256, 1024)}));
  EXPECT_TRUE(Consistent(base, {MakeMatmul(4096, 4096, 4096, 384, 128, 128)}));
  auto short_grid = base;
  short_grid[0].blocks[0].block[0].size = 64;
  EXPECT_THAT(*WhyInconsistent(base, short_grid), HasSubstr("dimension 0 of x_ref: elements 0 to 2048"));
  auto outside = base;
  outside[0].grid[0] = 33;
  EXPECT_THAT(*WhyInconsistent(base, outside), HasSubstr("outside"));
  EXPECT_THAT(*WhyInconsistent(base, {}), HasSubstr("0 kernels instead of 1"));
  auto floor = std::vector<PallasCall>{MakeMatmul(4096, 4096, 4096, 384, 128, 128)};
  floor[0].grid[0] = 10;
  EXPECT_FALSE(Consistent(base, floor));
}

TEST(Slots, MoreStepsOfAnAxisThatSelectsNothingAreAnotherProgram) {
  auto base = std::vector<PallasCall>{MakeMatmul(256, 256, 256, 128, 128, 128)};
  base[0].grid.push_back(4);
  for (BlockMapping& block : base[0].blocks) block.index_map.inputs.push_back({4, {}, ""});
  auto more = base;
  more[0].grid[3] = 8;
  EXPECT_THAT(*WhyInconsistent(base, more), HasSubstr("selects no block"));
}

TEST(Slots, PaddedOperandsMayGrowWithTheBlock) {
  const std::vector<PallasCall> base = {MakeMatmul(1024, 256, 256, 128, 128, 128)};
  EXPECT_TRUE(Consistent(base, {MakeMatmul(1152, 256, 256, 384, 128, 128)}));
}

TEST(Params, OneNamedSiteIsSettledByItsProbe) {
  const std::vector<TunableSite> sites = {Site("bm", 128)};
  const std::vector<PallasCall> base = {MakeMatmul(4096, 1024, 1024, 128, 256, 512)};
  const Grouping grouping = GroupSites(sites, base, {{0, 64, true, {MakeMatmul(4096, 1024, 1024, 64, 256, 512)}}});
  ASSERT_EQ(grouping.groups.size(), 1u);
  ASSERT_TRUE(grouping.groups[0].settled.has_value());
  Parameter parameter = *grouping.groups[0].settled;
  EXPECT_EQ(parameter.name, "bm");
  EXPECT_EQ(parameter.current, 128);
  EXPECT_THAT(parameter.extents, ElementsAre(4096));
  EXPECT_FALSE(parameter.reduction);
  const auto calls = Substitute(base, {parameter}, {1024});
  ASSERT_TRUE(calls.has_value());
  EXPECT_TRUE(CompareCalls({MakeMatmul(4096, 1024, 1024, 1024, 256, 512)}, *calls)->empty());

  const auto tail = TailProbe(parameter, base);
  ASSERT_EQ(tail, 384);
  Parameter rounds_down = parameter;
  auto floor = std::vector<PallasCall>{MakeMatmul(4096, 1024, 1024, 384, 256, 512)};
  ObserveTails(parameter, *tail, base, true, floor);
  EXPECT_EQ(parameter.tails, TailSupport::kRoundsUp);
  floor[0].grid[0] = 10;
  ObserveTails(rounds_down, *tail, base, true, floor);
  EXPECT_EQ(rounds_down.tails, TailSupport::kDivisors);
  ObserveTails(rounds_down, *tail, base, false, {});
  EXPECT_EQ(rounds_down.tails, TailSupport::kDivisors);
}

TEST(Params, NumberOfBlocksAsASite) {
  // grid=(n_blocks, …) with bm = m // n_blocks
  const std::vector<TunableSite> sites = {Site("n_blocks", 32, SiteKind::kModuleConstant)};
  const std::vector<PallasCall> base = {MakeMatmul(4096, 256, 256, 128, 256, 256)};
  const Grouping grouping = GroupSites(sites, base, {{0, 16, true, {MakeMatmul(4096, 256, 256, 256, 256, 256)}}});
  ASSERT_EQ(grouping.groups.size(), 1u);
  ASSERT_TRUE(grouping.groups[0].settled.has_value());
  const Parameter& parameter = *grouping.groups[0].settled;
  EXPECT_EQ(parameter.current, 128);
  EXPECT_THAT(*SiteValues(parameter, 512), ElementsAre(std::pair<size_t, int64_t>(0, 8)));
}

TEST(Params, MultiplesOfATile) {
  // rows = 4 * LANES in the source, where the site is the 4.
  const std::vector<TunableSite> sites = {Site("", 4, SiteKind::kAssignment)};
  const std::vector<PallasCall> base = {MakeMatmul(4096, 256, 256, 512, 256, 256)};
  const Grouping grouping = GroupSites(sites, base, {{0, 2, true, {MakeMatmul(4096, 256, 256, 256, 256, 256)}}});
  ASSERT_TRUE(grouping.groups.at(0).settled.has_value());
  EXPECT_EQ(grouping.groups[0].settled->current, 4);
  CandidateOptions options;
  EXPECT_THAT(LegalValues(*grouping.groups[0].settled, base, options), ElementsAre(1, 2, 4, 8, 16, 32));
}

TEST(Params, SitesThatMoveNothingOrTooMuchAreLeftOut) {
  const std::vector<TunableSite> sites = {Site("a", 128), Site("b", 2), Site("limit", 100)};
  const std::vector<PallasCall> base = {MakeMatmul(256, 256, 256, 128, 128, 128)};
  auto limited = base;
  limited[0].vmem_limit_bytes = 50;
  const Grouping grouping =
      GroupSites(sites, base, {{0, 64, true, base}, {1, 4, true, {base[0], base[0]}}, {2, 50, true, limited}});
  EXPECT_THAT(grouping.groups, IsEmpty());
  EXPECT_THAT(grouping.notes, Contains(HasSubstr("number of the kernels")));
  EXPECT_THAT(grouping.vmem_limit_sites, ElementsAre(std::pair<size_t, int>(2, 0)));
}

TEST(Params, SettleRefusesWhatIsNotAsExpected) {
  const std::vector<TunableSite> sites = {Site("bm", 128)};
  const std::vector<PallasCall> base = {MakeMatmul(4096, 1024, 1024, 128, 256, 512)};
  const auto half = std::vector<PallasCall>{MakeMatmul(4096, 1024, 1024, 64, 256, 512)};
  const Hypothesis hypothesis = GroupSites(sites, base, {{0, 64, true, half}}).groups.at(0).hypotheses.at(0);
  EXPECT_TRUE(Settle(hypothesis, base, true, half).has_value());
  EXPECT_THAT(Settle(hypothesis, base, false, half).error().message(), HasSubstr("does not trace"));
  EXPECT_THAT(Settle(hypothesis, base, true, base).error().message(), HasSubstr("grid[0] became 32 instead of 64"));
  auto odd = half;
  odd[0].scratch[0].dims[0] = 96;
  EXPECT_THAT(Settle(hypothesis, base, true, odd).error().message(), HasSubstr("does not scale"));
}

TEST(Params, EditsConflictWhenTwoParametersWantOnePlace) {
  const std::vector<TunableSite> sites = {Site("bm", 128)};
  Parameter a;
  a.name = "a";
  a.current = 128;
  a.members = {{0, Member::Role::kBlock, 1, 1, 0}};
  EXPECT_EQ(ParameterEdits(sites, {a, a}, {256, 512}).error().kind(), ErrorKind::kConflict);
  EXPECT_EQ(ParameterEdits(sites, {a, a}, {256, 256})->size(), 1u);
  EXPECT_TRUE(ParameterEdits(sites, {a}, {128})->empty());
}

}  // namespace
}  // namespace kernelwright::kernels
