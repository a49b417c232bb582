// Kernels that tables and scalars steer: with their values the time is that of what they do, without it is refused,
// with the instruction. The golden programs were compiled from small kernels; their tables are in the HLO, or are given
// here.
#include "daemon/cost/known_operands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/cost/cost_test_util.h"
#include "daemon/cost/int_array.h"

namespace kernelwright::cost {
namespace {

using ::testing::HasSubstr;

KnownOperand Int32(const std::string& kernel, int operand, std::vector<int64_t> dims,
                   const std::vector<int32_t>& values) {
  KnownOperand out{kernel, operand, "int32", std::move(dims), {}};
  for (const int32_t value : values) {
    for (int shift = 0; shift < 32; shift += 8)
      out.data += static_cast<char>((static_cast<uint32_t>(value) >> shift) & 255);
  }
  return out;
}

CostResult Cost(const std::string& chip, const std::string& program, const std::vector<KnownOperand>& known = {}) {
  return EstimateFromDumps(GoldenDumps(chip, program), ShippedChip(chip), {}, {}, known);
}

Estimate MustEstimate(const std::string& chip, const std::string& program,
                      const std::vector<KnownOperand>& known = {}) {
  CostResult result = Cost(chip, program, known);
  if (const auto* refusal = std::get_if<Refusal>(&result)) {
    ADD_FAILURE() << chip << " " << program << ": " << refusal->reason << " | " << refusal->instruction;
    return {};
  }
  return std::get<Estimate>(result);
}

void ExpectRefused(const std::string& chip, const std::string& program, const std::string& reason,
                   const std::string& instruction, const std::vector<KnownOperand>& known = {}) {
  const CostResult result = Cost(chip, program, known);
  const auto* refusal = std::get_if<Refusal>(&result);
  ASSERT_NE(refusal, nullptr) << chip << " " << program << " was estimated";
  EXPECT_THAT(refusal->reason, HasSubstr(reason)) << chip << " " << program;
  EXPECT_THAT(refusal->instruction, HasSubstr(instruction)) << chip << " " << program;
}

int64_t LoopIterations(const Estimate& estimate, const std::string& kernel) {
  for (const KernelCost& cost : estimate.kernels) {
    if (cost.name == kernel) return cost.loop_iterations;
  }
  ADD_FAILURE() << "no " << kernel;
  return 0;
}

constexpr int64_t kTile = int64_t{8} * 128 * 4;  // bytes of a block of 8 rows of float32

// ---- scalar prefetch: 8 steps read block idx[i]; equal neighbours are not copied again.

TEST(NoSilentWrongBranch, PrefetchedIndicesThatAreConstants) {
  // {3, 3, 3, 7, 1, 1, 0, 9}: five blocks, eight blocks out, and the table itself.
  for (const char* chip : {"v5e"}) EXPECT_EQ(MustEstimate(chip, "constidx").dma_bytes, (5 + 8) * kTile + 512);
}

TEST(NoSilentWrongBranch, PrefetchedIndicesThatTheProgramComputes) {
  // arange(8) // 2 in a fusion: four blocks. The table is written on chip.
  EXPECT_EQ(MustEstimate("v5e", "iotaidx").dma_bytes, (4 + 8) * kTile);
}

TEST(NoSilentWrongBranch, PrefetchedIndicesComputedFromAnArgument) {
  ExpectRefused("v5e", "shiftidx", "whether a copy starts", "dma.hbm_to_vmem");
  // (idx + 1) % 8 of these are 3, 3, 3, 7, 1, 1, 0, 1.
  const auto idx = Int32("", 0, {8}, {2, 2, 2, 6, 0, 0, 7, 8});
  EXPECT_EQ(MustEstimate("v5e", "shiftidx", {idx}).dma_bytes, (5 + 8) * kTile + 512);
  // The same, told of the kernel's operand; with the number of the call, and with another one.
  const auto shifted = Int32("gather", 0, {8}, {3, 3, 3, 7, 1, 1, 0, 1});
  EXPECT_EQ(MustEstimate("v5e", "shiftidx", {shifted}).dma_bytes, (5 + 8) * kTile + 512);
  EXPECT_EQ(MustEstimate("v5e", "shiftidx", {Int32("gather.1", 0, {8}, {0, 0, 0, 0, 0, 0, 0, 0})}).dma_bytes,
            (1 + 8) * kTile + 512);
  ExpectRefused("v5e", "shiftidx", "whether a copy starts", "dma.hbm_to_vmem",
                {Int32("gather.2", 0, {8}, {0, 0, 0, 0, 0, 0, 0, 0})});
}

TEST(NoSilentWrongBranch, ValuesThatDoNotFitTheProgramAreNotUsed) {
  for (const auto& wrong : {Int32("gather", 0, {4}, {0, 0, 0, 0}), Int32("gather", 1, {8}, std::vector<int32_t>(8, 0)),
                            Int32("gather", 0, {8}, {0, 0, 0, 0}), Int32("gath", 0, {8}, std::vector<int32_t>(8, 0))}) {
    ExpectRefused("v5e", "shiftidx", "whether a copy starts", "dma.hbm_to_vmem", {wrong});
  }
  KnownOperand bytes = Int32("gather", 0, {8}, std::vector<int32_t>(8, 0));
  bytes.dtype = "uint32";
  ExpectRefused("v5e", "shiftidx", "whether a copy starts", "dma.hbm_to_vmem", {bytes});
}

// ---- mask tables: a causal pattern of 8 x 8 blocks; masked blocks are neither copied nor multiplied.

std::vector<int32_t> Causal(int n, bool next) {
  std::vector<int32_t> out;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) out.push_back(j > i ? 0 : next ? j : 1);
  }
  return out;
}

TEST(NoSilentWrongBranch, MaskTablesThatAreConstants) {
  // Tables of bytes, packed four rows to a word. Columns are copied when their number changes: 35 times.
  constexpr int64_t kBlock = int64_t{128} * 128 * 2;
  EXPECT_EQ(MustEstimate("v5e", "masktable").dma_bytes, (8 + 35 + 16) * kBlock + 2048);
  EXPECT_EQ(MustEstimate("v6e", "masktable").dma_bytes, (8 + 35 + 16) * kBlock + 2048);
  // Half of the products of a dense pass and a little more: 36 of 64 blocks, each of the same number of products.
  const Estimate on_chip = MustEstimate("tpu7x", "masktable");
  EXPECT_EQ(LoopIterations(on_chip, "masked.1"), 65);
}

TEST(NoSilentWrongBranch, MaskTablesThatAreArguments) {
  ExpectRefused("v5e", "maskarg", "depends on data", "dma.hbm_to_vmem");
  const auto mask = Int32("masked", 0, {8, 8}, Causal(8, false));
  const auto next = Int32("masked", 1, {8, 8}, Causal(8, true));
  // One of them is not enough.
  ExpectRefused("v5e", "maskarg", "a branch depends on data", "sbr.rel", {next});
  ExpectRefused("v5e", "maskarg", "depends on data", "dma.hbm_to_vmem", {mask});
  const Estimate causal = MustEstimate("v5e", "maskarg", {mask, next});
  const Estimate full = MustEstimate("v5e", "maskarg", {Int32("masked", 0, {8, 8}, std::vector<int32_t>(64, 1)), next});
  EXPECT_LT(causal.total_cycles, full.total_cycles);
  EXPECT_EQ(causal.dma_bytes, full.dma_bytes);
  // The same kernel with its tables as constants moves the same blocks.
  EXPECT_EQ(causal.dma_bytes - 2 * 4096, MustEstimate("v5e", "masktable").dma_bytes - 2 * 1024);
}

// ---- ragged: a loop of lengths[i] rounds in each of 8 steps.

TEST(NoSilentWrongBranch, RaggedLengths) {
  for (const char* chip : {"v5e", "v6e", "tpu7x"}) {
    ExpectRefused(chip, "ragged", "a branch depends on data", "sbr.rel");
    const auto lengths = Int32("ragged", 0, {8}, {1, 2, 3, 4, 0, 32, 7, 8});
    // Each loop jumps back one time less than it has rounds, the grid's nine times.
    EXPECT_EQ(LoopIterations(MustEstimate(chip, "ragged", {lengths}), "ragged.1"), 57 - 7 + 9) << chip;
    const auto longer = Int32("ragged", 0, {8}, {1, 2, 3, 4, 0, 32, 7, 9});
    EXPECT_EQ(LoopIterations(MustEstimate(chip, "ragged", {longer}), "ragged.1"), 58 - 7 + 9) << chip;
  }
}

// ---- paged: page numbers and lengths; one copy a page, each waited for.

TEST(NoSilentWrongBranch, PagedCopies) {
  std::vector<int32_t> pages;
  for (int i = 0; i < 24; ++i) pages.push_back((i * 7) % 32);
  const auto table = Int32("paged", 0, {4, 6}, pages);
  const auto lengths = Int32("paged", 1, {4}, {1, 6, 0, 3});
  for (const char* chip : {"v5e", "tpu7x"}) {
    ExpectRefused(chip, "paged", "a branch depends on data", "sbr.rel");
    ExpectRefused(chip, "paged", "a branch depends on data", "sbr.rel", {table});
    EXPECT_EQ(LoopIterations(MustEstimate(chip, "paged", {table, lengths}), "paged.1"), 0 + 5 + 0 + 2 + 4 + 0) << chip;
  }
  // 10 pages of 16 rows, 4 blocks out, and the tables.
  EXPECT_EQ(MustEstimate("v5e", "paged", {table, lengths}).dma_bytes, (10 + 4) * 16 * 128 * 4 + 64 * 32 + 16 * 32);
  // Where a page lies does not change the time.
  EXPECT_EQ(MustEstimate("v5e", "paged", {lengths}).total_cycles,
            MustEstimate("v5e", "paged", {table, lengths}).total_cycles);
}

// ---- a window in scalar memory, with two buffers that are filled in turn.

TEST(NoSilentWrongBranch, ScalarWindows) {
  std::vector<int32_t> values;
  for (int i = 0; i < 32 * 128; ++i) values.push_back(i / 128);
  for (const char* chip : {"v5e", "tpu7x"}) {
    ExpectRefused(chip, "smemwindow", "a branch depends on data", "sbr.rel");
    // 0, 8, 16 and 24 rounds, and the grid's five jumps.
    const auto rows = Int32("window", 0, {32, 128}, values);
    EXPECT_EQ(LoopIterations(MustEstimate(chip, "smemwindow", {rows}), "window.1"), 7 + 15 + 23 + 5) << chip;
  }
}

// ---- data that no operand tells.

TEST(NoSilentWrongBranch, DataOfTheVectorUnit) {
  ExpectRefused("v5e", "until", "a branch depends on data", "sbr.rel");
  ExpectRefused("v5e", "until", "a branch depends on data", "sbr.rel",
                {Int32("until", 0, {8}, {0, 0, 0, 0, 0, 0, 0, 0})});
}

TEST(NoSilentWrongBranch, LoopsOfThePlainProgram) { ExpectRefused("v5e", "xlawhile", "in TLP, a branch", "sbr.rel"); }

// ---- copies within the chip and semaphores

TEST(EstimateTest, LocalCopiesByLoadsAndStoresRaiseTheirFlag) {
  const Estimate e = MustEstimate("v5e", "copies");
  EXPECT_TRUE(e.warnings.empty()) << e.warnings[0];
  // 64 rows of 128 of 1024 columns in, a strided copy, and as many out.
  EXPECT_EQ(e.dma_bytes, 2 * 64 * 128 * 4);
}

TEST(EstimateTest, SemaphoresThatAKernelRaisesItself) {
  EXPECT_TRUE(MustEstimate("v5e", "semaphore").warnings.empty());
}

// tpu7x runs six bundles behind a branch; with four the loop of this kernel would be left at the first one.
TEST(EstimateTest, DelaySlotsOfTheChip) {
  const Estimate e = MustEstimate("tpu7x", "scan");
  EXPECT_EQ(LoopIterations(e, "scan.1"), 16 * 127 + 17);
}

// ---- layouts

std::vector<int64_t> Places(const char* type_text, int64_t width) {
  const auto type = ParseArrayType(type_text);
  EXPECT_TRUE(type) << type_text;
  if (!type) return {};
  IntArray array;
  array.type = *type;
  for (int64_t i = 0; i < type->elements(); ++i) array.values.push_back(i + 1);
  const auto bytes = LayOut(array);
  EXPECT_TRUE(bytes);
  std::vector<int64_t> places(static_cast<size_t>(type->elements()), -1);
  for (size_t at = 0; bytes && at < bytes->size(); at += static_cast<size_t>(width)) {
    const int64_t value = static_cast<unsigned char>((*bytes)[at]);
    if (value > 0) places[static_cast<size_t>(value - 1)] = static_cast<int64_t>(at) / width;
  }
  return places;
}

TEST(LayoutTest, PlacesOfElements) {
  EXPECT_EQ(Places("s32[3]{0:T(128)}", 4), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(Places("s32[2,3]{1,0:T(8,128)}", 4), (std::vector<int64_t>{0, 1, 2, 128, 129, 130}));
  EXPECT_EQ(Places("s32[2,3]{0,1}", 4), (std::vector<int64_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(Places("s32[2,2,2]{2,1,0:T(8,128)S(1)}", 4),
            (std::vector<int64_t>{0, 1, 128, 129, 1024, 1025, 1152, 1153}));
  // Four rows of bytes share a word.
  EXPECT_EQ(Places("s8[5,2]{1,0:T(8,128)(4,1)}", 1), (std::vector<int64_t>{0, 4, 1, 5, 2, 6, 3, 7, 512, 516}));
  EXPECT_EQ(Places("s32[]{:T(128)}", 4), (std::vector<int64_t>{0}));
}

TEST(LayoutTest, OtherTypesAreNotRead) {
  for (const char* text :
       {"", "s32", "s32[", "s32[3", "(s32[3], s32[3])", "s32[3]{1}", "s32[3]{0:T(*,128)}", "s32[3]{0:T(0)}",
        "s32[3]{0:E(4)}", "s32[9999999,9999999]", "s32[3]{0:T(128)E(4)}", "s32[3]{0", "s32[-1]"}) {
    EXPECT_FALSE(ParseArrayType(text)) << text;
  }
  EXPECT_FALSE(LayOut(IntArray{*ParseArrayType("f32[1]"), {0}}));
  EXPECT_FALSE(LayOut(IntArray{*ParseArrayType("s32[2]"), {0}}));
  EXPECT_FALSE(LayOut(IntArray{*ParseArrayType("s32[1,1]{1,0:T(1048576,1048576)}"), {0}}));
}

// ---- values of the program around the kernels

std::optional<std::vector<int64_t>> Evaluate(const std::string& body, const std::string& type = "s32[4]{0}") {
  const std::string text = "HloModule m\n\nENTRY %main (p: s32[4]) -> s32[4] {\n" + body + "  ROOT %k = " + type +
                           " custom-call(%r), custom_call_target=\"x\"\n}\n";
  const auto module = compiler::ParseHlo(text);
  EXPECT_TRUE(module) << (module ? "" : module.error().ToString());
  if (!module) return std::nullopt;
  HloEvaluator evaluator(*module, [](size_t index, const ArrayType& array_type) -> std::optional<IntArray> {
    if (index != 0) return std::nullopt;
    return IntArray{array_type, {-7, 0, 3, 2147483647}};
  });
  const auto value = evaluator.Operand("k", 0);
  if (!value) return std::nullopt;
  return value->values;
}

TEST(HloEvaluatorTest, WrapsAndRoundsAsHloDoes) {
  const std::string p = "  %p = s32[4]{0} parameter(0)\n  %c = s32[4]{0} constant({2, -1, 0, 1})\n";
  using V = std::vector<int64_t>;
  EXPECT_EQ(Evaluate(p + "  %r = s32[4]{0} add(%p, %c)\n"), (V{-5, -1, 3, -2147483648}));
  EXPECT_EQ(Evaluate(p + "  %r = s32[4]{0} divide(%p, %c)\n"), (V{-3, 0, -1, 2147483647}));
  EXPECT_EQ(Evaluate(p + "  %r = s32[4]{0} remainder(%p, %c)\n"), (V{-1, 0, 3, 0}));
  EXPECT_EQ(Evaluate(p + "  %r = s32[4]{0} shift-right-logical(%p, %c)\n"), (V{1073741822, 0, 3, 1073741823}));
  EXPECT_EQ(Evaluate(p + "  %r = s32[4]{0} shift-right-arithmetic(%p, %c)\n"), (V{-2, 0, 3, 1073741823}));
  EXPECT_EQ(Evaluate(p + "  %q = pred[4]{0} compare(%p, %c), direction=LT\n  %r = s32[4]{0} select(%q, %p, %c)\n"),
            (V{-7, -1, 0, 1}));
  EXPECT_EQ(Evaluate(p + "  %q = s8[4]{0} convert(%p)\n  %r = s32[4]{0} convert(%q)\n"), (V{-7, 0, 3, -1}));
  EXPECT_EQ(Evaluate("  %q = s32[2,2]{1,0} iota(), iota_dimension=1\n  %t = s32[2,2]{1,0} transpose(%q), "
                     "dimensions={1,0}\n  %r = s32[4]{0} reshape(%t)\n"),
            (V{0, 0, 1, 1}));
  EXPECT_EQ(Evaluate("  %q = s32[2]{0} constant({5, 6})\n  %b = s32[2,2]{1,0} broadcast(%q), dimensions={0}\n  %r = "
                     "s32[4]{0} reshape(%b)\n"),
            (V{5, 5, 6, 6}));
}

TEST(HloEvaluatorTest, WhatIsNotKnownStaysUnknown) {
  EXPECT_FALSE(Evaluate("  %r = s32[4]{0} constant({...})\n"));
  EXPECT_FALSE(Evaluate("  %r = s32[4]{0} constant({1, 2, 3})\n"));
  EXPECT_FALSE(Evaluate("  %r = s32[4]{0} add(%r, %r)\n"));
  EXPECT_FALSE(Evaluate("  %r = s32[4]{0} add(%nowhere, %nowhere)\n"));
  EXPECT_FALSE(Evaluate("  %q = s32[4]{0} parameter(1)\n  %r = s32[4]{0} negate(%q)\n"));
  EXPECT_FALSE(Evaluate("  %q = s32[4]{0} parameter(0)\n  %r = s32[4]{0} sort(%q)\n"));
  EXPECT_FALSE(Evaluate("  %q = f32[4]{0} constant({1, 2, 3, 4})\n  %r = s32[4]{0} convert(%q)\n"));
  EXPECT_FALSE(Evaluate("  %q = s32[2,2]{1,0} parameter(0)\n  %r = s32[4]{0} bitcast(%q)\n"));
}

}  // namespace
}  // namespace kernelwright::cost
