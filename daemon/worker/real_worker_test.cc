// The whole path with the real Python worker: interpreter, sandbox, jax and libtpu. Needs an interpreter that has them,
// named by KW_TEST_PYTHON; scripts/test sets it. Without it these tests say so and are skipped.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

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

}  // namespace
}  // namespace kernelwright::worker
