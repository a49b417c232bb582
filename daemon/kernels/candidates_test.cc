#include "daemon/kernels/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "daemon/kernels/test_calls.h"

namespace kernelwright::kernels {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMiB = int64_t{1} << 20;

// bm, bn, bk of MakeMatmul, as grouping would find them from named arguments.
std::vector<Parameter> MatmulParameters(const std::vector<PallasCall>& base, TailSupport tails) {
  const PallasCall& call = base[0];
  const auto law = [](Slot::Kind kind, int index, int dim) { return SlotLaw{{kind, 0, index, dim}, false, 1, 1, 0}; };
  const auto steps = [&](int axis, int64_t extent) {
    return SlotLaw{{Slot::Kind::kGrid, 0, axis, 0}, true, 1, 1, extent};
  };
  std::vector<Parameter> parameters(3);
  const char* names[] = {"bm", "bn", "bk"};
  const std::pair<int, int> blocks[3][2] = {{{0, 0}, {2, 0}}, {{1, 1}, {2, 1}}, {{0, 1}, {1, 0}}};
  const int64_t extents[] = {call.blocks[0].array.dims[0], call.blocks[1].array.dims[1], call.blocks[0].array.dims[1]};
  for (size_t p = 0; p < 3; ++p) {
    Parameter& parameter = parameters[p];
    parameter.name = names[p];
    parameter.members = {{p, Member::Role::kBlock, 1, 1, 0}};
    const auto [index, dim] = blocks[p][0];
    parameter.current = call.blocks[index].block[dim].size;
    for (const auto& [b, d] : blocks[p]) parameter.laws.push_back(law(Slot::Kind::kBlock, b, d));
    if (p < 2) parameter.laws.push_back(law(Slot::Kind::kScratch, 0, static_cast<int>(p)));
    parameter.laws.push_back(steps(static_cast<int>(p), extents[p]));
    parameter.extents = {extents[p]};
    parameter.reduction = p == 2;
    parameter.tails = tails;
  }
  return parameters;
}

int64_t Need(const PallasCall& call) {
  int64_t bytes = 0;
  for (const BlockMapping& block : call.blocks) {
    int64_t size = block.array.dtype == "float32" ? 4 : 2;
    for (const BlockDim& dim : block.block) size *= dim.size;
    bytes += 2 * size;
  }
  for (const TensorType& scratch : call.scratch) bytes += 4 * scratch.dims[0] * scratch.dims[1];
  return bytes;
}

std::optional<double> Traffic(const std::vector<PallasCall>& calls) {
  const PallasCall& call = calls[0];
  return 1.0 / static_cast<double>(call.blocks[2].block[0].size) +
         1.0 / static_cast<double>(call.blocks[2].block[1].size) +
         1e-9 * static_cast<double>(call.grid[0] * call.grid[1] * call.grid[2]);
}

TEST(Candidates, BlockRules) {
  const auto illegal = [](const std::string& dtype, std::vector<int64_t> dims, const std::vector<int64_t>& block) {
    const std::vector<int> axes(dims.size(), 0);
    return IllegalBlock(MakeBlock("x_ref", dtype, std::move(dims), block, axes, 1)).has_value();
  };
  EXPECT_FALSE(illegal("bfloat16", {4096, 4096}, {8, 128}));
  EXPECT_TRUE(illegal("bfloat16", {4096, 4096}, {4, 128}));
  EXPECT_TRUE(illegal("float32", {4096, 4096}, {8, 64}));
  EXPECT_FALSE(illegal("float32", {4, 64}, {4, 64}));
  EXPECT_FALSE(illegal("float32", {16, 4096, 4096}, {3, 8, 128}));
  EXPECT_FALSE(illegal("float32", {4096}, {128}));
  EXPECT_TRUE(illegal("bfloat16", {4096}, {128}));
  EXPECT_FALSE(illegal("bfloat16", {4096}, {256}));
  EXPECT_FALSE(illegal("float32", {10240}, {3072}));
  EXPECT_TRUE(illegal("float32", {10240}, {384}));
  EXPECT_FALSE(illegal("float32", {384}, {384}));
  EXPECT_THAT(*IllegalBlock(MakeBlock("x_ref", "float32", {4096, 4096}, {8, 64}, {0, 0}, 1)),
              HasSubstr("block of x_ref: dimension 1 is 64 of 4096; it must be a multiple of 128"));
  EXPECT_EQ(PackedRows("bfloat16"), 16);
  EXPECT_EQ(PackedRows("int8"), 32);
  EXPECT_EQ(PackedRows("float32"), 8);
}

TEST(Candidates, LegalValuesFollowTilesDivisorsAndTails) {
  const std::vector<PallasCall> base = {MakeMatmul(5120, 11008, 4096, 128, 128, 128)};
  const auto divisors = MatmulParameters(base, TailSupport::kDivisors);
  CandidateOptions options;
  for (const int64_t value : LegalValues(divisors[0], base, options)) {
    EXPECT_EQ(5120 % value, 0);
    EXPECT_EQ(value % 16, 0);
  }
  EXPECT_THAT(LegalValues(divisors[0], base, options), Contains(5120));
  EXPECT_THAT(LegalValues(divisors[1], base, options), ElementsAre(128, 256, 5504, 11008));
  const auto tails = MatmulParameters(base, TailSupport::kRoundsUp);
  EXPECT_THAT(LegalValues(tails[1], base, options), Contains(1024));
  // The original divides K, so nothing is known about its masks.
  EXPECT_THAT(LegalValues(tails[2], base, options), Not(Contains(384)));
  options.masked_reductions = true;
  EXPECT_THAT(LegalValues(tails[2], base, options), Contains(384));
}

TEST(Candidates, BestOfTheExhaustiveProductComesFirst) {
  const std::vector<PallasCall> base = {MakeMatmul(4096, 4096, 4096, 128, 128, 128)};
  const auto parameters = MatmulParameters(base, TailSupport::kDivisors);
  VmemPolicy vmem{16 * kMiB, 100 * kMiB, Need, {false}};
  CandidateOptions options;
  options.max_results = 10;
  const CandidateList list = EnumerateCandidates(parameters, base, options, vmem, Traffic);
  ASSERT_EQ(list.candidates.size(), 10u);
  EXPECT_GT(list.too_large, 0u);
  // Slow reference: all powers of two.
  double best = 1e9;
  for (int64_t bm = 16; bm <= 4096; bm *= 2) {
    for (int64_t bn = 128; bn <= 4096; bn *= 2) {
      for (int64_t bk = 128; bk <= 4096; bk *= 2) {
        const PallasCall call = MakeMatmul(4096, 4096, 4096, bm, bn, bk);
        if (Need(call) <= 16 * kMiB) best = std::min(best, *Traffic({call}));
      }
    }
  }
  EXPECT_DOUBLE_EQ(list.candidates[0].cost, best);
  for (const Candidate& candidate : list.candidates) {
    const auto& v = candidate.values;
    EXPECT_TRUE(CompareCalls({MakeMatmul(4096, 4096, 4096, v[0], v[1], v[2])}, candidate.calls)->empty());
    EXPECT_FALSE(IllegalBlocks(candidate.calls).has_value());
  }
  EXPECT_TRUE(std::any_of(list.candidates.begin(), list.candidates.end(), [](const auto& c) { return c.is_original; }));
}

TEST(Candidates, RaisesTheLimitOnlyWhereItMust) {
  const std::vector<PallasCall> base = {MakeMatmul(4096, 4096, 4096, 128, 128, 128)};
  const auto parameters = MatmulParameters(base, TailSupport::kDivisors);
  const VmemPolicy vmem{16 * kMiB, 100 * kMiB, Need, {true}};
  const CandidateList list = EnumerateCandidates(parameters, base, {.max_results = 5000}, vmem, Traffic);
  bool raised = false;
  for (const Candidate& candidate : list.candidates) {
    const int64_t need = Need(candidate.calls[0]);
    ASSERT_EQ(candidate.new_vmem_limits[0].has_value(), need > 16 * kMiB);
    if (!candidate.new_vmem_limits[0]) continue;
    raised = true;
    EXPECT_GE(*candidate.new_vmem_limits[0], need);
    EXPECT_LE(*candidate.new_vmem_limits[0], 100 * kMiB);
    EXPECT_EQ(candidate.calls[0].vmem_limit_bytes, candidate.new_vmem_limits[0]);
  }
  EXPECT_TRUE(raised);
}

TEST(Candidates, StaysBelowTheNumberOfAssignments) {
  const std::vector<PallasCall> base = {MakeMatmul(8192, 8192, 8192, 128, 128, 128)};
  const auto parameters = MatmulParameters(base, TailSupport::kRoundsUp);
  const CandidateList list =
      EnumerateCandidates(parameters, base, {.max_assignments = 100, .max_results = 500}, {}, nullptr);
  EXPECT_LE(list.considered, 100u);
  EXPECT_GT(list.considered, 40u);
  EXPECT_TRUE(list.candidates.front().is_original) << "without a cost the nearest to the original comes first";
}

TEST(Candidates, NothingToTuneLeavesTheOriginal) {
  const std::vector<PallasCall> base = {MakeMatmul(256, 256, 256, 128, 128, 128)};
  const CandidateList list = EnumerateCandidates({}, base, {}, {}, nullptr);
  ASSERT_EQ(list.candidates.size(), 1u);
  EXPECT_TRUE(list.candidates[0].is_original);
}

TEST(Candidates, SemanticsFollowTheOutput) {
  PallasCall call = MakeMatmul(512, 512, 512, 128, 128, 128);
  EXPECT_THAT(*ProposeSemantics(call), ElementsAre("parallel", "parallel", "arbitrary"));
  call.dimension_semantics = {"parallel", "parallel", "arbitrary"};
  EXPECT_FALSE(ProposeSemantics(call).has_value());
  call.grid.clear();
  EXPECT_FALSE(ProposeSemantics(call).has_value());
}

}  // namespace
}  // namespace kernelwright::kernels
