#include "daemon/cost/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

#include "daemon/cost/cost_test_util.h"

namespace kernelwright::cost {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLegend = "= control target key start\n= control target key end\n\n";

// One cycle moves 32 bytes (a granule); a copy lands 100 cycles after its transfer.
ReplayTiming SimpleTiming() {
  ReplayTiming timing;
  timing.bytes_per_cycle = 32;
  timing.dma_latency_cycles = 100;
  timing.local_bytes_per_cycle = 64;
  timing.local_latency_cycles = 10;
  return timing;
}

struct Played {
  ReplayResult result;
  std::unique_ptr<compiler::BundleProgram> source;
  std::vector<ScalarProgram> programs;
};

Played ReplayText(const std::string& text, const ReplayTiming& timing, const ReplayOptions& options = {},
                  const std::string& name = "kernel", BranchShadow shadow = {}) {
  Played run;
  auto parsed = compiler::ParseBundles(text);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().ToString());
  if (!parsed) return run;
  run.source = std::make_unique<compiler::BundleProgram>(std::move(*parsed));
  ScalarMemory memory;
  run.programs.push_back(DecodeScalarProgram(*run.source, name, 0, &memory, shadow));
  const std::vector<std::vector<int>> callees = {std::vector<int>(run.programs[0].callees.size(), -1)};
  run.result = Replay(run.programs, callees, 0, &memory, timing, options);
  return run;
}

// Bundles by their text: "{ … }" with a note behind where there is one.
Played ReplayBundles(const std::vector<std::string>& bundles, const ReplayTiming& timing = SimpleTiming(),
                     const ReplayOptions& options = {}, const std::string& name = "kernel", BranchShadow shadow = {}) {
  std::string text = kLegend;
  for (size_t i = 0; i < bundles.size(); ++i) {
    char address[32];
    std::snprintf(address, sizeof(address), i == 0 ? "%zx" : "0x%zx", i);
    text += std::string(address) + "   :  " + bundles[i] + "\n";
  }
  return ReplayText(text, timing, options, name, shadow);
}

double Cycles(const Played& run) {
  EXPECT_FALSE(run.result.refusal) << run.result.refusal->reason << " | " << run.result.refusal->instruction;
  return static_cast<double>(run.result.ticks) / kTicksPerCycle;
}

TEST(ReplayTest, OneBundleIsOneCycle) { EXPECT_EQ(Cycles(ReplayBundles({"{}", "{}", "{}"})), 3); }

TEST(ReplayTest, BranchesRunFourDelaySlots) {
  // The branch is in bundle 1, bundles 2 to 5 still run, 6 and 7 are jumped over.
  const Played run =
      ReplayBundles({"{ %p1_p0 = scmp.eq.s32.totalorder 3, 3 }", "{ %2 = sbr.rel (%p1_p0) target = $region5 }", "{}",
                     "{}", "{}", "{}", "{}", "{}", "{} /* Start/End empty region 5 */"});
  EXPECT_EQ(Cycles(run), 7);
}

// In the delay slots of a taken branch another branch has no effect, whatever its predicate holds. A branch whose slots
// end behind its target is not a loop.
TEST(ReplayTest, BranchesInDelaySlotsHaveNoEffect) {
  const Played run =
      ReplayBundles({"{ %1 = sbr.rel target = $region5 }", "{}", "{ %2 = sbr.rel (%p9_p9) target = $region7 }",
                     "{} /* Start/End empty region 5 */", "{}", "{}", "{}", "{} /* Start/End empty region 7 */"});
  EXPECT_EQ(Cycles(run), 5 + 5);
  EXPECT_EQ(run.result.programs[0].loop_iterations, 0);
}

// tpu7x: six slots; empty ones at the end are printed as one bundle, which takes the time of all.
TEST(ReplayTest, ShortenedDelaySlotsTakeTheirTime) {
  const auto cycles = [](const std::vector<std::string>& bundles) {
    return Cycles(ReplayBundles(bundles, SimpleTiming(), {}, "kernel", {6, true}));
  };
  const std::string branch = "{ %1 = sbr.rel target = $region5 }";
  const std::string work = "{ %2 = vnop }";
  const std::string target = "{} /* Start/End empty region 5 */";
  EXPECT_EQ(cycles({branch, "{}", work, work, work, work, work, work, target}), 1 + 6 + 1);
  EXPECT_EQ(cycles({branch, work, work, "{}", work, work, work, work, target}), 1 + 6 + 1);
  EXPECT_EQ(cycles({branch, work, work, work, work, work, work, work, target}), 1 + 6 + 1);
  EXPECT_EQ(cycles({branch, work, "{}", work, work, work, "{ %2 = vnop } /* End region 4 */", work, target}), 1 + 6 + 1)
      << "not shortened: the region of the branch ends with the sixth";
  EXPECT_EQ(cycles({"{ %p1_p1 = scmp.eq.s32.totalorder 1, 2 }", "{ %1 = sbr.rel (%p1_p1) target = $region5 }", "{}",
                    work, target}),
            2 + 6 + 2)
      << "the time passes whether the branch is taken or not";
}

// The exit note of a kernel stands in the place of region notes: a region that no note names starts there.
TEST(ReplayTest, RegionsWithoutANoteStartAtTheExit) {
  const std::vector<std::string> head = {"{ %1 = sbr.rel target = $region5 }", "{}", "{}", "{}", "{}", "{}", "{}"};
  std::vector<std::string> whole = head;
  whole.emplace_back("{} /* exit bundle: %k.1 = custom-call(%x.1) */");
  EXPECT_EQ(Cycles(ReplayBundles(whole)), 6);
  EXPECT_TRUE(ReplayBundles(head).result.refusal) << "a dump that is cut off hides regions too";
  whole[2] = "{} /* End region 5 */";
  EXPECT_TRUE(ReplayBundles(whole).result.refusal) << "a region that ended is somewhere else";
}

TEST(ReplayTest, LoopsCount) {
  const Played run =
      ReplayBundles({"{ %s1_s0 = smov.u32 0 }",
                     "{ %s2_s1 = sadd.s32 1, %s3_s0  ;;  %s3_s0 = sphi %s1_s0, %s4_s0 } /* Start region 9 */",
                     "{ %p5_p0 = scmp.ge.s32.totalorder %s2_s1, 10  ;;  %s4_s0 = smov.u32 %s2_s1 }",
                     "{ %6 = sbr.rel (!%p5_p0) target = $region9 }", "{}", "{}", "{}", "{}"});
  EXPECT_EQ(Cycles(run), 1 + 10 * 7);
  EXPECT_EQ(run.result.programs[0].loop_iterations, 9);
}

// All operations of a bundle read before any writes: two registers change places.
TEST(ReplayTest, BundlesReadBeforeTheyWrite) {
  const Played run = ReplayBundles(
      {"{ %s1_s0 = smov.u32 7  ;;  %s2_s1 = smov.u32 8 }", "{ %s3_s0 = smov.u32 %s2_s1  ;;  %s4_s1 = smov.u32 %s1_s0 }",
       "{ %p5_p0 = scmp.eq.s32.totalorder %s3_s0, 8  ;;  %p6_p1 = scmp.eq.s32.totalorder %s4_s1, 7 }",
       "{ %p7_p2 = pnand %p5_p0, %p6_p1 }", "{ %8 = sbr.rel (%p7_p2) target = $region1 }", "{}", "{}", "{}", "{}", "{}",
       "{} /* Start region 1 */"});
  EXPECT_EQ(Cycles(run), 11) << "the branch is not taken";
}

TEST(ReplayTest, PredicatedMovesKeepOrReplace) {
  // s2 = p ? s1 : s0 with the other value named in the predicate.
  const Played run = ReplayBundles(
      {"{ %p1_p0 = scmp.eq.s32.totalorder 1, 2  ;;  %s2_s0 = smov.u32 5  ;;  %s3_s1 = smov.u32 6 }",
       "{ %s4_s2 = smov.u32 (%p1_p0, %s2_s0), %s3_s1  ;;  %s3_s1 = smov.u32 (%p1_p0), 9 }",
       "{ %s5_s3 = sadd.s32 %s4_s2, %s3_s1 }", "{ %p6_p1 = scmp.eq.s32.totalorder %s5_s3, 11 }",
       "{ %7 = sbr.rel (%p6_p1) target = $region1 }", "{}", "{}", "{}", "{}", "{}", "{}", "{} /* Start region 1 */"});
  EXPECT_EQ(Cycles(run), 10) << "5 + 6: taken, two bundles jumped over";
}

TEST(ReplayTest, CopiesQueueAndWaitsStall) {
  const std::string copy =
      "{ %1 = dma.hbm_to_vmem [thread:$0]  /*hbm=*/%s8_s8, /*size_in_granules=*/50, /*vmem=*/%s9_s9, "
      "/*dst_syncflagno=*/[#allocation1] }";
  EXPECT_EQ(Cycles(ReplayBundles({copy, "{ %2 = dma.done.wait [#allocation1], 50 }", "{}"})), 50 + 100 + 2);
  // Two copies share the queue: the second ends 100 cycles after the start; its latency is not added twice.
  const Played two = ReplayBundles({copy, copy, "{ %2 = dma.done.wait [#allocation1], 100 }"});
  EXPECT_EQ(Cycles(two), 100 + 100 + 1);
  EXPECT_EQ(two.result.programs[0].dma_bytes, 2 * 50 * 32);
  EXPECT_EQ(two.result.programs[0].wait_ticks, (200 - 2) * kTicksPerCycle);
  // A part of a copy can be waited for; a wait for nothing is counted.
  EXPECT_EQ(
      ReplayBundles({copy, "{ %2 = dma.done.wait [#allocation1], 20 }", "{ %3 = dma.done.wait [#allocation1], 30 }"})
          .result.unmatched_waits,
      0);
  EXPECT_EQ(ReplayBundles({"{ %2 = dma.done.wait [#allocation1], 20 }"}).result.unmatched_waits, 1);
  EXPECT_EQ(Cycles(ReplayBundles({"{ %1 = dma.vmem_to_vmem /*vmem=*/%s8_s8, /*size_in_granules=*/64, /*vmem=*/%s9_s9, "
                                  "/*dst_syncflagno=*/[#allocation1] }",
                                  "{ %2 = dma.done.wait [#allocation1], 64 }"})),
            32 + 10 + 1);
}

TEST(ReplayTest, FloorsOfProductsAndBytes) {
  ReplayTiming timing = SimpleTiming();
  timing.cycles_per_product = 4;
  const std::vector<std::string> two = {
      "{}", "{ %1 = vmatmul.bf16.gmra.mxu0 %v1_v1  ;;  %2 = vmatmul.bf16.gmra.mxu1 %v1_v1 }", "{}"};
  const Played run = ReplayBundles(two, timing);
  EXPECT_EQ(Cycles(run), 1 + 8 + 1) << "what comes before and after the products does not overlap with them";
  EXPECT_EQ(run.result.programs[0].mxu_floor_ticks, 7 * kTicksPerCycle);
  EXPECT_EQ(Cycles(ReplayBundles(two)), 3);
  // A copy that nobody waits for still has to be moved.
  EXPECT_EQ(Cycles(ReplayBundles({"{ %1 = dma.vmem_to_hbm /*vmem=*/%s8_s8, /*size_in_granules=*/500, /*hbm=*/%s9_s9, "
                                  "/*dst_syncflagno=*/[#allocation1] }"})),
            500);
}

const std::vector<std::string> kBranchTail = {
    "{ %9 = sbr.rel (%p5_p0) target = $region1 }", "{}", "{}", "{}", "{}", "{}", "{} /* Start region 1 */"};

Played WithBranch(std::vector<std::string> head, const std::string& name = "kernel") {
  head.insert(head.end(), kBranchTail.begin(), kBranchTail.end());
  return ReplayBundles(head, SimpleTiming(), {}, name);
}

TEST(TaintTest, BranchesOnUnknownValuesAreRefused) {
  const auto reason = [](const Played& run) {
    return run.result.refusal ? run.result.refusal->reason : std::string("none");
  };
  // Memory that nobody wrote.
  EXPECT_THAT(
      reason(WithBranch({"{ %s1_s0 = sld [smem:[#allocation3]] }", "{ %p5_p0 = scmp.eq.s32.totalorder %s1_s0, 0 }"})),
      HasSubstr("does not write"));
  // A value from the vector unit.
  EXPECT_THAT(reason(WithBranch({"{ %s1_s0 = spop %3 }", "{ %p5_p0 = scmp.eq.s32.totalorder %s1_s0, 0 }"})),
              HasSubstr("known only when the program runs"));
  // Memory that a copy filled, also where it had been written before.
  const Played copied =
      WithBranch({"{ %1 = sst [smem:[#allocation3]] 0  ;;  %s8_s8 = smov.u32 [#allocation3] }",
                  "{ %2 = dma.hbm_to_smem /*hbm=*/%s9_s9, /*size_in_granules=*/1, /*smem=*/%s8_s8, "
                  "/*dst_syncflagno=*/[#allocation1] }",
                  "{ %s1_s0 = sld [smem:[#allocation3]] }", "{ %p5_p0 = scmp.eq.s32.totalorder %s1_s0, 0 }"});
  EXPECT_THAT(reason(copied), HasSubstr("known only when the program runs"));
  EXPECT_THAT(copied.result.refusal->instruction, HasSubstr("sbr.rel"));
  // A store to an unknown place may have hit the cell.
  EXPECT_THAT(
      reason(WithBranch({"{ %1 = sst [smem:[#allocation3]] 0  ;;  %s8_s8 = spop %3 }", "{ %2 = sst [smem:[%s8_s8]] 4 }",
                         "{ %s1_s0 = sld [smem:[#allocation3]] }", "{ %p5_p0 = scmp.eq.s32.totalorder %s1_s0, 0 }"})),
      HasSubstr("known only when the program runs"));
  // Addresses of our own numbering say nothing in a comparison.
  EXPECT_THAT(reason(WithBranch({"{ %s1_s0 = smov.u32 [#allocation3]  ;;  %s2_s1 = smov.u32 [#allocation4] }",
                                 "{ %p5_p0 = scmp.lt.s32.totalorder %s1_s0, %s2_s1 }"})),
              HasSubstr("loader"));
  // An unknown select or predicated move taints its result.
  EXPECT_THAT(reason(WithBranch({"{ %s1_s0 = spop %3 }", "{ %p1_p1 = scmp.eq.s32.totalorder %s1_s0, 0 }",
                                 "{ %s2_s1 = scalar_select /*predicate=*/%p1_p1, /*on_true=*/1, /*on_false=*/2 }",
                                 "{ %p5_p0 = scmp.eq.s32.totalorder %s2_s1, 1 }"})),
              HasSubstr("known only when the program runs"));
}

TEST(TaintTest, WhatDoesNotMatterIsNotRefused) {
  // A spill survives an unknown store; zero and true decide alone; equal arms are known.
  EXPECT_FALSE(
      WithBranch({"{ %1 = sst [smem:[#allocation3_spill]] 0  ;;  %s8_s8 = spop %3 }", "{ %2 = sst [smem:[%s8_s8]] 4 }",
                  "{ %s1_s0 = sld [smem:[#allocation3_spill]] }", "{ %p5_p0 = scmp.eq.s32.totalorder %s1_s0, 0 }"})
          .result.refusal);
  EXPECT_FALSE(WithBranch({"{ %s1_s0 = spop %3 }", "{ %s2_s1 = sand.u32 0, %s1_s0 }",
                           "{ %p5_p0 = scmp.eq.s32.totalorder %s2_s1, 0 }"})
                   .result.refusal);
  EXPECT_FALSE(WithBranch({"{ %s1_s0 = spop %3 }",
                           "{ %p1_p1 = scmp.eq.s32.totalorder %s1_s0, 0  ;;  %p2_p2 = scmp.eq.s32.totalorder 1, 1 }",
                           "{ %p5_p0 = por %p1_p1, %p2_p2 }"})
                   .result.refusal);
  EXPECT_FALSE(ReplayBundles({"{ %s1_s0 = spop %3 }", "{ %p5_p0 = scmp.eq.s32.totalorder %s1_s0, 0 }",
                              "{ %6 = shalt.err (!%p5_p0) /* BoundsCheck 0 */ }"})
                   .result.refusal)
      << "bounds checks end the program or change nothing";
}

TEST(TaintTest, TheTopLevelStatusCheckIsNotTaken) {
  const std::vector<std::string> status = {"{ %s1_s0 = sld [smem:[#allocation4]] }",
                                           "{ %p5_p0 = scmp.ne.s32.totalorder %s1_s0, 1 }"};
  EXPECT_EQ(Cycles(WithBranch(status, "TLP")), 9);
  // But data decides no branch there either.
  EXPECT_TRUE(
      WithBranch({"{ %s1_s0 = spop %3 }", "{ %p5_p0 = scmp.ne.s32.totalorder %s1_s0, 1 }"}, "TLP").result.refusal);
}

TEST(TaintTest, CopiesWithUnknownPartsAreRefused) {
  const auto copy = [](const std::string& predicate, const std::string& size, const std::string& flag) {
    return "{ %4 = dma.hbm_to_vmem [thread:$0]  " + predicate + "/*hbm=*/%s8_s8, /*size_in_granules=*/" + size +
           ", /*vmem=*/%s9_s9, /*dst_syncflagno=*/" + flag + " }";
  };
  const std::string unknown = "{ %s1_s0 = spop %3 }";
  const std::string predicate = "{ %p5_p0 = scmp.eq.s32.totalorder %s1_s0, 0 }";
  const auto reason = [](const Played& run) {
    return run.result.refusal ? run.result.refusal->reason : std::string("none");
  };
  EXPECT_THAT(reason(ReplayBundles({unknown, predicate, copy("(%p5_p0), ", "8", "[#allocation1]")})),
              HasSubstr("whether a copy starts"));
  EXPECT_THAT(reason(ReplayBundles({unknown, copy("", "%s1_s0", "[#allocation1]")})), HasSubstr("size of a copy"));
  EXPECT_THAT(reason(ReplayBundles({unknown, copy("", "8", "%s1_s0")})), HasSubstr("flag of a copy"));
  EXPECT_THAT(reason(ReplayBundles({unknown, predicate, "{ %4 = dma.done.wait (%p5_p0), [#allocation1], 8 }"})),
              HasSubstr("waited for"));
  EXPECT_THAT(reason(ReplayBundles({"{ %4 = dma.general /*src=*/%s8_s8, /*size_in_granules=*/8 }"})),
              HasSubstr("not modelled"));
  EXPECT_THAT(reason(ReplayBundles({"{ %4 = inlined_call %s1_s1 /* %f.1 = fusion(%x) */ }"})),
              HasSubstr("'f.1' is missing"));
  EXPECT_THAT(reason(ReplayBundles({"{ %4 = sbr.ind %s1_s1 }"})), HasSubstr("unknown form"));
}

TEST(SemaphoreTest, OwnSignalsAreCountedAndOthersRefused) {
  const auto refused = [](const std::vector<std::string>& bundles) {
    return ReplayBundles(bundles).result.refusal.has_value();
  };
  EXPECT_FALSE(refused({"{ %1 = vsyncadd [#allocation1], 2 }", "{ %2 = vwait.ge [#allocation1], 2 }"}));
  EXPECT_TRUE(refused({"{ %1 = vsyncadd [#allocation1], 1 }", "{ %2 = vwait.ge [#allocation1], 2 }"}));
  EXPECT_TRUE(refused({"{ %1 = vwait.ge [#allocation1], 1 }"})) << "another core or chip raises it";
  EXPECT_TRUE(refused({"{ %1 = vsyncadd [#allocation1], 1 }", "{ %2 = vsyncadd [#allocation1], 4294967295 }",
                       "{ %3 = vwait.ge [#allocation1], 1 }"}));
  EXPECT_TRUE(refused({"{ %1 = vsyncadd [#allocation1], 1 }", "{ %2 = vwait.done [#allocation1] }"}));
  EXPECT_TRUE(refused({"{ %s1_s0 = spop %9 }", "{ %1 = vsyncadd [#allocation1], %s1_s0 }",
                       "{ %2 = vsyncadd [#allocation2], 1 }", "{ %3 = vwait.ge [#allocation2], 1 }"}))
      << "a signal that is not understood may have gone anywhere";
  // A copy done by loads and stores raises the flag that the wait looks at.
  const Played local =
      ReplayBundles({"{ %1 = vsyncadd [#allocation1], 64 }", "{ %2 = dma.done.wait [#allocation1], 64 }",
                     "{ %3 = vsyncadd [#allocation1], 4294967232 }"});
  EXPECT_EQ(Cycles(local), 3);
  EXPECT_EQ(local.result.unmatched_waits, 0);
}

TEST(PointerTest, AddressesKeepTheirAllocation) {
  const auto refused = [](std::vector<std::string> head) { return WithBranch(std::move(head)).result.refusal; };
  // Shifted there and back it is the same cell; where the loader puts it cancels out in a comparison.
  EXPECT_FALSE(refused({"{ %s1_s0 = smov.u32 [#allocation3]  ;;  %9 = sst [smem:[#allocation3]] 7 }",
                        "{ %s2_s1 = sshll.u32 %s1_s0, 4 }", "{ %s3_s2 = sshrl.u32 %s2_s1, 4 }",
                        "{ %s4_s3 = sld [smem:[%s3_s2]] }", "{ %p5_p0 = scmp.eq.s32.totalorder %s4_s3, 8 }"}));
  EXPECT_FALSE(refused({"{ %s1_s0 = smov.u32 [#allocation3] }", "{ %s2_s1 = sadd.s32 4, %s1_s0 }",
                        "{ %p5_p0 = scmp.lt.s32.totalorder %s2_s1, %s1_s0 }"}));
  EXPECT_FALSE(refused({"{ %s1_s0 = smov.u32 [#allocation3] }", "{ %s2_s1 = sadd.s32 4, %s1_s0 }",
                        "{ %s3_s2 = ssub.s32 %s2_s1, %s1_s0 }", "{ %p5_p0 = scmp.eq.s32.totalorder %s3_s2, 5 }"}));
  EXPECT_TRUE(refused({"{ %s1_s0 = smov.u32 [#allocation3] }", "{ %s2_s1 = sand.u32 7, %s1_s0 }",
                       "{ %p5_p0 = scmp.eq.s32.totalorder %s2_s1, 0 }"}));
  EXPECT_TRUE(refused({"{ %s1_s0 = smov.u32 [#allocation3] }", "{ %s2_s1 = sshrl.u32 %s1_s0, 4 }",
                       "{ %s4_s3 = sld [smem:[%s2_s1]] }", "{ %p5_p0 = scmp.eq.s32.totalorder %s4_s3, 8 }"}));
}

// Operations that are cut or of a shape that nobody has seen are counted, and make memory unknown where they may write
// it.
TEST(ReplayTest, OperationsThatAreNotUnderstood) {
  const Played run = ReplayBundles({"{ %s1_s0 = smov.u32 1  ;;  %2 = sst [smem:strange] %s1_s0 }",
                                    "{ %3 = smov.u32 1  ;;  %4 = spop %9  ;;  %5 = sld [smem:[#allocation1]] }"});
  EXPECT_EQ(Cycles(run), 2);
  EXPECT_EQ(run.programs[0].undecoded, 2u);
  EXPECT_TRUE(WithBranch({"{ %1 = sst [smem:[#allocation3]] 0 }", "{ %2 = sst [smem:strange] 1 }",
                          "{ %s1_s0 = sld [smem:[#allocation3]] }", "{ %p5_p0 = scmp.eq.s32.totalorder %s1_s0, 0 }"})
                  .result.refusal);
}

TEST(ReplayTest, EndlessLoopsEnd) {
  ReplayOptions options;
  options.max_operations = 100000;
  const Played run =
      ReplayBundles({"{} /* Start region 1 */", "{ %9 = sbr.rel target = $region1 }", "{}", "{}", "{}", "{}"},
                    SimpleTiming(), options);
  ASSERT_TRUE(run.result.refusal);
  EXPECT_THAT(run.result.refusal->reason, HasSubstr("too many steps"));
}

void ExpectEqualTraces(const Played& fast, const Played& slow) {
  ASSERT_FALSE(fast.result.refusal);
  ASSERT_FALSE(slow.result.refusal);
  EXPECT_EQ(fast.result.ticks, slow.result.ticks);
  EXPECT_EQ(slow.result.skipped_iterations, 0);
  const ProgramTrace& a = fast.result.programs[0];
  const ProgramTrace& b = slow.result.programs[0];
  EXPECT_EQ(a.ticks, b.ticks);
  EXPECT_EQ(a.wait_ticks, b.wait_ticks);
  EXPECT_EQ(a.mxu_floor_ticks, b.mxu_floor_ticks);
  EXPECT_EQ(a.dma_bytes, b.dma_bytes);
  EXPECT_EQ(a.products, b.products);
  EXPECT_EQ(a.dma_iterations, b.dma_iterations);
  EXPECT_EQ(a.loop_iterations, b.loop_iterations);
  EXPECT_EQ(a.block_counts, b.block_counts);
  EXPECT_EQ(a.op_wait_ticks, b.op_wait_ticks);
  EXPECT_EQ(a.op_dma_bytes, b.op_dma_bytes);
  EXPECT_EQ(fast.result.unmatched_waits, slow.result.unmatched_waits);
}

Played Full(const std::string& text, const ReplayTiming& timing) {
  ReplayOptions options;
  options.detect_steady_state = false;
  return ReplayText(text, timing, options);
}

// 32 x 32 x 32 grid steps with accumulation, double buffers and an output every 32 steps: nothing is lost by skipping.
TEST(SteadyStateTest, EqualsTheFullReplayOfARealKernel) {
  const std::string text =
      ReadText(std::filesystem::path(KW_SOURCE_DIR) / "daemon/cost/testdata/v5e/mm128/1-mm.1-03-final_bundles.txt");
  for (const double latency : {0.0, 100.0, 795.0, 5000.0}) {
    ReplayTiming timing = SimpleTiming();
    timing.bytes_per_cycle = 491.4;
    timing.dma_latency_cycles = latency;
    timing.cycles_per_product = 4.2;
    const Played fast = ReplayText(text, timing);
    ExpectEqualTraces(fast, Full(text, timing));
    EXPECT_GT(fast.result.skipped_iterations, 20000) << latency;
    EXPECT_GT(fast.result.programs[0].loop_iterations, 32768);
  }
}

// Loops with a counter, a wrapping inner counter and a buffer that alternates, in random sizes and with random waits.
TEST(SteadyStateTest, EqualsTheFullReplayOfRandomLoops) {
  uint64_t state = 3;
  const auto next = [&](uint64_t n) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return std::to_string((state >> 33) % n + 1);
  };
  int64_t skipped = 0;
  for (int round = 0; round < 60; ++round) {
    const std::string inner = next(40);
    const std::string size = next(300);
    const std::string other = next(500);
    std::string text = kLegend;
    // NOLINTBEGIN(bugprone-suspicious-missing-comma): long bundles are joined from two literals.
    const std::vector<std::string> bundles = {
        "{ %s1_s0 = smov.u32 0  ;;  %s2_s1 = smov.u32 0  ;;  %s3_s2 = smov.u32 0 }",
        // s0 counts steps, s1 wraps, s2 counts the wraps.
        "{ %s10_s3 = sadd.s32 1, %s4_s1  ;;  %s11_s4 = sand.u32 1, %s5_s0 } /* Start region 9 */",
        "{ %p12_p0 = scmp.ge.s32.totalorder %s10_s3, " + inner +
            "  ;;  %s13_s5 = scalar_lea.sflag [#allocation1], %s11_s4 }",
        "{ %s14_s6 = scalar_select /*predicate=*/%p12_p0, /*on_true=*/0, /*on_false=*/%s10_s3  ;;  %s15_s7 = "
        "sadd.s32 1, %s6_s2 }",
        "{ %20 = dma.hbm_to_vmem (%p12_p0), /*hbm=*/%s9_s9, /*size_in_granules=*/" + other +
            ", /*vmem=*/%s9_s9, /*dst_syncflagno=*/[#allocation5] }",
        "{ %21 = dma.hbm_to_vmem /*hbm=*/%s9_s9, /*size_in_granules=*/" + size +
            ", /*vmem=*/%s9_s9, /*dst_syncflagno=*/%s13_s5 }",
        "{ %s16_s8 = sxor.u32 1, %s11_s4  ;;  %p17_p1 = scmp.ge.s32.totalorder %s5_s0, 1 }",
        "{ %s18_s10 = scalar_lea.sflag [#allocation1], %s16_s8  ;;  %30 = sst [smem:[#allocation7_spill]] %s10_s3 }",
        "{ %22 = dma.done.wait (%p17_p1), %s18_s10, " + size + "  ;;  %s6_s2 = smov.u32 (%p12_p0), %s15_s7 }",
        "{ %26 = dma.done.wait (%p12_p0), [#allocation5], " + other + " }",
        "{ %s5_s0 = sadd.s32 1, %s5_s0  ;;  %s4_s1 = smov.u32 %s14_s6  ;;  %s31_s11 = sld "
        "[smem:[#allocation7_spill]] }",
        "{ %p23_p2 = scmp.ge.s32.totalorder %s5_s0, " + std::to_string(1500 + 100 * round) + " }",
        "{ %24 = sbr.rel (!%p23_p2) target = $region9 }", "{}", "{}", "{}", "{}",
        "{ %25 = sst [smem:[#allocation2]] %s31_s11 }"};
    // NOLINTEND(bugprone-suspicious-missing-comma)
    for (size_t i = 0; i < bundles.size(); ++i) {
      char address[32];
      std::snprintf(address, sizeof(address), i == 0 ? "%zx" : "0x%zx", i);
      text += std::string(address) + "   :  " + bundles[i] + "\n";
    }
    ReplayTiming timing = SimpleTiming();
    timing.dma_latency_cycles = static_cast<double>(round * 10);
    const Played fast = ReplayText(text, timing);
    ExpectEqualTraces(fast, Full(text, timing));
    skipped += fast.result.skipped_iterations;
  }
  EXPECT_GT(skipped, 60 * 1500) << "most of it is skipped";
}

TEST(AcceptanceTest, MatmulWith128Blocks) {
  CostResult result = EstimateFromDumps(GoldenDumps("v5e", "mm128"), ShippedChip("v5e"), {}, {});
  ASSERT_TRUE(std::holds_alternative<Estimate>(result)) << std::get<Refusal>(result).reason;
  const auto& estimate = std::get<Estimate>(result);
  // 4096^3 bfloat16 took 11.77 ms on the host, about 0.1 ms of it dispatch.
  EXPECT_NEAR(estimate.milliseconds, 11.66, 0.08 * 11.66);
  EXPECT_EQ(estimate.bound, Bound::kLatency);
  EXPECT_EQ(estimate.confidence, Confidence::kMedium);
}

}  // namespace
}  // namespace kernelwright::cost
