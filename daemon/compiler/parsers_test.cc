#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/compiler/allocations.h"
#include "daemon/compiler/bundles.h"
#include "daemon/compiler/compiler_test_util.h"
#include "daemon/compiler/dump_name.h"
#include "daemon/compiler/hlo.h"
#include "daemon/compiler/schedule_analysis.h"
#include "daemon/compiler/utilization.h"

namespace kernelwright::compiler {
namespace {

using ::testing::HasSubstr;

TEST(DumpNameTest, SplitsUnitAndLabel) {
  const auto check = [](const char* name, const char* unit, std::string_view label) {
    const auto parsed = ParseDumpName(name);
    ASSERT_TRUE(parsed) << name;
    EXPECT_EQ(parsed->unit, unit);
    EXPECT_EQ(parsed->label, label);
  };
  check("/d/1796-mm.1-03-final_bundles.txt", "mm.1", kFinalBundles);
  check("1796-copy-start.2-03-final_bundles.txt", "copy-start.2", kFinalBundles);
  check("1796-<late-initialization>-03-final_bundles.txt", "<late-initialization>", kFinalBundles);
  check("1796-mm.1-02-schedule-analysis_final_bundles.txt", "mm.1", kScheduleAnalysis);
  check("1796-mm.1-01-final_hlo-static-per-bundle-utilization.txt", "mm.1", kUtilization);
  check("1796-TLP-hlo.txt", "TLP", kHlo);
  EXPECT_FALSE(ParseDumpName("cost.txt"));
  EXPECT_FALSE(ParseDumpName(""));
  EXPECT_FALSE(ParseDumpName("12-.txt"));
}

TEST(HloTest, ReadsInstructionsAndSources) {
  const auto module = ParseHlo(ReadGolden("v5e/add/1-TLP-hlo.txt"));
  ASSERT_TRUE(module) << module.error().ToString();
  const HloInstruction* add = module->Find("add.1");
  ASSERT_NE(add, nullptr);
  EXPECT_EQ(add->opcode, "custom-call");
  EXPECT_EQ(add->type, "f32[2048,128]{1,0:T(8,128)}");
  EXPECT_EQ(add->operands, (std::vector<std::string>{"x.1", "y.1"}));
  EXPECT_EQ(add->file, "kernel.py");
  EXPECT_EQ(add->line, 7);
  EXPECT_TRUE(add->is_root);
  EXPECT_THAT(add->op_name, HasSubstr("pallas_call"));
}

constexpr const char* kFusions = R"(HloModule m

%f.1 (p: f32[8], q: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %q = f32[8]{0} parameter(1)
  ROOT %a = f32[8]{0} add(%p, %q), metadata={op_name="x"}
}

%f.2 (r: f32[8], s: f32[8]) -> f32[8] {
  %r = f32[8]{0} parameter(0)
  %s = f32[8]{0} parameter(1)
  ROOT %b = f32[8]{0} add(%r, %s)
}

%f.3 (t: f32[8], u: f32[8]) -> f32[8] {
  %t = f32[8]{0} parameter(0)
  %u = f32[8]{0} parameter(1)
  ROOT %c = f32[8]{0} multiply(%t, %u)
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %fusion = f32[8]{0} fusion(%x, %x), kind=kLoop, calls=%f.1
  %fusion.2 = f32[8]{0} fusion(%fusion, %x), kind=kLoop, calls=%f.2
  ROOT %fusion.3 = f32[8]{0} fusion(%fusion.2, %x), kind=kLoop, calls=%f.3
}
)";

TEST(HloTest, SignaturesTellEqualFusionsFromOthers) {
  const auto module = ParseHlo(kFusions);
  ASSERT_TRUE(module) << module.error().ToString();
  EXPECT_EQ(module->Signature("fusion"), module->Signature("fusion.2"));
  EXPECT_NE(module->Signature("fusion"), module->Signature("fusion.3"));
  EXPECT_EQ(module->Signature("nothing"), "");
}

// Kernels with metadata of their own carry a map that is printed with a line for each entry.
TEST(HloTest, InstructionsMayTakeSeveralLines) {
  const auto module = ParseHlo(
      "HloModule m\n\nENTRY %main (a: f32[8]) -> f32[8] {\n"
      "  %k.1 = f32[8]{0} custom-call(%a), custom_call_target=\"tpu_custom_call\", "
      "frontend_attributes={kernel_metadata={\n"
      "\"xprof_metadata\":\"{\\\"block\\\": 512, (\"\n}}, metadata={op_name=\"f\" source_file=\"k.py\" source_line=7}\n"
      "  ROOT %add.2 = f32[8]{0} add(%k.1, %k.1)\n}\n");
  ASSERT_TRUE(module) << module.error().ToString();
  ASSERT_NE(module->Find("k.1"), nullptr);
  EXPECT_EQ(module->Find("k.1")->line, 7);
  ASSERT_NE(module->Find("add.2"), nullptr);
}

TEST(HloTest, RejectsForeignAndTruncatedText) {
  EXPECT_FALSE(ParseHlo("= control target key start"));
  EXPECT_FALSE(ParseHlo(""));
  const std::string text = kFusions;
  EXPECT_FALSE(ParseHlo(text.substr(0, text.size() - 2)));
  for (size_t size = 0; size < text.size(); ++size) (void)ParseHlo(text.substr(0, size));
}

TEST(AllocationsTest, ReadsSpacesSizesAndTags) {
  const auto allocations = ParseAllocations(ReadGolden("v5e/mms/1-mm.1-00-pre-finalize-registers-and-allocations.txt"));
  uint64_t windows = 0;
  bool core_index = false;
  for (const Allocation& a : allocations) {
    if (a.space == "vmem" && a.tag.find("window allocation") != std::string::npos) windows += a.size;
    core_index |= a.space == "smem" && a.tag.ends_with("- core index");
  }
  EXPECT_EQ(windows, 3u * 65536u);
  EXPECT_TRUE(core_index);
  EXPECT_TRUE(ParseAllocations("#allocation [shape = ").empty());
}

TEST(UtilizationTest, MatchesTheSchedule) {
  const auto table = ParseUtilization(ReadGolden("v5e/mms/1-mm.1-01-final_hlo-static-per-bundle-utilization.txt"));
  ASSERT_TRUE(table) << table.error().ToString();
  const auto program = ParseBundles(ReadGolden("v5e/mms/1-mm.1-03-final_bundles.txt"));
  ASSERT_TRUE(program);
  EXPECT_EQ(table->bundles(), program->bundle_count());
  EXPECT_EQ(table->capacity[static_cast<size_t>(table->Column("MATMUL"))], 4);
  EXPECT_EQ(table->Column("NOTHING"), -1);
  int busy = 0;
  for (size_t i = 0; i < table->bundles(); ++i) busy += table->at(i, table->Column("VSTORE"));
  EXPECT_GT(busy, 16);
}

TEST(UtilizationTest, RejectsOtherText) {
  EXPECT_FALSE(ParseUtilization(""));
  EXPECT_FALSE(ParseUtilization("== CAPACTIY:\nA, B\n 1 2\n== UTILIZATION:\n1 2 3\n"));
  EXPECT_FALSE(ParseUtilization("== CAPACTIY:\nA, B\n 1 x\n"));
  EXPECT_TRUE(ParseUtilization("== CAPACTIY:\nA, B\n 1 2\n== UTILIZATION:\n1 2\n"));
}

TEST(ScheduleAnalysisTest, ReadsTotalsAndInstructions) {
  const auto analysis = ParseScheduleAnalysis(ReadGolden("v5e/mms/1-mm.1-02-schedule-analysis_final_bundles.txt"));
  ASSERT_TRUE(analysis) << analysis.error().ToString();
  EXPECT_EQ(analysis->total_bundles, 211);
  EXPECT_EQ(analysis->empty_bundles + analysis->non_empty_bundles, analysis->total_bundles);
  ASSERT_EQ(analysis->instructions.size(), 1u);
  EXPECT_EQ(analysis->instructions[0].instruction, "mm.1");
  EXPECT_EQ(analysis->instructions[0].bundles, 203);
  EXPECT_FALSE(ParseScheduleAnalysis("total scheduled bundles: 3\n"));
}

}  // namespace
}  // namespace kernelwright::compiler
