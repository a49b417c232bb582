#include "daemon/profile/build_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/profile/line_table.h"
#include "daemon/profile/profile_test_util.h"
#include "daemon/profile/register_pressure.h"

namespace kernelwright::profile {
namespace {

using ::testing::HasSubstr;

class OnEveryChip : public ::testing::TestWithParam<const char*> {};

// To the last tick, for every unit and for the program, and by the estimate's own total.
TEST_P(OnEveryChip, LineTotalsEqualTheDumpsTotals) {
  for (const char* program : {"add", "mms"}) {
    const cost::DetailedCost detail = Detail(GetParam(), program);
    ASSERT_TRUE(detail.replayed);
    double all = 0;
    for (const cost::UnitDetail& unit : detail.units) {
      if (unit.trace.calls == 0) continue;
      double lines = 0;
      for (const LineProfile& line : LinesOfUnit(unit, unit.trace)) lines += line.cycles;
      EXPECT_EQ(lines, static_cast<double>(unit.trace.ticks) / cost::kTicksPerCycle) << unit.name;
      all += lines;
    }
    const ProfileReport report = Report(GetParam(), program);
    double merged = 0;
    double bytes = 0;
    double waits = 0;
    for (const LineProfile& line : report.lines) {
      merged += line.cycles;
      bytes += line.dma_bytes;
      waits += line.dma_wait_cycles;
    }
    EXPECT_EQ(merged, all);
    EXPECT_EQ(merged, report.totals.cycles);
    EXPECT_EQ(merged, report.estimate()->total_cycles);
    EXPECT_NEAR(bytes, report.estimate()->dma_bytes, 1e-6);
    EXPECT_NEAR(waits, report.totals.dma_wait_cycles, 1e-6);
  }
}

TEST_P(OnEveryChip, AnEstimateInDetailIsTheSameEstimate) {
  const cost::CostResult plain =
      cost::EstimateFromDumps(Dumps(GetParam(), "mms"), cost::ShippedChip(GetParam()), {}, {});
  const cost::DetailedCost detail = Detail(GetParam(), "mms");
  EXPECT_EQ(std::get<cost::Estimate>(plain).total_cycles, std::get<cost::Estimate>(detail.cost).total_cycles);
}

// The grid has 2 x 2 x 2 steps of 128 x 128 x 128: two windows of 32 KiB come in with each.
TEST_P(OnEveryChip, ASettledStepOfAMatmul) {
  const ProfileReport report = Report(GetParam(), "mms");
  const KernelProfile* kernel = FindKernel(report, "mm.1");
  ASSERT_NE(kernel, nullptr);
  const bool two_cores = std::string(GetParam()) == "v5p";
  EXPECT_THAT(kernel->grid, ::testing::ElementsAre(two_cores ? 1 : 2, 2, 2)) << "from the dump: one core's part";
  EXPECT_EQ(kernel->grid_steps, two_cores ? 4 : 8);
  ASSERT_TRUE(kernel->step);
  const Step& step = *kernel->step;
  EXPECT_GT(step.busy_cycles, 50);
  EXPECT_NEAR(step.busy_cycles + step.wait_cycles, step.cycles, 1e-6);
  EXPECT_GE(step.dma_bytes, 32768);
  EXPECT_LE(step.dma_bytes, 3 * 32768);
  EXPECT_GT(step.products, 0);
  EXPECT_GT(step.units.at("load"), 0);
  const Timeline& timeline = step.timeline;
  EXPECT_LE(timeline.lines.size(), kTimelineSlices);
  EXPECT_NEAR(timeline.slice_cycles * static_cast<double>(timeline.lines.size()), timeline.cycles, 1e-6);
  EXPECT_NEAR(timeline.cycles, step.cycles * timeline.steps, 1e-6);
  double waits = 0;
  for (const double part : timeline.units.at("wait")) waits += part * timeline.slice_cycles;
  EXPECT_NEAR(waits, step.wait_cycles * timeline.steps, 1e-6 * timeline.cycles + 1e-9);
  EXPECT_FALSE(timeline.copies.empty());
}

TEST_P(OnEveryChip, VmemIsMapped) {
  const ProfileReport report = Report(GetParam(), "mms");
  const KernelProfile* kernel = FindKernel(report, "mm.1");
  ASSERT_NE(kernel, nullptr);
  int64_t windows = 0;
  int64_t sum = 0;
  for (const VmemRegion& region : kernel->vmem.regions) {
    sum += region.bytes;
    if (region.kind == "input window" || region.kind == "output window") {
      ++windows;
      EXPECT_EQ(region.buffers, 2);
      EXPECT_EQ(region.bytes, 65536);
      EXPECT_EQ(region.shape, "bf16[128,128]");
    }
    if (region.kind == "scratch") {
      EXPECT_EQ(region.bytes, 65536);
    }
  }
  EXPECT_EQ(windows, 3);
  EXPECT_EQ(sum, kernel->vmem.total);
  EXPECT_LT(kernel->vmem.total, kernel->vmem.limit);
}

INSTANTIATE_TEST_SUITE_P(Chips, OnEveryChip, ::testing::Values("v5e", "v5p", "v6e", "tpu7x"));

TEST(BuildReportTest, CastsOnALineThatAsksForNoneAreTheCompilers) {
  PallasCall call;
  call.name = "casts";
  call.grid = {4};
  Operation exp;
  exp.name = "exp";
  exp.spans = {{"kernel.py", 10, 18, 10, 28, "casts_kernel"}};
  call.kernel.operations = {exp};
  const Program program = ProgramOf(call);
  const ProfileReport report = Report("v5e", "casts", &program);
  const LineProfile* line = FindLine(report, 10);
  ASSERT_NE(line, nullptr);
  EXPECT_EQ(line->text, "o_ref[...] = jnp.exp(x) * x");
  EXPECT_TRUE(line->casts_inserted);
  // 4 steps; 16 x 256 in bfloat16 are 4 words of 8 x 128 each way: unpacked to 4 pairs... and packed into 4.
  EXPECT_NEAR(report.totals.casts, 4 * 12, 1e-6);

  Operation convert;
  convert.name = "convert_element_type";
  convert.spans = exp.spans;
  PallasCall asked = call;
  asked.kernel.operations = {exp, convert};
  const Program converting = ProgramOf(asked);
  EXPECT_FALSE(FindLine(Report("v5e", "casts", &converting), 10)->casts_inserted);
  // The vector unit of v6e computes in bfloat16.
  EXPECT_EQ(Report("v6e", "casts").totals.casts, 0);
}

TEST(BuildReportTest, SpillsAreSlotsInVmemAndOnLines) {
  const ProfileReport report = Report("v5e", "spill");
  const KernelProfile* kernel = FindKernel(report, "spill.1");
  ASSERT_NE(kernel, nullptr);
  EXPECT_GT(kernel->spills, 0);
  EXPECT_GE(kernel->live_registers, 60);
  EXPECT_LE(kernel->live_registers, kVectorRegisters);
  double fills = 0;
  for (const LineProfile& line : report.lines) fills += line.fills;
  EXPECT_GT(fills, 0);
  EXPECT_LT(fills, kernel->spills);
  const auto slots = std::find_if(kernel->vmem.regions.begin(), kernel->vmem.regions.end(),
                                  [](const VmemRegion& region) { return region.kind == "spill slots"; });
  ASSERT_NE(slots, kernel->vmem.regions.end());
  EXPECT_EQ(slots->bytes % 4096, 0);
}

// XLA's fusions carry no lines: all of a fusion is on the line that its HLO names.
TEST(BuildReportTest, AFusionIsOnTheLineOfItsHlo) {
  const ProfileReport report = Report("v5e", "xlaadd");
  const KernelProfile* fusion = FindKernel(report, "fusion");
  ASSERT_NE(fusion, nullptr);
  ASSERT_EQ(fusion->lines.size(), 1);
  EXPECT_EQ(fusion->lines[0].file, fusion->file);
  EXPECT_EQ(fusion->lines[0].line, fusion->line);
  EXPECT_EQ(fusion->lines[0].cycles, fusion->cycles);
}

TEST(BuildReportTest, TransposesAreMoves) {
  const ProfileReport report = Report("v5e", "transpose");
  // 128 x 128 floats are 16 registers, 4 steps.
  EXPECT_NEAR(report.totals.relayouts, 4 * 16, 1e-6);
}

TEST(BuildReportTest, ARefusalStillCountsTheSchedule) {
  const ProfileReport report = Report("v5e", "when");
  EXPECT_EQ(report.estimate(), nullptr);
  EXPECT_TRUE(report.static_counts);
  EXPECT_THAT(std::get<cost::Refusal>(report.cost).reason, HasSubstr("a branch depends on data"));
  const KernelProfile* kernel = FindKernel(report, "when.1");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->cycles, static_cast<double>(kernel->bundles));
  EXPECT_FALSE(kernel->step);
  EXPECT_EQ(kernel->headroom, 0);
  double lines = 0;
  for (const LineProfile& line : kernel->lines) lines += line.cycles;
  EXPECT_EQ(lines, kernel->cycles);
  EXPECT_TRUE(report.advice.empty());
}

TEST(BuildReportTest, WithoutASingleScheduleThereIsAnEmptyReport) {
  ProfileInput input;
  const ProfileReport report =
      BuildReport(cost::EstimateInDetail({}, cost::ShippedChip("v5e"), {}, {}, 1), cost::ShippedChip("v5e"), input);
  EXPECT_EQ(report.estimate(), nullptr);
  EXPECT_TRUE(report.lines.empty());
}

TEST(BuildReportTest, AMatmulHasItsPlaceUnderTheRoof) {
  const Program program = ProgramOf(cost::MatmulCall(256, 256, 256, 128, 128, 128));
  cost::Work work;
  work.flops = 2.0 * 256 * 256 * 256;
  work.bytes = 3.0 * 256 * 256 * 2;
  work.flop_dtype = "bfloat16";
  const ProfileReport report = Report("v5e", "mms", &program, work);
  const KernelProfile* kernel = FindKernel(report, "mm.1");
  ASSERT_NE(kernel, nullptr);
  ASSERT_TRUE(kernel->roofline);
  EXPECT_EQ(kernel->roofline->flops, *work.flops);
  EXPECT_GT(kernel->roofline->attainable_share, 0);
  EXPECT_LT(kernel->roofline->attainable_share, 1);
  EXPECT_GT(kernel->headroom, 1);
  ASSERT_TRUE(report.roofline);
  EXPECT_NEAR(report.roofline->peak, 197e12, 1e9);
}

TEST(RegisterPressureTest, CountsValuesUntilTheirLastUse) {
  const auto program = compiler::ParseBundles(
      "= control target key start\n= control target key end\n\n"
      "     0   :  { %v1_v0 = vld [vmem:[#allocation1] sm:$0xff]  ;;  %v2_v1 = vld [vmem:[#allocation1 + $0x8] "
      "sm:$0xff] }\n"
      "   0x1   :  { %v3_v2 = vadd.f32 %v1_v0, %v2_v1 }\n"
      "   0x2   :  { %v4_v0 = vmul.f32 %v3_v2, %v3_v2 }\n"
      "   0x3   :  { %9 = vst [vmem:[#allocation1] sm:$0xff] /*vst_source=*/%v4_v0 }\n"
      "   0x4   :  {}\n");
  ASSERT_TRUE(program) << program.error().ToString();
  EXPECT_THAT(RegisterPressure(*program), ::testing::ElementsAre(2, 3, 2, 1, 0));
}

}  // namespace
}  // namespace kernelwright::profile
