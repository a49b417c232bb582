// The order of a check and what it makes of the answers, with a scripted worker and scripted rules: markers in the text
// decide what happens, so that a fix is an edit that takes a marker out.
#include "daemon/agents/check_run.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "daemon/agents/check_desk.h"
#include "daemon/agents/gate_list.h"
#include "daemon/base/files.h"
#include "daemon/base/hash.h"
#include "daemon/kernels/test_calls.h"
#include "gtest/gtest.h"

namespace kernelwright::agents {
namespace {

using diagnose::Diagnostic;
using diagnose::Severity;
using diagnose::Stage;

constexpr const char* kHead = R"py(import jax
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


)py";

constexpr const char* kCopy = R"py(# kernelwright: x=f32[16,128]
def copy(x):
    return pl.pallas_call(kernel, out_shape=x)(x)
)py";

bool Has(const std::string& text, const std::string& marker) { return text.find(marker) != std::string::npos; }

int LineOf(const std::string& text, const std::string& marker) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(text.find(marker)), '\n'));
}

class ScriptedWorker : public Toolchain {
 public:
  const WorkerIdentity& identity() const override { return identity_; }

  Expected<TraceReport> Trace(const TraceRequest& request, std::stop_token stop) override {
    ++traces;
    const std::string& text = request.source.files.front().text;
    TraceReport report;
    if (Has(text, "BLOCKS")) {
      std::unique_lock lock(mutex_);
      blocked_ = true;
      changed_.notify_all();
      changed_.wait(lock, stop, [] { return false; });
      report.outcome = JobOutcome::kCancelled;
      return report;
    }
    if (Has(text, "SLOW")) {
      report.outcome = JobOutcome::kDeadline;
      report.detail = "60 s";
      return report;
    }
    report.versions = identity_.versions;
    report.inputs = request.inputs;
    report.closure = {{request.source.file, Sha256Hex(text), true, {"copy", "kernel"}}};
    PallasCall call;
    call.name = "kernel";
    const int line = LineOf(text, "pl.pallas_call");
    call.spans = {{request.source.file, line, 12, line, 46, request.source.function}};
    call.blocks = {kernels::MakeBlock("x_ref", "float32", {16, 128}, {16, 128}, {0, kernels::kConstant}, 1)};
    report.calls_seen = {call};
    if (Has(text, "RAISES")) {
      const int at = LineOf(text, "RAISES");
      report.error =
          CodeError{"trace", "ValueError", "RAISES", "", {{request.source.file, at, 5, at, 9, "kernel"}}, ""};
      return report;
    }
    if (request.inputs.empty()) {
      report.error = CodeError{"inputs", "InputError", "the inputs of the function are not known", "", {}, ""};
      return report;
    }
    Program program;
    Operation operation;
    operation.name = "pallas_call";
    operation.pallas = {call};
    program.main.operations = {operation};
    if (request.want_program) report.program = program;
    for (const std::string& chip : request.chips) report.artefacts.push_back({chip, text, "", std::nullopt});
    return report;
  }

  Expected<CompileReport> Compile(const CompileRequest& request, std::stop_token) override {
    ++compiles;
    CompileReport report;
    const std::string& text = request.artefact.exported;
    if (Has(text, "CRASH")) {
      report.outcome = JobOutcome::kCrashed;
      report.detail = "SIGABRT";
    } else if (Has(text, "FAILS_" + request.artefact.chip) || Has(text, "FAILS_ALL")) {
      report.error = CodeError{"compile", "MosaicError", "FAILS", "", {}, ""};
    }
    return report;
  }

  Expected<JudgeReport> Judge(const JudgeRequest& request, std::stop_token) override {
    ++judged;
    JudgeReport report;
    EXPECT_TRUE(request.reference_only);
    const std::string& text = request.candidate.files.front().text;
    report.gates = {Pass("G30"), Pass("G43")};
    if (Has(text, "RACES")) {
      const std::string line = std::to_string(LineOf(text, "RACES"));
      report.gates.push_back(FailGate(
          "G31", "a race between cores, first seen at " + request.candidate.file + ":" + line + ":5 (kernel) (shape)"));
    } else if (Has(text, "UNWRITTEN")) {
      report.gates.push_back(FailGate("G31", "memory that nothing has written was read (shape)"));
    }
    return report;
  }

  Expected<ProbeReport> Probe(const std::vector<std::string>&, const Limits&, std::stop_token) override {
    return ProbeReport();
  }

  void WaitUntilBlocked() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return blocked_; });
  }

  std::atomic<int> traces = 0;
  std::atomic<int> compiles = 0;
  std::atomic<int> judged = 0;

 private:
  WorkerIdentity identity_{{{"jax", "0.10.2"}}, "/usr/bin/python3", "none", "", 1, 1, false};
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool blocked_ = false;
};

class ScriptedProvider : public ToolchainProvider {
 public:
  std::shared_ptr<ScriptedWorker> worker = std::make_shared<ScriptedWorker>();
  Status broken;
  Expected<std::shared_ptr<Toolchain>> Get(const ToolchainOptions&, std::stop_token) override {
    if (!broken.ok()) return Fail(broken);
    return std::shared_ptr<Toolchain>(worker);
  }
  std::vector<std::string> Describe() const override { return {}; }
  uint32_t QueuedJobs() const override { return 0; }
  void Shutdown() override {}
};

// Each marker in the entry file is a problem of the stage that it names; a fix takes the marker out.
class MarkerRules : public CheckRules {
 public:
  std::vector<Diagnostic> LintApi(const kernels::SourceFile& source, const std::string& version) const override {
    versions.insert(version);
    return Found(source.path(), source.text(), "OLD_NAME", "D150", Stage::kApi, Severity::kError);
  }
  std::vector<Diagnostic> LintBlocks(const ErrorContext& context, const cost::Chip&) const override {
    return Lint(context, "BAD_BLOCK", "D01", Severity::kError);
  }
  std::vector<Diagnostic> LintKernels(const ErrorContext& context, const cost::Chip&) const override {
    return Lint(context, "NO_ZERO", "D30", Severity::kWarning);
  }
  std::vector<Diagnostic> Explain(const CodeError& error, const ErrorContext& context) const override {
    auto found = DiagnosticsOf(error, context);
    const std::string& text = context.texts->at(context.file);
    if (error.message == "FAILS" && Has(text, "BAD_BLOCK")) found.front().id = "D01";
    return found;
  }
  Diagnostic Make(const std::string& id) const override {
    Diagnostic diagnostic;
    diagnostic.id = id;
    return diagnostic;
  }
  std::vector<diagnose::Fix> ProposeFixes(const Diagnostic& diagnostic, const ErrorContext& context,
                                          const std::vector<const cost::Chip*>&) const override {
    const std::string& text = context.texts->at(context.file);
    std::vector<diagnose::Fix> fixes;
    for (const auto& [id, marker] : markers) {
      const size_t at = text.find(marker);
      if (diagnostic.id != id || at == std::string::npos) continue;
      const kernels::ByteRange range{static_cast<uint32_t>(at), static_cast<uint32_t>(at + marker.size())};
      fixes.push_back({"Take out " + marker, {{context.file, range, "", Sha256Hex(text)}}, {}});
    }
    return fixes;
  }

  mutable std::set<std::string> versions;
  std::multimap<std::string, std::string> markers = {{"D01", "BAD_BLOCK"}, {"D000", "RAISES"}, {"D000", "FAILS_ALL"}};

 private:
  static std::vector<Diagnostic> Found(const std::string& file, const std::string& text, const std::string& marker,
                                       const std::string& id, Stage stage, Severity severity) {
    if (!Has(text, marker)) return {};
    Diagnostic diagnostic;
    diagnostic.id = id;
    diagnostic.stage = stage;
    diagnostic.severity = severity;
    diagnostic.place = {file, LineOf(text, marker), 1, LineOf(text, marker), 5};
    diagnostic.message = marker;
    return {diagnostic};
  }
  static std::vector<Diagnostic> Lint(const ErrorContext& context, const std::string& marker, const std::string& id,
                                      Severity severity) {
    auto found = Found(context.file, context.texts->at(context.file), marker, id, Stage::kBlocks, severity);
    for (Diagnostic& diagnostic : found) diagnostic.chips = context.chips;
    return found;
  }
};

class MemoryCache : public BlobCache {
 public:
  std::optional<std::string> Get(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    const auto found = blobs_.find(key);
    return found == blobs_.end() ? std::nullopt : std::optional(found->second);
  }
  void Put(const std::string& key, const std::string& blob) override {
    const std::lock_guard lock(mutex_);
    blobs_[key] = blob;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> blobs_;
};

class CheckRunTest : public ::testing::Test {
 protected:
  CheckRunTest() {
    auto table = cost::ParseChips(*ReadFile(std::filesystem::path(KW_SOURCE_DIR) / "agents/chips.json"));
    chips_ = std::make_unique<cost::ChipTable>(*std::move(table));
    inputs_.request.file = "/nowhere/k.py";  // only the text given with the request is there
    inputs_.request.fixes = false;
    inputs_.chips = {chips_->Find("v5e"), chips_->Find("v6e")};
    inputs_.rules = &rules_;
    inputs_.cache = &cache_;
  }

  CheckResult Check(const std::string& text, std::stop_token stop = {}) {
    inputs_.request.files = {{inputs_.request.file, text}};
    stages_.clear();
    auto result = RunCheck(
        inputs_, provider_,
        [this](const CheckStageReport& stage) {
          stages_.push_back(std::string(diagnose::StageName(stage.stage)) +
                            (stage.chip.empty() ? "" : " " + stage.chip));
        },
        std::move(stop));
    EXPECT_TRUE(result) << result.error().ToString();
    return result ? *std::move(result) : CheckResult();
  }

  std::unique_ptr<cost::ChipTable> chips_;
  MarkerRules rules_;
  MemoryCache cache_;
  ScriptedProvider provider_;
  CheckInputs inputs_;
  std::vector<std::string> stages_;
};

std::vector<std::string> Ids(const CheckResult& result) {
  std::vector<std::string> ids;
  for (const Diagnostic& diagnostic : result.diagnostics) ids.push_back(diagnostic.id);
  return ids;
}

using List = std::vector<std::string>;

TEST_F(CheckRunTest, CleanTextGoesThroughEveryStage) {
  const CheckResult result = Check(std::string(kHead) + kCopy);
  EXPECT_TRUE(result.diagnostics.empty());
  EXPECT_EQ(CheckStatusName(result), "clean");
  EXPECT_EQ(CheckExitCode(result), 0);
  std::sort(stages_.begin() + 4, stages_.begin() + 6);
  EXPECT_EQ(stages_, (List{"syntax", "api", "trace", "blocks", "compile v5e", "compile v6e", "semantics"}));
  ASSERT_EQ(result.functions.size(), 1U);
  EXPECT_EQ(result.functions[0].inputs_origin, "comment");
  EXPECT_TRUE(result.functions[0].semantics);
  EXPECT_EQ(rules_.versions, (std::set<std::string>{kNewestJax}));
}

TEST_F(CheckRunTest, BrokenSyntaxIsSaidWithoutAWorker) {
  provider_.broken = Status(ErrorKind::kEnvironment, "no jax");
  const CheckResult result = Check("def f(:\n    pass\n");
  EXPECT_EQ(Ids(result).front(), kSyntaxId);
  EXPECT_EQ(result.diagnostics.front().place.line, 1);
  EXPECT_EQ(stages_, List{"syntax"});
  EXPECT_EQ(CheckExitCode(result), 1);
}

TEST_F(CheckRunTest, WithoutAWorkerTheTextIsStillChecked) {
  provider_.broken = Status(ErrorKind::kEnvironment, "no jax");
  const CheckResult old_name = Check(std::string(kHead) + kCopy + "# OLD_NAME\n");
  EXPECT_EQ(Ids(old_name), List{"D150"});
  EXPECT_EQ(old_name.failure.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(CheckExitCode(old_name), 1);
  const CheckResult clean = Check(std::string(kHead) + kCopy);
  EXPECT_EQ(CheckStatusName(clean), "incomplete");
  EXPECT_EQ(CheckExitCode(clean), 3);
}

TEST_F(CheckRunTest, AnErrorOfTheTraceHasItsLineAndAllChips) {
  const std::string text = std::string(kHead) + kCopy + "# RAISES\n";
  const CheckResult result = Check(text);
  ASSERT_EQ(Ids(result), List{"D000"});
  EXPECT_EQ(result.diagnostics[0].place.line, LineOf(text, "RAISES"));
  EXPECT_EQ(result.diagnostics[0].chips, (List{"v5e", "v6e"}));
  EXPECT_EQ(provider_.worker->compiles, 0);
  for (const CheckChipResult& chip : result.results) EXPECT_EQ(chip.status, "errors");
}

TEST_F(CheckRunTest, OneChipFails) {
  const CheckResult result = Check(std::string(kHead) + kCopy + "# FAILS_v5e\n");
  ASSERT_EQ(Ids(result), List{"D000"});
  EXPECT_EQ(result.diagnostics[0].chips, List{"v5e"});
  EXPECT_EQ(result.results[0].status, "errors");
  EXPECT_EQ(result.results[1].status, "clean");
  EXPECT_EQ(provider_.worker->judged, 1);  // the other chip's kernel can be run
}

TEST_F(CheckRunTest, TheSameErrorOfAllChipsIsOne) {
  const CheckResult result = Check(std::string(kHead) + kCopy + "# FAILS_ALL\n");
  ASSERT_EQ(Ids(result), List{"D000"});
  EXPECT_EQ(result.diagnostics[0].chips.size(), 2U);
  EXPECT_EQ(provider_.worker->judged, 0);
}

TEST_F(CheckRunTest, ALintThatTheCompilerConfirmsIsSaidOnceWithItsText) {
  const CheckResult result = Check(std::string(kHead) + kCopy + "# BAD_BLOCK FAILS_ALL\n");
  ASSERT_EQ(Ids(result), List{"D01"});
  EXPECT_EQ(result.diagnostics[0].stage, Stage::kBlocks);
  EXPECT_TRUE(Has(result.diagnostics[0].raw, "FAILS"));
}

TEST_F(CheckRunTest, ALintThatTheCompilerRefutesIsDropped) {
  EXPECT_TRUE(Check(std::string(kHead) + kCopy + "# BAD_BLOCK\n").diagnostics.empty());
  const CheckResult one = Check(std::string(kHead) + kCopy + "# BAD_BLOCK FAILS_v6e\n");
  ASSERT_EQ(Ids(one), List{"D01"});
  EXPECT_EQ(one.diagnostics[0].chips, List{"v6e"});
}

TEST_F(CheckRunTest, VerdictsAreKeptByContent) {
  const std::string text = std::string(kHead) + kCopy + "# FAILS_v5e\n";
  const CheckResult first = Check(text);
  const int compiles = provider_.worker->compiles;
  const CheckResult second = Check(text);
  EXPECT_EQ(provider_.worker->compiles, compiles);
  EXPECT_EQ(Ids(first), Ids(second));
  for (const CheckStageReport& stage : second.stages) EXPECT_EQ(stage.cached, stage.stage == Stage::kCompile);
  Check(text + "\n");
  EXPECT_EQ(provider_.worker->compiles, 2 * compiles);
}

TEST_F(CheckRunTest, ACompilerThatAbortsIsAnErrorAtTheFunction) {
  const CheckResult result = Check(std::string(kHead) + kCopy + "# CRASH\n");
  ASSERT_EQ(Ids(result), List{kCrashId});
  EXPECT_EQ(result.diagnostics[0].place.line, 10);
  Check(std::string(kHead) + kCopy + "# CRASH\n");
  EXPECT_EQ(provider_.worker->compiles, 4);  // another try may go well, so it is not kept
}

TEST_F(CheckRunTest, ALimitIsNoErrorOfTheCode) {
  const CheckResult result = Check(std::string(kHead) + kCopy + "# SLOW\n");
  EXPECT_TRUE(result.diagnostics.empty());
  EXPECT_EQ(result.failure.kind(), ErrorKind::kLimit);
  EXPECT_EQ(CheckExitCode(result), 4);
  EXPECT_EQ(result.results[0].status, "unknown");
}

TEST_F(CheckRunTest, RacesAreShownWhereTheyHappen) {
  const std::string text = std::string(kHead) + kCopy + "# RACES\n";
  const CheckResult result = Check(text);
  ASSERT_EQ(Ids(result), List{"D16"});
  EXPECT_EQ(result.diagnostics[0].place.line, LineOf(text, "RACES"));
  EXPECT_EQ(result.diagnostics[0].stage, Stage::kSemantics);
  inputs_.request.semantics = false;
  EXPECT_TRUE(Check(text).diagnostics.empty());
}

TEST_F(CheckRunTest, UnwrittenMemoryIsExplainedByTheLintThatFits) {
  const CheckResult known = Check(std::string(kHead) + kCopy + "# UNWRITTEN NO_ZERO\n");
  ASSERT_EQ(Ids(known), List{"D30"});
  EXPECT_EQ(known.diagnostics[0].severity, Severity::kError);  // as a lint it was a warning
  const CheckResult unknown = Check(std::string(kHead) + kCopy + "# UNWRITTEN\n");
  ASSERT_EQ(Ids(unknown), List{kUnwrittenId});
  EXPECT_EQ(unknown.diagnostics[0].place.line, LineOf(std::string(kHead) + kCopy, "pl.pallas_call"));
}

TEST_F(CheckRunTest, FunctionsWithoutInputsAreNamed) {
  const CheckResult result =
      Check(std::string(kHead) + "def copy(x):\n    return pl.pallas_call(kernel, out_shape=x)(x)\n");
  ASSERT_EQ(Ids(result), List{kNoInputsId});
  EXPECT_EQ(result.diagnostics[0].severity, Severity::kInformation);
  EXPECT_EQ(result.diagnostics[0].place.line, 9);
  EXPECT_EQ(provider_.worker->traces, 0);
  EXPECT_EQ(CheckExitCode(result), 0);
}

TEST_F(CheckRunTest, InputsAreTakenFromTheCommand) {
  inputs_.request.inputs = "x=f32[8,128]";
  const CheckResult result =
      Check(std::string(kHead) + "def copy(x):\n    return pl.pallas_call(kernel, out_shape=x)(x)\n");
  EXPECT_TRUE(result.diagnostics.empty());
  ASSERT_EQ(result.functions.size(), 1U);
  EXPECT_EQ(result.functions[0].inputs_origin, "--inputs");
}

TEST_F(CheckRunTest, MalformedInputsAreMarkedInTheComment) {
  const CheckResult result =
      Check(std::string(kHead) + "# kernelwright: x=f33[16]\ndef copy(x):\n    return pl.pallas_call(kernel)(x)\n");
  ASSERT_EQ(Ids(result).front(), kBadInputsId);
  EXPECT_EQ(result.diagnostics[0].place.line, 9);
  EXPECT_GT(result.diagnostics[0].place.column, 16);
}

TEST_F(CheckRunTest, AFixIsOfferedOnlyWhenItHolds) {
  inputs_.request.fixes = true;
  const CheckResult holds = Check(std::string(kHead) + kCopy + "# RAISES\n");
  ASSERT_EQ(Ids(holds), List{"D000"});
  ASSERT_EQ(holds.diagnostics[0].fixes.size(), 1U);
  EXPECT_EQ(holds.diagnostics[0].fixes[0].verified, (List{"v5e", "v6e"}));
  // Without the marker it still does not compile.
  const CheckResult fails = Check(std::string(kHead) + kCopy + "# RAISES CRASH\n");
  ASSERT_EQ(Ids(fails), List{"D000"});
  EXPECT_TRUE(fails.diagnostics[0].fixes.empty());
}

TEST_F(CheckRunTest, SeveralErrorsAreMendedTogether) {
  inputs_.request.fixes = true;
  const std::string text = std::string(kHead) + kCopy + "# RAISES\n# FAILS_ALL\n";
  const CheckResult result = Check(text);
  ASSERT_EQ(Ids(result), List{"D000"});
  ASSERT_EQ(result.diagnostics[0].fixes.size(), 1U);
  const diagnose::Fix& fix = result.diagnostics[0].fixes[0];
  auto mended = kernels::ApplyEdits({{"/nowhere/k.py", text}}, fix.edits);
  ASSERT_TRUE(mended);
  EXPECT_EQ(mended->at("/nowhere/k.py"), std::string(kHead) + kCopy + "# \n# \n");
}

TEST_F(CheckRunTest, UnknownFunctionsAndFilesAreErrorsOfUse) {
  inputs_.request.function = "nothing";
  inputs_.request.files = {{inputs_.request.file, std::string(kHead) + kCopy}};
  auto unknown = RunCheck(inputs_, provider_, {}, {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind(), ErrorKind::kNotFound);
  inputs_.request.files.clear();
  auto missing = RunCheck(inputs_, provider_, {}, {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(ExitCode(missing.error().kind()), 2);
}

TEST_F(CheckRunTest, ANewerCheckOfADocumentEndsTheOlder) {
  CheckDesk desk;
  CheckResult older;
  auto seat = desk.Begin("k.py", {});
  ASSERT_TRUE(seat);
  std::thread thread([&] { older = Check(std::string(kHead) + kCopy + "# BLOCKS\n", seat->stop()); });
  provider_.worker->WaitUntilBlocked();
  auto other = desk.Begin("other.py", {});
  EXPECT_FALSE(seat->stop().stop_requested());
  auto newer = desk.Begin("k.py", {});
  thread.join();
  EXPECT_EQ(older.failure.kind(), ErrorKind::kCancelled);
  EXPECT_EQ(CheckExitCode(older), 4);
  EXPECT_FALSE(newer->stop().stop_requested());
}

TEST_F(CheckRunTest, CloseEndsChecksAndWaitsForThem) {
  CheckDesk desk;
  std::atomic<bool> ended = false;
  std::thread thread([&] {
    auto seat = desk.Begin("", {});
    Check(std::string(kHead) + kCopy + "# BLOCKS\n", seat->stop());
    ended = true;
  });
  provider_.worker->WaitUntilBlocked();
  desk.Close();
  EXPECT_TRUE(ended);
  thread.join();
  EXPECT_FALSE(desk.Begin("k.py", {}));
}

TEST_F(CheckRunTest, ThePauseFollowsWhatChecksTake) {
  CheckDesk desk;
  const auto first = desk.Debounce("k.py");
  CheckRequest request;
  request.document = "k.py";
  CheckResult result;
  result.milliseconds = 3000;
  result.versions = {{"jax", "0.9.0"}};
  desk.Learn(request, result);
  EXPECT_GT(desk.Debounce("k.py"), first);
  EXPECT_EQ(desk.Debounce("other.py"), first);
  EXPECT_EQ(desk.JaxVersion(""), "0.9.0");
}

}  // namespace
}  // namespace kernelwright::agents
