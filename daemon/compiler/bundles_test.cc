#include "daemon/compiler/bundles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/compiler/compiler_test_util.h"

namespace kernelwright::compiler {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLegend = "= control target key start\nLB: loop body\n= control target key end\n\n";

Expected<BundleProgram> Parse(const std::string& body) { return ParseBundles(kLegend + body); }

TEST(BundlesTest, ReadsOperationsLabelsDepthAndRegions) {
  const auto program = Parse(
      "     0   :  { %s1_s0 = smov.u32 0  ;;  %v2_v1 = vadd.f32 %v0_v0, %v0_v0 } /* Start region 0 :: Start/End empty "
      "region 3 */\n"
      "   0x1 LB: > { %3 = sbr.rel (!%p4_p1) target = $region7 } /* Start region 7 :: End region 7 */\n"
      "   0x2   :  {}\n");
  ASSERT_TRUE(program) << program.error().ToString();
  ASSERT_EQ(program->bundle_count(), 3u);
  EXPECT_EQ(program->op_end(0) - program->op_begin(0), 2u);
  EXPECT_EQ(program->bundle(1).label, BundleLabel::kLoopBody);
  EXPECT_EQ(program->bundle(1).depth, 1);
  EXPECT_EQ(program->bundle(2).depth, 1) << "an empty bundle lies where the one before it lies";
  EXPECT_EQ(program->op_begin(2), program->op_end(2));
  EXPECT_EQ(program->FindRegion(0), 0);
  EXPECT_EQ(program->FindRegion(3), 0);
  EXPECT_EQ(program->FindRegion(7), 1);
  EXPECT_EQ(program->FindRegion(4), -1);
  EXPECT_EQ(program->op_text(program->ops()[1]), "%v2_v1 = vadd.f32 %v0_v0, %v0_v0");
}

TEST(BundlesTest, ReadsLocationsOfAllForms) {
  const auto program = Parse(
      "     0   :  { %v2_v1 = vadd.f32 %v0_v0, %v0_v0 /* loc(\"a b.py\":14:16 to :81) :: phi copy :: "
      "loc(\"k.py\":2:3 to 15:9) */  ;;  %4 = vst [vmem:[#allocation1]] /*vst_source=*/%v2_v1 /* loc(\"k.py\":7:1) */ "
      "}\n");
  ASSERT_TRUE(program) << program.error().ToString();
  const BundleOp& add = program->ops()[0];
  ASSERT_EQ(add.location_count, 2);
  const SourceLocation first = program->locations()[program->op_locations()[add.location_begin]];
  EXPECT_EQ(program->files()[first.file], "a b.py");
  EXPECT_EQ(first, (SourceLocation{first.file, 14, 16, 14, 81}));
  const SourceLocation second = program->locations()[program->op_locations()[add.location_begin + 1]];
  EXPECT_EQ(second, (SourceLocation{second.file, 2, 3, 15, 9}));
  const BundleOp& store = program->ops()[1];
  ASSERT_EQ(store.location_count, 1);
  EXPECT_EQ(program->locations()[program->op_locations()[store.location_begin]].line, 7);
}

TEST(BundlesTest, JoinsCommentsOverLinesAndBracesInShapes) {
  const auto program = Parse(
      "     0   :  { %s9_s0 = inlined_call_operand.hbm [shape: f32[8,128]{1,0}, index: 0, shape index: {}] /* operand "
      "0 */ "
      " ;;  %5 = dma.hbm_to_vmem [thread:$0]  /*hbm=*/%s9_s0, /*size_in_granules=*/128 /* \nbase_bounds: (1, 1)\n"
      "second_minor_factor: 1 */ }\n   0x1   :  {}\n");
  ASSERT_TRUE(program) << program.error().ToString();
  EXPECT_EQ(program->ops().size(), 2u);
  EXPECT_EQ(program->opcode(program->ops()[1]).name, "dma.hbm_to_vmem");
  EXPECT_EQ(program->opcode(program->ops()[1]).unit, Unit::kDma);
}

// Found on a grouped product of XLA's: the comment of a copy quotes operations together with their comments.
TEST(BundlesTest, CommentsNest) {
  const auto program = Parse(
      "     0   :  { %5 = dma.hbm_to_vmem [thread:$0]  /*size_in_granules=*/%s9_s0 /* \nbase_bounds: (16384, 32)\n"
      "dynamic_data_starts: (%s1 = scalar_select /*predicate=*/%p2, /*on_true=*/%s3, /*on_false=*/16384, 0)\n"
      "window_bounds: (16, 32) */  ;;  %6 = sfence /**/ }\n   0x1   :  {}\n");
  ASSERT_TRUE(program) << program.error().ToString();
  ASSERT_EQ(program->bundle_count(), 2u);
  EXPECT_EQ(program->ops().size(), 2u);
}

TEST(BundlesTest, CountsUnknownOpcodesAndSpills) {
  const auto program = Parse(
      "     0   :  { %v1_v1 = vfrobnicate.f32 %v0_v0  ;;  %2 = vst [vmem:[#allocation9_spill] sm:$0xff] %v1_v1  ;;  %3 "
      "= "
      "sst [smem:[#allocation8_spill]] %s0_s0 }\n");
  ASSERT_TRUE(program);
  ASSERT_EQ(program->UnknownOpcodes().size(), 1u);
  EXPECT_EQ(program->UnknownOpcodes()[0].name, "vfrobnicate.f32");
  EXPECT_EQ(program->UnknownOpcodes()[0].count, 1u);
  EXPECT_EQ(program->vector_spill_ops(), 1u);
}

TEST(BundlesTest, ErrorsNameTheLine) {
  const auto mixed = Parse("     0   :  {}\n   0x2   :  {}\n");
  ASSERT_FALSE(mixed);
  EXPECT_THAT(mixed.error().ToString(), HasSubstr("consecutive"));
  EXPECT_THAT(mixed.error().where(), HasSubstr("line 6"));
  EXPECT_FALSE(ParseBundles("HloModule jit_f\n"));
  EXPECT_FALSE(ParseBundles(""));
  EXPECT_FALSE(Parse(""));
  EXPECT_FALSE(Parse("     0   :  { %s1_s0 = smov.u32 0"));
  EXPECT_FALSE(Parse("     0   :  { %s1_s0 = smov.u32 0 /* loc(\"a"));
  EXPECT_FALSE(Parse("     0   :  { %s1_s0"));
  EXPECT_FALSE(Parse("     0   :  {} trailing\n"));
  EXPECT_FALSE(Parse("   0xffffffffffffffffffff   :  {}\n"));
}

// Every opcode that the supported chips' dumps hold has a unit, and every prefix of a dump gives a result or an error.
class BundlesGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(BundlesGolden, ParsesWholeDumps) {
  for (const char* file : {"add/1-add.1-03-final_bundles.txt", "mms/1-mm.1-03-final_bundles.txt",
                           "add/1-TLP-03-final_bundles.txt", "late/1-<late-finalization>-03-final_bundles.txt"}) {
    const std::string text = ReadGolden(std::string(GetParam()) + "/" + file);
    const auto program = ParseBundles(text);
    ASSERT_TRUE(program) << file << ": " << program.error().ToString();
    EXPECT_GT(program->bundle_count(), 50u);
    for (const Opcode& opcode : program->UnknownOpcodes()) ADD_FAILURE() << file << ": no unit for " << opcode.name;
    EXPECT_LT(program->MemoryBytes(), 3 * text.size());
  }
}

TEST_P(BundlesGolden, SurvivesTruncationAtEveryPlace) {
  const std::string text = ReadGolden(std::string(GetParam()) + "/add/1-add.1-03-final_bundles.txt");
  size_t accepted = 0;
  for (size_t size = 0; size < text.size(); size += 37) {
    const auto program = ParseBundles(text.substr(0, size));
    if (program) {
      ++accepted;
    } else {
      EXPECT_FALSE(program.error().message().empty());
    }
  }
  EXPECT_LT(accepted, text.size() / 37 / 5) << "only cuts at the end of a bundle look whole";
}

TEST_P(BundlesGolden, SurvivesDamage) {
  std::string text = ReadGolden(std::string(GetParam()) + "/add/1-add.1-03-final_bundles.txt");
  uint64_t state = 42;
  for (int round = 0; round < 300; ++round) {
    std::string damaged = text;
    for (int i = 0; i < 4; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      damaged[(state >> 33) % damaged.size()] = "{}[]/*;%:\n\0x"[(state >> 20) % 12];
    }
    (void)ParseBundles(std::move(damaged));
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, BundlesGolden, ::testing::ValuesIn(kChips));

TEST(UnitTest, TableKnowsTheMainInstructions) {
  EXPECT_EQ(UnitOfOpcode("vmatmul.mubr.bf16.gmra.mrb.mxu0"), Unit::kMxu);
  EXPECT_EQ(UnitOfOpcode("vpop.f32.mrf.mxu1"), Unit::kMxu);
  EXPECT_EQ(UnitOfOpcode("vadd.xlane.f32.xlu0"), Unit::kXlu);
  EXPECT_EQ(UnitOfOpcode("vadd.f32"), Unit::kVpu);
  EXPECT_EQ(UnitOfOpcode("vexp2.f32"), Unit::kEup);
  EXPECT_EQ(UnitOfOpcode("vld"), Unit::kLoad);
  EXPECT_EQ(UnitOfOpcode("vst.msk"), Unit::kStore);
  EXPECT_EQ(UnitOfOpcode("sadd.s32"), Unit::kScalar);
  EXPECT_EQ(UnitOfOpcode("dma.done.wait"), Unit::kSync);
  EXPECT_EQ(UnitOfOpcode("dma.hbm_to_vmem"), Unit::kDma);
  EXPECT_EQ(UnitOfOpcode("quux"), Unit::kUnknown);
}

}  // namespace
}  // namespace kernelwright::compiler
