#include "daemon/cost/program_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/cost/cost_test_util.h"

namespace kernelwright::cost {
namespace {

using ::testing::HasSubstr;

constexpr const char* kChipNames[] = {"v5e", "v5p", "v6e", "tpu7x"};

Estimate MustEstimate(const std::string& chip, const std::string& program, const Work& work = {}) {
  CostResult result = EstimateFromDumps(GoldenDumps(chip, program), ShippedChip(chip), work, {{"libtpu", "0.0.52"}});
  if (const auto* refusal = std::get_if<Refusal>(&result)) {
    ADD_FAILURE() << chip << " " << program << ": " << refusal->reason << " | " << refusal->instruction;
    return {};
  }
  return std::get<Estimate>(result);
}

Refusal MustRefuse(const std::string& chip, const std::string& program) {
  CostResult result = EstimateFromDumps(GoldenDumps(chip, program), ShippedChip(chip), {}, {});
  const auto* refusal = std::get_if<Refusal>(&result);
  if (refusal == nullptr) {
    ADD_FAILURE() << chip << " " << program << " was estimated";
    return {};
  }
  return *refusal;
}

class EstimateOnEveryChip : public ::testing::TestWithParam<const char*> {};

// f32[2048,128] in blocks of 256 rows: two operands read, one written, each byte once.
TEST_P(EstimateOnEveryChip, MovesEachByteOnce) {
  const Estimate e = MustEstimate(GetParam(), "add");
  EXPECT_EQ(e.dma_bytes, 3 * 2048 * 128 * 4);
  EXPECT_GT(e.milliseconds, 0.0005);
  EXPECT_LT(e.milliseconds, 0.05);
  EXPECT_EQ(e.evidence.evidence_class, EvidenceClass::kEstimated);
  EXPECT_EQ(e.evidence.chip, GetParam());
  EXPECT_EQ(e.evidence.method, "replay");
  EXPECT_EQ(e.evidence.versions.at("libtpu"), "0.0.52");
  EXPECT_LT(e.low_milliseconds, e.milliseconds);
  EXPECT_GT(e.high_milliseconds, e.milliseconds);
  EXPECT_TRUE(e.warnings.empty() || GetParam() != std::string("v6e")) << e.warnings[0];
}

TEST_P(EstimateOnEveryChip, LinesAndKernelsAddUpToTheTotal) {
  for (const char* program : {"add", "mms"}) {
    const Estimate e = MustEstimate(GetParam(), program);
    double lines = 0;
    double line_bytes = 0;
    for (const LineCost& line : e.lines) {
      lines += line.cycles;
      line_bytes += line.dma_bytes;
    }
    double kernels = 0;
    for (const KernelCost& kernel : e.kernels) kernels += kernel.cycles;
    EXPECT_NEAR(lines, e.total_cycles, 1e-6 * e.total_cycles) << program;
    EXPECT_NEAR(kernels, e.total_cycles, 1e-6 * e.total_cycles) << program;
    EXPECT_NEAR(line_bytes, e.dma_bytes, 1) << program;
  }
}

TEST_P(EstimateOnEveryChip, SourceLinesAreNamed) {
  const Estimate e = MustEstimate(GetParam(), "add");
  const auto line = std::find_if(e.lines.begin(), e.lines.end(),
                                 [](const LineCost& l) { return l.file == "kernel.py" && l.line == 5; });
  ASSERT_NE(line, e.lines.end());
  EXPECT_GT(line->cycles, 8 * 20);
  // 256 x 128 floats are 32 registers, added 8 times; the store is one slot each.
  EXPECT_NEAR(line->slots.at("store"), 8 * 32, 1e-6);
  EXPECT_NEAR(line->slots.at("load"), 2 * 8 * 32, 1e-6);
  EXPECT_EQ(e.lines.front().line, 0) << "what the compiler gives no line";
}

TEST_P(EstimateOnEveryChip, GridStepsAreCounted) {
  const Estimate e = MustEstimate(GetParam(), "add");
  const auto kernel =
      std::find_if(e.kernels.begin(), e.kernels.end(), [](const KernelCost& k) { return k.name == "add.1"; });
  ASSERT_NE(kernel, e.kernels.end());
  EXPECT_EQ(kernel->calls, 1);
  // 8 steps and the two extra rounds of the pipeline: nine jumps back.
  EXPECT_EQ(kernel->loop_iterations, 9);
}

INSTANTIATE_TEST_SUITE_P(Chips, EstimateOnEveryChip, ::testing::ValuesIn(kChipNames));

TEST(EstimateTest, InnerLoopsAreFollowed) {
  const Estimate e = MustEstimate("v5e", "loop");
  const auto kernel =
      std::find_if(e.kernels.begin(), e.kernels.end(), [](const KernelCost& k) { return k.name == "loop.1"; });
  ASSERT_NE(kernel, e.kernels.end());
  EXPECT_GE(kernel->dma_bytes, 1024 * 128 * 4);
}

// A hand-written copy loop: 16 rounds, in and out waited for in each.
TEST(EstimateTest, ManualCopiesWait) {
  const Estimate e = MustEstimate("v5e", "manual");
  EXPECT_EQ(e.dma_bytes, 2 * 128 * 128 * 4);
  EXPECT_EQ(e.bound, Bound::kLatency);
  const double latency_ms = ShippedChip("v5e").dma_latency_us.value * 1e-3;
  EXPECT_GE(e.milliseconds, 32 * latency_ms);
}

TEST(EstimateTest, FusionsOfPlainXlaAreEstimated) {
  const Estimate e = MustEstimate("v5e", "xlaadd");
  EXPECT_EQ(e.dma_bytes, 4 * 256 * 128 * 4 + 16 * 32) << "two in, two out, and the table of results";
}

TEST(EstimateTest, RefusesBranchesOnData) {
  const Refusal when = MustRefuse("v5e", "when");
  EXPECT_THAT(when.reason, HasSubstr("a branch depends on data"));
  EXPECT_THAT(when.reason, HasSubstr("when.1"));
  EXPECT_THAT(when.instruction, HasSubstr("sbr.rel"));
  EXPECT_THAT(when.instruction, HasSubstr("kernel.py\":36"));
  EXPECT_EQ(when.evidence.chip, "v5e");
  EXPECT_THAT(MustRefuse("v5e", "dynloop").instruction, HasSubstr("sbr.rel"));
}

TEST(EstimateTest, RefusesCopiesThatDependOnPrefetchedScalars) {
  for (const char* chip : {"v5e", "v6e"}) {
    const Refusal refusal = MustRefuse(chip, "prefetch");
    EXPECT_THAT(refusal.reason, HasSubstr("whether a copy starts depends on data"));
    EXPECT_THAT(refusal.instruction, HasSubstr("dma.hbm_to_vmem"));
  }
  // On tpu7x the operand is brought on chip as a whole before the kernel: its time does not depend on the scalars.
  EXPECT_GT(MustEstimate("tpu7x", "prefetch").milliseconds, 0);
}

TEST(EstimateTest, RefusesIncompleteDumps) {
  const Chip& chip = ShippedChip("v5e");
  Dumps all = GoldenDumps("v5e", "add");
  const auto without = [&](const std::string& part) {
    Dumps some;
    for (const Dump& dump : all) {
      if (dump.name.find(part) == std::string::npos) some.push_back(dump);
    }
    return EstimateFromDumps(some, chip, {}, {});
  };
  EXPECT_THAT(std::get<Refusal>(without("add.1-03")).reason, HasSubstr("'add.1' is missing"));
  EXPECT_THAT(std::get<Refusal>(without("TLP-03")).reason, HasSubstr("TLP"));
  EXPECT_THAT(std::get<Refusal>(EstimateFromDumps({}, chip, {}, {})).reason, HasSubstr("missing"));
  Dumps cut = all;
  for (Dump& dump : cut) {
    if (dump.name.find("add.1-03") != std::string::npos) dump.text.resize(dump.text.size() / 2);
  }
  EXPECT_THAT(std::get<Refusal>(EstimateFromDumps(cut, chip, {}, {})).reason, HasSubstr("cannot be read"));
  // Cut at the end of a bundle the text still reads well.
  Dumps short_of_its_end = all;
  for (Dump& dump : short_of_its_end) {
    if (dump.name.find("add.1-03") != std::string::npos)
      dump.text.resize(dump.text.rfind('\n', dump.text.size() - 2) + 1);
  }
  EXPECT_THAT(std::get<Refusal>(EstimateFromDumps(short_of_its_end, chip, {}, {})).reason, HasSubstr("cut off"));
  Dumps twice = all;
  for (const Dump& dump : all) twice.push_back({"2" + dump.name, dump.text});
  EXPECT_THAT(std::get<Refusal>(EstimateFromDumps(twice, chip, {}, {})).reason, HasSubstr("more than one"));
}

TEST(EstimateTest, FloorAndRoofline) {
  Work work;
  work.bytes = 3.0 * 2048 * 128 * 4;
  const Estimate e = MustEstimate("v5e", "add", work);
  EXPECT_NEAR(e.floor_milliseconds, 3.0 * 2048 * 128 * 4 / 819e9 * 1e3, 1e-9);
  EXPECT_NEAR(e.roofline_fraction, e.floor_milliseconds / e.milliseconds, 1e-9);
  EXPECT_FALSE(e.below_floor);
  work.flops = 1e15;
  work.flop_dtype = "bfloat16";
  const Estimate impossible = MustEstimate("v5e", "add", work);
  EXPECT_TRUE(impossible.below_floor);
  EXPECT_EQ(impossible.confidence, Confidence::kLow);
}

// A top-level program that names no kernel, beside dumps of one: found on a grouped product of XLA's.
TEST(EstimateTest, KernelsThatNeverRunAreARefusal) {
  Dumps dumps = GoldenDumps("v5e", "add");
  for (Dump& dump : dumps) {
    if (dump.name.find("TLP") == std::string::npos || dump.name.find("final_bundles") == std::string::npos) continue;
    const size_t call = dump.text.find("inlined_call %");
    ASSERT_NE(call, std::string::npos);
    dump.text.replace(call, 12, "sfence      ");
  }
  const CostResult result = EstimateFromDumps(std::move(dumps), ShippedChip("v5e"), {}, {});
  ASSERT_TRUE(std::holds_alternative<Refusal>(result));
  EXPECT_THAT(std::get<Refusal>(result).reason, ::testing::HasSubstr("none of the program's kernels ran"));
}

}  // namespace
}  // namespace kernelwright::cost
