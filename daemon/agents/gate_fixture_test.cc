// The gates that the daemon runs itself, each alone against programs made to deceive it. Prints one row per fixture;
// the worker's gates have theirs in tests/worker/tricks.py, and scripts/gates shows both as one table.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "daemon/agents/evaluator.h"
#include "daemon/agents/gate_list.h"
#include "daemon/agents/program_gate.h"
#include "daemon/agents/source_gate.h"
#include "daemon/cost/chips.h"
#include "gtest/gtest.h"

namespace kernelwright::agents {
namespace {

void ExpectRejected(const std::string& fixture, const std::string& gate, const GateResult& result) {
  EXPECT_EQ(result.gate, gate) << fixture;
  EXPECT_EQ(result.status, GateStatus::kFail) << fixture;
  EXPECT_FALSE(result.reason.empty()) << fixture;
  std::printf("gate-fixture\t%s\t%s\t%s\n", fixture.c_str(), gate.c_str(), result.reason.c_str());
}

cost::Chip ChipNamed(const std::string& name) {
  std::ifstream file(std::filesystem::path(KW_SOURCE_DIR) / "agents/chips.json");
  std::stringstream text;
  text << file.rdbuf();
  const auto table = cost::ParseChips(text.str());
  EXPECT_TRUE(table) << (table ? "" : table.error().ToString());
  return table ? *table->Find(name) : cost::Chip{};
}

// One float32 operand of [1024, 1024] and a result of the same shape, cut into blocks over a grid of two axes.
PallasCall Call(const std::vector<int64_t>& block) {
  PallasCall call;
  call.name = "k";
  call.grid = {4, 4};
  for (const char* name : {"x_ref", "o_ref"}) {
    BlockMapping mapping;
    mapping.origin = name;
    mapping.is_output = *name == 'o';
    mapping.array = {"float32", {1024, 1024}, "", false, false};
    for (const int64_t size : block) mapping.block.push_back({BlockDim::Kind::kBlocked, size});
    mapping.memory_space = "vmem";
    call.blocks.push_back(std::move(mapping));
  }
  return call;
}

GateResult Lint(const PallasCall& call) { return CheckKernelCalls({&call}, ChipNamed("v5e")); }

TEST(GateFixtureTest, SourceGateAlone) {
  const std::string original = "import jax.numpy as jnp\n\ndef f(x):\n    return kernel(x)\n";
  const std::pair<const char*, const char*> tricks[] = {
      {"reads_the_answer_from_a_file", "\ndef g():\n    return open('expected.npy').read()\n"},
      {"swallows_the_kernels_error", "\ntry:\n    import fast\nexcept ImportError:\n    pass\n"},
      {"caches_by_shape", "\nimport functools\n@functools.lru_cache\ndef g(n):\n    return n\n"},
      {"works_at_import", "\ntable = jnp.arange(4096)\n"},
      {"patches_a_module", "\njnp.allclose = lambda *_: True\n"},
      {"runs_code_from_text", "\ndef g():\n    return eval('1')\n"},
      {"starts_a_process", "\nimport subprocess\n"},
      {"calls_the_host", "\ndef g(x):\n    return jax.pure_callback(h, x, x)\n"},
  };
  EXPECT_EQ(CheckSource("k.py", original, original, "f").status, GateStatus::kPass);
  for (const auto& [name, text] : tricks) {
    ExpectRejected(name, "G10", CheckSource("k.py", original, original + text, "f"));
  }
}

TEST(GateFixtureTest, LintAlone) {
  EXPECT_EQ(Lint(Call({256, 256})).status, GateStatus::kPass);
  ExpectRejected("block_of_half_a_tile", "G11", Lint(Call({4, 128})));
  ExpectRejected("needs_more_than_the_chip_has", "G11", Lint([] {
                   PallasCall call = Call({256, 256});
                   call.scratch.push_back({"float32", {8192, 8192}, "vmem", true, false});
                   return call;
                 }()));
  ExpectRejected("limit_above_the_chip", "G11", Lint([] {
                   PallasCall call = Call({256, 256});
                   call.vmem_limit_bytes = int64_t{1} << 40;
                   return call;
                 }()));
  ExpectRejected("semantics_of_another_grid", "G11", Lint([] {
                   PallasCall call = Call({256, 256});
                   call.dimension_semantics = {"parallel"};
                   return call;
                 }()));
}

TEST(GateFixtureTest, CompiledProgramAlone) {
  EXPECT_EQ(CheckHlo({.kernels = 1, .host_callbacks = 0, .outside_flops = 0}, true, 1e9).status, GateStatus::kPass);
  ExpectRejected("no_kernel_left", "G20", CheckHlo({.kernels = 0, .host_callbacks = 0, .outside_flops = 0}, true, 1e9));
  ExpectRejected("work_beside_the_kernel", "G20",
                 CheckHlo({.kernels = 1, .host_callbacks = 0, .outside_flops = 9e8}, true, 1e9));
  ExpectRejected("compiled_host_call", "G20",
                 CheckHlo({.kernels = 1, .host_callbacks = 1, .outside_flops = 0}, true, 1e9));
}

TEST(GateFixtureTest, IdentityAlone) {
  const std::vector<FileText> evaluated = {{"/k.py", "def f(x):\n    return kernel(x)\n"}};
  EXPECT_EQ(CheckIdentity(evaluated, ContentHash(evaluated)).status, GateStatus::kPass);
  std::vector<FileText> tidied = evaluated;
  tidied[0].text += "\n";
  ExpectRejected("tidied_after_the_checks", "G22", CheckIdentity(tidied, ContentHash(evaluated)));
  std::vector<FileText> elsewhere = evaluated;
  elsewhere[0].path = "/other.py";
  ExpectRejected("another_file_of_the_same_text", "G22", CheckIdentity(elsewhere, ContentHash(evaluated)));
}

TEST(GateFixtureTest, ScheduleFloorAlone) {
  const cost::Chip chip = ChipNamed("v5e");
  cost::Work work;
  work.flops = 197e12;  // one second at the peak rate
  work.flop_dtype = "bfloat16";
  cost::Estimate estimate;
  estimate.floor_milliseconds = 1000;
  estimate.milliseconds = 1100;
  EXPECT_EQ(CheckScheduleFloor(estimate, work, chip).status, GateStatus::kPass);
  estimate.milliseconds = 500;
  ExpectRejected("twice_as_fast_as_the_mxu", "G54", CheckScheduleFloor(estimate, work, chip));
  EXPECT_EQ(CheckScheduleFloor(cost::Refusal{}, work, chip).status, GateStatus::kNotRun);
}

// G23 is the compiler itself: optimize_run_test.cc has a candidate that it refuses. What stands here is that a claim
// fails when the verdict of any one gate is a failure, is missing, or was not run.
TEST(GateFixtureTest, AnyOneGateHoldsBackTheClaim) {
  for (const Claim claim : {Claim::kEstimated, Claim::kMeasured}) {
    std::vector<GateResult> all;
    for (const GateInfo& gate : AllGates()) all.push_back(Pass(std::string(gate.id)));
    ASSERT_TRUE(JudgeClaim(claim, true, all).holds);
    for (size_t i = 0; i < all.size(); ++i) {
      const GateInfo& info = *FindGate(all[i].gate);
      const bool needed = claim == Claim::kEstimated ? info.for_estimated : info.for_measured;
      for (const GateResult& bad :
           {FailGate(all[i].gate, "made to fail"), NotRun(all[i].gate, "made to be left out")}) {
        std::vector<GateResult> some = all;
        some[i] = bad;
        const ClaimVerdict verdict = JudgeClaim(claim, true, some);
        EXPECT_EQ(verdict.holds, !needed) << bad.gate;
        EXPECT_EQ(verdict.gate, needed ? bad.gate : "");
      }
      std::vector<GateResult> without = all;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_EQ(JudgeClaim(claim, true, without).holds, !needed) << info.id;
    }
  }
}

}  // namespace
}  // namespace kernelwright::agents
