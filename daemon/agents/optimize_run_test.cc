// The loop over a scripted worker: kernels, dumps and verdicts are chosen by the text of the candidate, so that each
// way in which a run can end is reached without Python. Dumps are real ones.
#include "daemon/agents/optimize_run.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "daemon/agents/gate_list.h"
#include "daemon/base/files.h"
#include "daemon/base/gzip.h"
#include "daemon/base/hash.h"
#include "daemon/kernels/test_calls.h"
#include "gtest/gtest.h"

namespace kernelwright::agents {
namespace {

constexpr const char* kSource = R"py(import jax
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


# kernelwright: x=f32[1024,128]
def copy(x, rows=8):
    block = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(x.shape[0] // rows,), in_specs=[block], out_specs=block, out_shape=x)(x)
)py";

int64_t NumberAfter(const std::string& text, const std::string& marker) {
  int64_t value = 0;
  const size_t at = text.find(marker);
  if (at != std::string::npos) {
    const char* begin = text.data() + at + marker.size();
    std::from_chars(begin, text.data() + text.size(), value);
  }
  return value;
}

int64_t Rows(const Source& source) { return std::max<int64_t>(1, NumberAfter(source.files.front().text, "rows=")); }

// A compiled program: its own dumps, and the parts that the compiler adds to every program ("late").
std::vector<DumpFile> RealDumps(const std::string& name) {
  std::vector<DumpFile> dumps;
  for (const std::string& part : {name, std::string("late")}) {
    const auto folder = std::filesystem::path(KW_SOURCE_DIR) / "daemon/cost/testdata/v5e" / part;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      dumps.push_back({entry.path().filename().string(), *GzipCompress(*ReadFile(entry.path()))});
    }
  }
  return dumps;
}

class ScriptedWorker : public Toolchain {
 public:
  std::function<std::string(int64_t rows)> dumps_of = [](int64_t rows) { return rows == 8 ? "mm128" : "add"; };
  std::function<std::optional<CodeError>(int64_t rows)> compile_error_of = [](int64_t) { return std::nullopt; };
  std::function<GateResult(int64_t rows, bool reference_only)> verdict_of = [](int64_t, bool) { return Pass("G43"); };
  int64_t only_extent = 0;  // tracing with another number of rows in x fails
  std::mutex mutex;
  int compiles = 0;
  std::set<std::vector<uint64_t>> seeds;
  std::set<std::string> references;

  const WorkerIdentity& identity() const override { return identity_; }

  Expected<TraceReport> Trace(const TraceRequest& request, std::stop_token) override {
    TraceReport report;
    report.inputs = request.inputs;
    report.closure = {{request.source.file, Sha256Hex(request.source.files.front().text), true, {"copy", "kernel"}}};
    const int64_t rows = Rows(request.source);
    const int64_t columns = NumberAfter(request.source.files.front().text, "BlockSpec((rows, ");
    const int64_t extent = request.inputs.front().dims[0];
    if (only_extent > 0 && extent != only_extent) {
      report.error = CodeError{"trace", "ValueError", "the shape is fixed", "", {}, ""};
      return report;
    }
    PallasCall call;
    call.name = "copy";
    call.grid = {extent / rows};
    const std::vector<int64_t> dims = {extent, 128};
    call.blocks = {kernels::MakeBlock("x_ref", "float32", dims, {rows, columns}, {0, kernels::kConstant}, 1),
                   kernels::MakeBlock("o_ref", "float32", dims, {rows, columns}, {0, kernels::kConstant}, 1, true)};
    report.calls_seen = {call};
    if (columns != 128) {
      report.error = CodeError{"trace", "ValueError", "the block does not fit", "", {}, ""};
      return report;
    }
    Program program;
    Operation operation;
    operation.name = "pallas_call";
    operation.pallas = {call};
    program.main.operations = {operation};
    report.program = program;
    for (const std::string& chip : request.chips) {
      if (request.want_artefacts) report.artefacts.push_back({chip, std::to_string(rows), "", std::nullopt});
    }
    return report;
  }

  Expected<CompileReport> Compile(const CompileRequest& request, std::stop_token) override {
    std::lock_guard lock(mutex);
    ++compiles;
    CompileReport report;
    const int64_t rows = std::stoll(request.artefact.exported);
    report.error = compile_error_of(rows);
    if (report.error) return report;
    report.dumps = RealDumps(dumps_of(rows));
    report.hlo_gzip = *GzipCompress("  %k = f32[8]{0} custom-call(%x), custom_call_target=\"tpu_custom_call\"\n");
    report.versions = {{"jax", "0.10.2"}};
    return report;
  }

  Expected<JudgeReport> Judge(const JudgeRequest& request, std::stop_token) override {
    std::lock_guard lock(mutex);
    seeds.insert(request.seeds);
    references.insert(request.reference.files.front().text);
    JudgeReport report;
    const GateResult verdict = verdict_of(Rows(request.candidate), request.reference_only);
    for (const GateInfo& gate : AllGates()) {
      if (!gate.for_estimated || gate.id == "G10" || gate.id == "G11" || gate.id == "G22" || gate.id == "G23" ||
          gate.id == "G54") {
        continue;
      }
      report.gates.push_back(gate.id == verdict.gate ? verdict : Pass(std::string(gate.id)));
    }
    return report;
  }

  Expected<ProbeReport> Probe(const std::vector<std::string>&, const Limits&, std::stop_token) override {
    return ProbeReport();
  }

 private:
  WorkerIdentity identity_{{{"jax", "0.10.2"}}, "python", "bubblewrap", "", 1, 1, true};
};

class OneWorker : public ToolchainProvider {
 public:
  explicit OneWorker(std::shared_ptr<Toolchain> worker) : worker_(std::move(worker)) {}
  Expected<std::shared_ptr<Toolchain>> Get(const ToolchainOptions&, std::stop_token) override { return worker_; }
  std::vector<std::string> Describe() const override { return {}; }
  uint32_t QueuedJobs() const override { return 0; }
  void Shutdown() override {}

 private:
  std::shared_ptr<Toolchain> worker_;
};

class MemoryJournal : public Journal {
 public:
  std::string run_id() const override { return "run"; }
  Expected<std::optional<std::string>> LoadFrozen() override { return frozen; }
  Status SaveFrozen(const std::string& json, const std::string&) override {
    frozen = json;
    return {};
  }
  Expected<std::string> CandidateId(const std::string& content, const std::string&) override {
    std::lock_guard lock(mutex);
    return ids.try_emplace(content, "c" + std::to_string(ids.size())).first->second;
  }
  Expected<std::optional<StageRecord>> FindStage(const std::string& chip, const std::string& content,
                                                 const std::string& stage) override {
    std::lock_guard lock(mutex);
    const auto found = stages.find({chip, content, stage});
    return found == stages.end() ? std::optional<StageRecord>() : found->second;
  }
  Status SaveStage(const StageRecord& record, const CandidateRow&) override {
    std::lock_guard lock(mutex);
    stages[{record.chip, record.content_sha256, record.stage}] = record;
    if (after_stage) after_stage(stages.size());
    return {};
  }
  Status Emit(const std::string& kind, const std::string&) override {
    std::lock_guard lock(mutex);
    events.push_back(kind);
    return {};
  }
  std::optional<std::string> CacheGet(const std::string&) override { return std::nullopt; }
  void CachePut(const std::string&, const std::string&) override {}

  std::mutex mutex;
  std::optional<std::string> frozen;
  std::map<std::string, std::string> ids;
  std::map<std::tuple<std::string, std::string, std::string>, StageRecord> stages;
  std::vector<std::string> events;
  std::function<void(size_t)> after_stage;
};

class OptimizeRunTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::make_unique<TempFolder>(*TempFolder::Make());
    file_ = (folder_->path() / "k.py").string();
    ASSERT_TRUE(WriteFileAtomically(file_, kSource).ok());
    auto text = ReadFile(std::filesystem::path(KW_SOURCE_DIR) / "agents/chips.json");
    auto table = cost::ParseChips(*text);
    ASSERT_TRUE(table) << table.error().ToString();
    chips_ = std::make_unique<cost::ChipTable>(*std::move(table));
  }

  ChipResult Optimize(std::stop_token stop = {}) {
    OptimizeInputs inputs;
    inputs.request.kind = "optimize";
    inputs.request.file = file_;
    inputs.request.function = "copy";
    inputs.chips = {chips_->Find("v5e")};
    inputs.build = "test";
    inputs.random_seed = [seed = uint64_t{1}]() mutable { return seed++; };
    inputs.parallel = 1;
    OneWorker provider(worker_);
    RunResult result = RunOptimize(inputs, provider, journal_, std::move(stop));
    EXPECT_EQ(result.results.size(), 1u);
    return result.results.front();
  }

  std::unique_ptr<TempFolder> folder_;
  std::string file_;
  std::unique_ptr<cost::ChipTable> chips_;
  std::shared_ptr<ScriptedWorker> worker_ = std::make_shared<ScriptedWorker>();
  MemoryJournal journal_;
};

TEST_F(OptimizeRunTest, FasterCandidateThatPassesEveryGateWins) {
  const ChipResult result = Optimize();
  EXPECT_EQ(result.status, "improved") << result.message;
  ASSERT_TRUE(result.best);
  EXPECT_GT(result.speedup, 1.1);
  EXPECT_EQ(result.verdict, "faster");
  EXPECT_NE(result.best->diff.find("-def copy(x, rows=8):"), std::string::npos) << result.best->diff;
  EXPECT_TRUE(JudgeClaim(Claim::kEstimated, true, result.best->gates).holds);
  EXPECT_EQ(*ReadFile(file_), kSource) << "a run never writes the user's file";
}

// A candidate that fails any gate is never the result, however fast it is.
TEST_F(OptimizeRunTest, NoUnprovenWinner) {
  for (const GateInfo& gate : AllGates()) {
    if (!gate.for_estimated || gate.id == "G10" || gate.id == "G11" || gate.id == "G22" || gate.id == "G23" ||
        gate.id == "G54") {
      continue;  // decided by the daemon itself, not by the worker's judge
    }
    journal_.stages.clear();
    journal_.frozen.reset();
    worker_->verdict_of = [&](int64_t rows, bool reference_only) {
      return reference_only || rows == 8 ? Pass(std::string(gate.id)) : FailGate(std::string(gate.id), "scripted");
    };
    const ChipResult result = Optimize();
    EXPECT_FALSE(result.best) << gate.id;
    EXPECT_EQ(result.status, "failed") << gate.id;
    const bool named = std::any_of(result.candidates.begin(), result.candidates.end(),
                                   [&](const CandidateRow& row) { return row.gate == gate.id; });
    EXPECT_TRUE(named) << gate.id;
  }
}

TEST_F(OptimizeRunTest, CheckThatWasNotRunIsNoPass) {
  worker_->verdict_of = [](int64_t, bool) { return NotRun("G40", "no time"); };
  // The original itself is not proven sound then.
  EXPECT_FALSE(Optimize().best);
}

TEST_F(OptimizeRunTest, OriginalThatFailsItsGatesIsADiagnostic) {
  worker_->verdict_of = [](int64_t, bool) { return FailGate("G31", "a race at o_ref"); };
  const ChipResult result = Optimize();
  EXPECT_EQ(result.status, "failed");
  EXPECT_EQ(result.error, ErrorKind::kUserCode);
  EXPECT_NE(result.message.find("G31"), std::string::npos) << result.message;
  EXPECT_TRUE(result.candidates.empty());
}

TEST_F(OptimizeRunTest, FixedShapesAreCompiledOnlyAndNeverBetter) {
  // Too large for the interpreter, and nothing smaller can be traced.
  worker_->only_extent = int64_t{1} << 20;
  std::string source = kSource;
  source.replace(source.find("1024,128"), 4, "1048576");
  ASSERT_TRUE(WriteFileAtomically(file_, source).ok());
  const ChipResult result = Optimize();
  EXPECT_EQ(result.status, "no_improvement");
  EXPECT_FALSE(result.best);
  const bool told = std::any_of(result.candidates.begin(), result.candidates.end(),
                                [](const CandidateRow& row) { return row.status == "compiled_only"; });
  EXPECT_TRUE(told) << result.message;
}

TEST_F(OptimizeRunTest, EqualEstimatesAreATie) {
  worker_->dumps_of = [](int64_t) { return "add"; };
  const ChipResult result = Optimize();
  EXPECT_EQ(result.status, "no_improvement");
  EXPECT_EQ(result.verdict, "tie");
}

TEST_F(OptimizeRunTest, CompileErrorOfTheOriginalEndsTheRun) {
  worker_->compile_error_of = [](int64_t) {
    return CodeError{"compile", "JaxRuntimeError", "INTERNAL: no", "", {}, ""};
  };
  const ChipResult result = Optimize();
  EXPECT_EQ(result.status, "failed");
  EXPECT_EQ(result.error, ErrorKind::kUserCode);
  ASSERT_TRUE(result.code_error);
  EXPECT_EQ(result.code_error->stage, "compile");
}

TEST_F(OptimizeRunTest, CandidatesThatDoNotCompileLeaveTheOriginal) {
  worker_->compile_error_of = [](int64_t rows) -> std::optional<CodeError> {
    if (rows == 8) return std::nullopt;
    return CodeError{"compile", "JaxRuntimeError", "INTERNAL: no", "", {}, ""};
  };
  const ChipResult result = Optimize();
  EXPECT_EQ(result.status, "failed");
  for (const CandidateRow& row : result.candidates) EXPECT_EQ(row.gate, "G23");
}

// A run that was stopped in the middle repeats nothing that was stored, keeps its frozen record and ends as it would
// have.
TEST_F(OptimizeRunTest, ResumeRepeatsNoFinishedStage) {
  std::stop_source stop;
  journal_.after_stage = [&](size_t count) {
    if (count == 4) stop.request_stop();
  };
  const ChipResult first = Optimize(stop.get_token());
  EXPECT_EQ(first.status, "cancelled");
  const int before = worker_->compiles;
  const auto frozen = journal_.frozen;
  ASSERT_TRUE(frozen);
  journal_.after_stage = nullptr;

  const ChipResult second = Optimize();
  EXPECT_EQ(second.status, "improved");
  EXPECT_EQ(journal_.frozen, frozen);
  EXPECT_EQ(worker_->compiles, static_cast<int>(second.candidates.size()) + 1) << "before the stop: " << before;
  EXPECT_EQ(worker_->seeds.size(), 1u) << "every candidate of a run is judged by the same seeds";
  EXPECT_EQ(worker_->references.size(), 1u) << "and by the same reference";
}

TEST_F(OptimizeRunTest, EditsOnDiskDuringTheRunChangeNothing) {
  journal_.after_stage = [&](size_t count) {
    if (count == 2) (void)WriteFileAtomically(file_, "broken(");
  };
  const ChipResult result = Optimize();
  EXPECT_EQ(result.status, "improved") << result.message;
  EXPECT_EQ(result.best->changes.front().base_sha256, Sha256Hex(kSource));
}

}  // namespace
}  // namespace kernelwright::agents
