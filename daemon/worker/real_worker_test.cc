// The whole path with the real Python worker: interpreter, sandbox, jax and libtpu. Needs an interpreter that has them,
// named by KW_TEST_PYTHON; scripts/test sets it. Without it these tests say so and are skipped.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "daemon/base/deadline.h"
#include "daemon/base/files.h"
#include "daemon/worker/provider.h"

namespace kernelwright::worker {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kMatmul = R"(import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _kernel(x_ref, y_ref, o_ref, acc_ref):
    @pl.when(pl.program_id(2) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        o_ref[...] = acc_ref[...].astype(o_ref.dtype)


def matmul(x, y):
    m, k = x.shape
    n = y.shape[1]
    return pl.pallas_call(
        _kernel,
        grid=(m // 128, n // 128, k // 128),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
            pl.BlockSpec((128, 128), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)],
        name="mm",
    )(x, y)
)";

std::string TestPython() {
  const char* python = std::getenv("KW_TEST_PYTHON");
  return python == nullptr ? "" : python;
}

class RealWorker : public ::testing::Test {
 protected:
  void SetUp() override {
    if (TestPython().empty()) GTEST_SKIP() << "KW_TEST_PYTHON does not name an interpreter with jax and libtpu";
    folder_.emplace(*TempFolder::Make("kw-real-worker-"));
    provider_ = MakeLocalToolchains({.agents_folder = fs::path(KW_SOURCE_DIR) / "agents",
                                     .proto_python_folder = KW_PROTO_PYTHON,
                                     .parallel_jobs = 2});
  }

  agents::ToolchainOptions Options(const fs::path& file) const {
    agents::ToolchainOptions options;
    options.python = TestPython();
    options.file = file;
    options.working_directory = folder_->path();
    for (const char* name : {"PATH", "HOME"}) {
      if (const char* value = std::getenv(name); value != nullptr) options.environment[name] = value;
    }
    return options;
  }

  fs::path Write(const std::string& name, const std::string& text) const {
    const fs::path path = folder_->path() / name;
    std::ofstream(path) << text;
    return path;
  }

  static agents::TraceRequest Matmul(const fs::path& file, const std::string& text) {
    agents::TraceRequest request;
    request.source = {.file = file, .function = "matmul", .files = {{.path = file, .text = text}}};
    request.inputs = *kernels::ParseInputs("x=bf16[512,512] y=bf16[512,512]", "test");
    request.chips = {"v5e"};
    request.want_artefacts = true;
    return request;
  }

  std::optional<TempFolder> folder_;
  std::unique_ptr<agents::ToolchainProvider> provider_;
};

int64_t Since(steady_clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - start).count();
}

TEST_F(RealWorker, TracesAndCompilesAMatmul) {
  const fs::path file = Write("mm.py", kMatmul);
  auto start = steady_clock::now();
  auto toolchain = provider_->Get(Options(file), {});
  ASSERT_TRUE(toolchain.has_value()) << toolchain.error().ToString();
  RecordProperty("start_ms", static_cast<int>(Since(start)));
  std::printf("start %ld ms, sandbox %s %s\n", Since(start), (*toolchain)->identity().sandbox.c_str(),
              (*toolchain)->identity().sandbox_detail.c_str());
  EXPECT_FALSE((*toolchain)->identity().versions.at("jax").empty());

  for (int round = 0; round < 3; ++round) {
    start = steady_clock::now();
    auto trace = (*toolchain)->Trace(Matmul(file, kMatmul), {});
    ASSERT_TRUE(trace.has_value()) << trace.error().ToString();
    ASSERT_EQ(trace->outcome, agents::JobOutcome::kDone) << trace->detail;
    ASSERT_FALSE(trace->error.has_value()) << trace->error->message << trace->error->traceback;
    std::printf("trace: %ld ms here, %u ms in the worker\n", Since(start), trace->milliseconds);
    ASSERT_TRUE(trace->program.has_value());
    ASSERT_EQ(trace->calls_seen.size(), 1U);
    EXPECT_EQ(trace->calls_seen[0].grid, (std::vector<int64_t>{4, 4, 4}));
    ASSERT_EQ(trace->artefacts.size(), 1U);
    ASSERT_FALSE(trace->artefacts[0].error.has_value()) << trace->artefacts[0].error->message;
    EXPECT_EQ(trace->inputs, Matmul(file, kMatmul).inputs);

    start = steady_clock::now();
    auto compile = (*toolchain)->Compile({.artefact = trace->artefacts[0], .want_dumps = true, .limits = {}}, {});
    ASSERT_TRUE(compile.has_value()) << compile.error().ToString();
    ASSERT_EQ(compile->outcome, agents::JobOutcome::kDone) << compile->detail;
    ASSERT_FALSE(compile->error.has_value()) << compile->error->message;
    std::printf("compile: %ld ms here, %u ms in the worker, %u ms of compiling\n", Since(start), compile->milliseconds,
                compile->compile_milliseconds);
    EXPECT_FALSE(compile->dumps.empty());
  }
  ASSERT_EQ(provider_->Describe().size(), 1U);
  EXPECT_NE(provider_->Describe()[0].find("idle"), std::string::npos) << provider_->Describe()[0];
}

TEST_F(RealWorker, AnErrorOfTheUsersCodeIsAReport) {
  const std::string text = "import jax.numpy as jnp\n\n\ndef matmul(x, y):\n    return jnp.dot(x, y[:3])\n";
  const fs::path file = Write("bad.py", text);
  auto trace = (*provider_->Get(Options(file), {}))->Trace(Matmul(file, text), {});
  ASSERT_TRUE(trace.has_value()) << trace.error().ToString();
  ASSERT_EQ(trace->outcome, agents::JobOutcome::kDone) << trace->detail;
  ASSERT_TRUE(trace->error.has_value());
  EXPECT_EQ(trace->error->stage, "trace");
  EXPECT_EQ(trace->error->type, "TypeError");
  bool has_line = false;
  for (const SourceSpan& frame : trace->error->frames) has_line |= frame.file == file && frame.line == 5;
  EXPECT_TRUE(has_line) << trace->error->traceback;
}

constexpr const char* kEndless = R"(import time


def matmul(x, y):
    while True:
        time.sleep(0.05)
)";

TEST_F(RealWorker, CancellingAndDeadlinesEndAJobInTime) {
  const fs::path file = Write("endless.py", kEndless);
  auto toolchain = *provider_->Get(Options(file), {});
  agents::TraceRequest request = Matmul(file, kEndless);
  std::stop_source stop;
  std::jthread canceller([&] {
    while (provider_->Describe()[0].find("1 running") == std::string::npos) std::this_thread::yield();
    stop.request_stop();
  });
  auto start = steady_clock::now();
  auto cancelled = toolchain->Trace(request, stop.get_token());
  ASSERT_TRUE(cancelled.has_value()) << cancelled.error().ToString();
  EXPECT_EQ(cancelled->outcome, agents::JobOutcome::kCancelled);
  EXPECT_LT(Since(start), 5000);

  request.limits.deadline = milliseconds(500);
  start = steady_clock::now();
  auto late = toolchain->Trace(request, {});
  ASSERT_TRUE(late.has_value()) << late.error().ToString();
  EXPECT_EQ(late->outcome, agents::JobOutcome::kDeadline) << late->detail;
  EXPECT_EQ(late->role, "candidate");
  EXPECT_LT(Since(start), 5000);
}

// Processes whose command line mentions the folder of this test.
std::vector<pid_t> ProcessesThatMention(const std::string& text) {
  std::vector<pid_t> found;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    auto line = ReadFile(entry.path() / "cmdline");
    if (line && line->find(text) != std::string::npos) found.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return found;
}

// The kernel takes a moment to remove the members of a namespace whose first process was killed.
bool AllEnded(const std::string& text) {
  const Deadline deadline = Deadline::After(milliseconds(5'000));
  while (!ProcessesThatMention(text).empty() && !deadline.expired()) std::this_thread::yield();
  return ProcessesThatMention(text).empty();
}

TEST_F(RealWorker, AKilledWorkerLeavesNothingAndItsJobIsRepeated) {
  const fs::path file = Write("mm.py", kMatmul);
  auto toolchain = *provider_->Get(Options(file), {});
  const std::vector<pid_t> before = ProcessesThatMention(folder_->path());
  ASSERT_FALSE(before.empty());
  ASSERT_TRUE(toolchain->Trace(Matmul(file, kMatmul), {}).has_value());
  std::jthread killer([&] {
    while (provider_->Describe()[0].find("1 running") == std::string::npos) std::this_thread::yield();
    ::kill(before.front(), SIGKILL);
  });
  auto trace = toolchain->Trace(Matmul(file, kMatmul), {});
  killer.join();
  ASSERT_TRUE(trace.has_value()) << trace.error().ToString();
  EXPECT_EQ(trace->outcome, agents::JobOutcome::kDone) << trace->detail;
  for (const pid_t pid : ProcessesThatMention(folder_->path())) {
    EXPECT_EQ(std::count(before.begin(), before.end(), pid), 0) << pid << " outlived its worker";
  }
  provider_->Shutdown();
  EXPECT_TRUE(AllEnded(folder_->path()));
}

TEST_F(RealWorker, AWorkerThatStandsStillIsEndedWithAllItsProcesses) {
  const fs::path file = Write("endless.py", kEndless);
  auto toolchain = *provider_->Get(Options(file), {});
  std::jthread asker([&] { EXPECT_FALSE(toolchain->Trace(Matmul(file, kEndless), {}).has_value()); });
  while (provider_->Describe()[0].find("1 running") == std::string::npos) std::this_thread::yield();
  for (const pid_t pid : ProcessesThatMention(folder_->path())) ::kill(pid, SIGSTOP);
  provider_->Shutdown();
  EXPECT_TRUE(AllEnded(folder_->path()));
}

TEST_F(RealWorker, TheWeakerSandboxWorksToo) {
  const fs::path file = Write("mm.py", kMatmul);
  agents::ToolchainOptions options = Options(file);
  options.sandbox = "landlock";
  auto toolchain = provider_->Get(options, {});
  if (!toolchain) GTEST_SKIP() << toolchain.error().ToString();
  EXPECT_EQ((*toolchain)->identity().sandbox, "landlock");
  auto trace = (*toolchain)->Trace(Matmul(file, kMatmul), {});
  ASSERT_TRUE(trace.has_value()) << trace.error().ToString();
  ASSERT_EQ(trace->outcome, agents::JobOutcome::kDone) << trace->detail;
  EXPECT_FALSE(trace->error.has_value());
}

TEST_F(RealWorker, ProbesAndJudges) {
  const fs::path file = Write("mm.py", kMatmul);
  auto toolchain = *provider_->Get(Options(file), {});
  auto probe = toolchain->Probe({"v5e", "v9z"}, {}, {});
  ASSERT_TRUE(probe.has_value()) << probe.error().ToString();
  ASSERT_EQ(probe->chips.size(), 2U) << probe->detail;
  EXPECT_TRUE(probe->chips[0].compiles) << probe->chips[0].detail;
  EXPECT_FALSE(probe->chips[1].compiles);

  agents::JudgeRequest request;
  request.candidate = request.reference = Matmul(file, kMatmul).source;
  request.shapes = {{.name = "reduced", .inputs = *kernels::ParseInputs("x=bf16[256,256] y=bf16[256,256]", "test")}};
  request.seeds = {1, 2};
  request.chip = "v5e";
  auto judged = toolchain->Judge(request, {});
  ASSERT_TRUE(judged.has_value()) << judged.error().ToString();
  ASSERT_EQ(judged->outcome, agents::JobOutcome::kDone) << judged->detail;
  EXPECT_FALSE(judged->candidate_error.has_value()) << judged->candidate_error->message;
  EXPECT_FALSE(judged->comparisons.empty());
  for (const agents::Comparison& comparison : judged->comparisons) EXPECT_TRUE(comparison.pass) << comparison.detail;
  for (const agents::GateResult& gate : judged->gates) EXPECT_NE(gate.status, agents::GateStatus::kFail) << gate.reason;
}

TEST_F(RealWorker, AnInterpreterWithoutJaxIsAnEnvironmentError) {
  const fs::path python = "/usr/bin/python3";
  if (!fs::exists(python)) GTEST_SKIP() << "no " << python;
  agents::ToolchainOptions options = Options(Write("mm.py", kMatmul));
  options.python = python;
  auto toolchain = provider_->Get(options, {});
  if (toolchain) GTEST_SKIP() << python << " has jax";
  std::printf("%s\n", toolchain.error().ToString().c_str());
  EXPECT_EQ(toolchain.error().kind(), ErrorKind::kEnvironment) << toolchain.error().ToString();
  EXPECT_NE(toolchain.error().remedy().find("--python"), std::string::npos);
}

}  // namespace
}  // namespace kernelwright::worker
