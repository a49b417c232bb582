// See check_run.h.
#include "daemon/agents/check_run.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "daemon/agents/check_fixes.h"
#include "daemon/agents/check_function.h"
#include "daemon/agents/check_targets.h"
#include "daemon/base/deadline.h"
#include "daemon/base/files.h"
#include "daemon/kernels/notebook.h"

namespace kernelwright::agents {
namespace {

using diagnose::Diagnostic;
using diagnose::Stage;
using SteadyClock = std::chrono::steady_clock;

constexpr auto kDefaultTimeout = std::chrono::seconds(120);  // of one trace or compile
constexpr int kSemanticsTimeoutFactor = 3;                   // a run in the interpreter takes longer than a compile
constexpr size_t kMaxFileBytes = size_t{16} << 20;

double MillisecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
}

// What a later stage says again in other words about the same line (a renamed name that then fails) is dropped; what
// one stage says of several parts at one place (a BlockSpec that two operands share) is told as one.
std::vector<Diagnostic> OncePerLine(std::vector<Diagnostic> all) {
  std::vector<Diagnostic> kept;
  for (Diagnostic& diagnostic : all) {
    const bool said = std::any_of(all.begin(), all.end(), [&](const Diagnostic& other) {
      return &other != &diagnostic && other.id == diagnostic.id && other.stage < diagnostic.stage &&
             other.place.file == diagnostic.place.file && other.place.line == diagnostic.place.line;
    });
    if (said) continue;
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const Diagnostic& other) {
      return other.id == diagnostic.id && other.stage == diagnostic.stage && other.place == diagnostic.place &&
             other.chips == diagnostic.chips && diagnostic.place.line > 0;
    });
    if (same == kept.end()) {
      kept.push_back(diagnostic);
    } else if (same->message != diagnostic.message) {
      same->related.push_back({diagnostic.place, diagnostic.message});
      if (same->fixes.empty()) same->fixes = diagnostic.fixes;
    }
  }
  return kept;
}

class Check {
 public:
  Check(const CheckInputs& inputs, ToolchainProvider& toolchains, const OnCheckStage& on_stage, std::stop_token stop)
      : inputs_(inputs),
        request_(inputs.request),
        toolchains_(toolchains),
        on_stage_(on_stage),
        stop_(std::move(stop)) {
    result_.file = request_.file;
    for (const cost::Chip* chip : inputs.chips) result_.chips.push_back(chip->name);
    if (request_.budget_seconds > 0) {
      budget_ = Deadline::After(std::chrono::milliseconds(static_cast<int64_t>(request_.budget_seconds * 1000)));
    }
  }

  Expected<CheckResult> Go() {
    if (Status read = ReadTexts(); !read.ok()) return Fail(read);
    const kernels::SourceFile source(file_, source_.files.front().text);
    if (Syntax(source)) {
      Api(source, inputs_.jax_version.empty() ? kNewestJax : inputs_.jax_version);
      auto plan = PlanCheck(source, request_, inputs_.captures);
      if (!plan) return Fail(plan.error());
      Add(plan->diagnostics);
      if (!plan->targets.empty()) Functions(source, plan->targets);
      CheckStatuses(*plan);
    } else {
      for (const std::string& chip : result_.chips) result_.results.push_back({chip, "errors"});
    }
    result_.diagnostics = Settled();
    for (CheckStageReport& stage : result_.stages) stage.diagnostics.clear();
    result_.milliseconds = MillisecondsSince(start_);
    return std::move(result_);
  }

 private:
  // The entry file and the texts that replace the disk, under their real paths, as the worker names them.
  Status ReadTexts() {
    const auto real = [](const std::string& path) {
      auto resolved = ResolvePath(path);
      return resolved ? resolved->string() : path;
    };
    file_ = real(request_.file);
    named_[file_] = request_.file;
    source_.file = file_;
    for (const FileText& file : request_.files) {
      const std::string path = real(file.path);
      named_[path] = file.path;
      source_.files.push_back({path, file.text});
    }
    auto entry = std::find_if(source_.files.begin(), source_.files.end(),
                              [&](const FileText& file) { return file.path == file_; });
    if (entry == source_.files.end()) {
      std::error_code ignored;
      if (!std::filesystem::is_regular_file(file_, ignored)) {
        return Status(ErrorKind::kNotFound, "no such file", request_.file,
                      "Give the path of a Python file: FILE.py::function.");
      }
      auto text = ReadFile(file_, kMaxFileBytes);
      if (!text) return text.error();
      source_.files.insert(source_.files.begin(), {file_, *std::move(text)});
    } else {
      std::rotate(source_.files.begin(), entry, entry + 1);
    }
    if (!kernels::Notebook::IsNotebook(file_)) return {};
    auto notebook = kernels::Notebook::Parse(request_.file, source_.files.front().text);
    if (!notebook) return notebook.error();
    notebook_ = *std::move(notebook);
    source_.files.front().text = notebook_->module();
    return {};
  }

  // True when the file can be parsed.
  bool Syntax(const kernels::SourceFile& source) {
    CheckStageReport report;
    report.stage = Stage::kSyntax;
    for (const kernels::SyntaxError& error : source.errors()) {
      Diagnostic diagnostic;
      diagnostic.id = kSyntaxId;
      diagnostic.name = "syntax";
      diagnostic.stage = Stage::kSyntax;
      const kernels::SourcePosition at = error.position;
      diagnostic.place = {file_, at.line, at.column, at.line, at.column + 1};
      diagnostic.message = error.message;
      diagnostic.cause = "The file is not Python as it stands, so nothing behind it was checked.";
      diagnostic.page = "docs/check.md#syntax";
      diagnostic.chips = result_.chips;
      diagnostic.raw = "SyntaxError: " + error.message;
      report.diagnostics.push_back(std::move(diagnostic));
    }
    report.milliseconds = MillisecondsSince(start_);
    Emit(std::move(report));
    return source.errors().empty();
  }

  void Api(const kernels::SourceFile& source, const std::string& version) {
    const auto start = SteadyClock::now();
    CheckStageReport report;
    report.stage = Stage::kApi;
    report.diagnostics = inputs_.rules->LintApi(source, version);
    for (Diagnostic& diagnostic : report.diagnostics) {
      if (diagnostic.chips.empty()) diagnostic.chips = result_.chips;
    }
    report.milliseconds = MillisecondsSince(start);
    api_version_ = version;
    Emit(std::move(report));
  }

  // An editor's user is still typing: later stages cost seconds of a worker. Returns false when the check was ended.
  bool Pause() {
    if (inputs_.debounce.count() > 0) {
      std::mutex mutex;
      std::condition_variable_any never;
      std::unique_lock lock(mutex);
      never.wait_for(lock, stop_, inputs_.debounce, [] { return false; });
    }
    return !stop_.stop_requested();
  }

  void Functions(const kernels::SourceFile& source, const std::vector<CheckTarget>& targets) {
    if (!Pause()) return NoVerdict(Status(ErrorKind::kCancelled, "the check was cancelled", request_.file));
    ToolchainOptions options;
    options.python = request_.python;
    options.file = file_;
    options.working_directory = request_.working_directory;
    options.environment = request_.environment;
    options.sandbox = request_.sandbox;
    auto toolchain = toolchains_.Get(options, stop_);
    if (!toolchain) return NoVerdict(toolchain.error());
    const WorkerIdentity& identity = (*toolchain)->identity();
    result_.python = identity.python;
    result_.sandbox = identity.sandbox;
    result_.versions = identity.versions;
    AgainForVersion(source, identity);
    for (const CheckTarget& target : targets) {
      if (budget_.expired()) return NoVerdict(BudgetUsed());
      FunctionCheck check{inputs_,
                          **toolchain,
                          LimitsOf(1),
                          LimitsOf(kSemanticsTimeoutFactor),
                          request_.semantics,
                          [this](CheckStageReport report) { Emit(std::move(report)); }};
      FunctionFindings findings = CheckFunction(check, source_, target, stop_);
      if (!findings.failure.ok()) NoVerdict(budget_.expired() ? BudgetUsed() : findings.failure);
      if (request_.fixes && findings.failure.ok()) {
        std::vector<Diagnostic> api;
        for (Diagnostic& diagnostic : diagnostics_) {
          if (diagnostic.stage == Stage::kApi) api.push_back(diagnostic);
        }
        const size_t own = findings.diagnostics.size();
        std::vector<Diagnostic> all = std::move(findings.diagnostics);
        all.insert(all.end(), std::make_move_iterator(api.begin()), std::make_move_iterator(api.end()));
        findings.diagnostics.clear();
        OfferFixes(check, target, findings, &all, stop_);
        TakeBack(all, own);
        all.resize(own);
        findings.diagnostics = std::move(all);
      }
      for (const auto& [chip, status] : findings.chip_status) Merge(chip, status);
      result_.functions.push_back(findings.function);
      // The stages have reported these; what counts at the end is what later stages left of them.
      findings_.insert(findings_.end(), std::make_move_iterator(findings.diagnostics.begin()),
                       std::make_move_iterator(findings.diagnostics.end()));
      if (stop_.stop_requested()) return NoVerdict(Status(ErrorKind::kCancelled, "the check was cancelled"));
    }
  }

  // Fixes of the API lint, proven with this function, go back to its diagnostics.
  void TakeBack(const std::vector<Diagnostic>& all, size_t begin) {
    size_t at = begin;
    for (Diagnostic& diagnostic : diagnostics_) {
      if (diagnostic.stage == Stage::kApi && at < all.size()) diagnostic.fixes = all[at++].fixes;
    }
  }

  // The first look at names went by the version that was known then.
  void AgainForVersion(const kernels::SourceFile& source, const WorkerIdentity& identity) {
    const auto found = identity.versions.find("jax");
    if (found == identity.versions.end() || found->second == api_version_) return;
    std::erase_if(diagnostics_, [](const Diagnostic& diagnostic) { return diagnostic.stage == Stage::kApi; });
    Api(source, found->second);
  }

  Limits LimitsOf(int factor) const {
    Limits limits;
    limits.deadline = request_.timeout_seconds > 0
                          ? std::chrono::milliseconds(static_cast<int64_t>(request_.timeout_seconds * 1000))
                          : std::chrono::milliseconds(kDefaultTimeout);
    limits.deadline *= factor;
    if (request_.budget_seconds > 0) {
      limits.deadline = std::clamp(budget_.Remaining(), std::chrono::milliseconds(1), limits.deadline);
    }
    return limits;
  }

  Status BudgetUsed() const {
    return Status(ErrorKind::kLimit, "the budget of the check is used up", request_.file, "Raise it with --budget.");
  }

  void NoVerdict(const Status& status) {
    if (result_.failure.ok()) result_.failure = status;
  }

  // The worse of two verdicts for a chip.
  void Merge(const std::string& chip, const std::string& status) {
    std::string& merged = chip_status_[chip];
    if (merged.empty() || status == "errors" || (status == "unknown" && merged == "clean")) merged = status;
  }

  void CheckStatuses(const CheckPlan& plan) {
    for (const std::string& chip : result_.chips) {
      const auto found = chip_status_.find(chip);
      std::string status = found != chip_status_.end() ? found->second : plan.targets.empty() ? "clean" : "unknown";
      for (const std::vector<Diagnostic>* list : {&diagnostics_, &findings_}) {
        for (const Diagnostic& diagnostic : *list) {
          if (diagnostic.severity == diagnose::Severity::kError &&
              std::find(diagnostic.chips.begin(), diagnostic.chips.end(), chip) != diagnostic.chips.end()) {
            status = "errors";
          }
        }
      }
      result_.results.push_back({chip, status});
    }
  }

  // Under the paths that the client knows, and lines of a notebook by cell.
  void Outward(Diagnostic* diagnostic) const {
    const auto rename = [this](std::string* file) {
      if (const auto known = named_.find(*file); known != named_.end()) *file = known->second;
    };
    const auto place = [&](diagnose::Place* at) {
      if (notebook_ && at->file == file_ && at->line > 0) {
        const kernels::CellLine from = notebook_->Locate(at->line);
        at->end_line = at->end_line > 0 ? from.line + at->end_line - at->line : 0;
        at->cell = from.cell;
        at->line = from.line;
      }
      rename(&at->file);
    };
    place(&diagnostic->place);
    for (diagnose::Related& related : diagnostic->related) place(&related.place);
    for (diagnose::Fix& fix : diagnostic->fixes) {
      for (kernels::TextEdit& edit : fix.edits) rename(&edit.file);
    }
  }

  void Add(const std::vector<Diagnostic>& diagnostics) {
    if (diagnostics.empty()) return;
    CheckStageReport report;
    report.stage = Stage::kTrace;
    report.status = "skipped";
    report.note = "not every function has inputs that can be read";
    report.diagnostics = diagnostics;
    for (Diagnostic& diagnostic : report.diagnostics) {
      if (diagnostic.chips.empty()) diagnostic.chips = result_.chips;
    }
    Emit(std::move(report));
  }

  void Emit(CheckStageReport report) {
    const std::lock_guard lock(mutex_);
    report.since_start_ms = MillisecondsSince(start_);
    if (report.function.empty()) {
      diagnostics_.insert(diagnostics_.end(), report.diagnostics.begin(), report.diagnostics.end());
    }
    for (Diagnostic& diagnostic : report.diagnostics) {
      Outward(&diagnostic);
      diagnostic.fixes.clear();  // not proven yet
    }
    if (on_stage_) on_stage_(report);
    result_.stages.push_back(std::move(report));
  }

  std::vector<Diagnostic> Settled() {
    std::vector<Diagnostic> all = std::move(diagnostics_);
    all.insert(all.end(), std::make_move_iterator(findings_.begin()), std::make_move_iterator(findings_.end()));
    for (Diagnostic& diagnostic : all) {
      std::erase_if(diagnostic.fixes, [](const diagnose::Fix& fix) { return fix.verified.empty(); });
    }
    std::vector<Diagnostic> kept = OncePerLine(diagnose::Settle(std::move(all)));
    for (Diagnostic& diagnostic : kept) Outward(&diagnostic);
    return kept;
  }

  const SteadyClock::time_point start_ = SteadyClock::now();
  const CheckInputs& inputs_;
  const CheckRequest& request_;
  ToolchainProvider& toolchains_;
  const OnCheckStage& on_stage_;
  const std::stop_token stop_;
  Deadline budget_ = Deadline::Never();
  std::string file_;                           // real path
  Source source_;                              // the entry file first
  std::optional<kernels::Notebook> notebook_;  // when the entry file is one
  std::map<std::string, std::string> named_;   // real path -> the client's
  std::string api_version_;
  std::vector<Diagnostic> diagnostics_;  // of the file's text
  std::vector<Diagnostic> findings_;     // of its functions
  std::map<std::string, std::string> chip_status_;
  std::mutex mutex_;
  CheckResult result_;
};

}  // namespace

Expected<CheckResult> RunCheck(const CheckInputs& inputs, ToolchainProvider& toolchains, const OnCheckStage& on_stage,
                               std::stop_token stop) {
  return Check(inputs, toolchains, on_stage, std::move(stop)).Go();
}

}  // namespace kernelwright::agents
