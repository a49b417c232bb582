// See check_function.h. One job traces for the first chip and brings its artefact along, so that the first verdict of
// the compiler waits for nothing else; the other chips are traced and compiled side by side. The compiler has the last
// word: what a lint called an error and the compiler accepts is dropped.
#include "daemon/agents/check_function.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <string_view>
#include <utility>

#include "daemon/agents/check_compile.h"
#include "daemon/agents/check_semantics.h"
#include "daemon/agents/evaluator.h"
#include "daemon/agents/parallel.h"
#include "daemon/base/files.h"
#include "daemon/base/hash.h"

namespace kernelwright::agents {
namespace {

using diagnose::Diagnostic;
using diagnose::Severity;
using diagnose::Stage;
using SteadyClock = std::chrono::steady_clock;

double MillisecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
}

// Lints that foretell what the compiler says; the others speak of values, on which it has no say.
bool CompilerDecides(const std::string& id) {
  constexpr std::array<std::string_view, 10> kForetold = {"D01", "D02", "D03", "D13", "D82",
                                                          "D83", "D90", "D91", "D92", "D94"};
  return std::find(kForetold.begin(), kForetold.end(), id) != kForetold.end();
}

bool IsError(const Diagnostic& diagnostic) { return diagnostic.severity == Severity::kError; }

class FunctionRun {
 public:
  FunctionRun(const FunctionCheck& check, const Source& source, const CheckTarget& target, const std::stop_token& stop)
      : check_(check), target_(target), stop_(stop) {
    found_.source = source;
    found_.source.function = target.function;
    found_.function.function = target.function;
    found_.function.inputs = kernels::FormatInputs(target.inputs);
    found_.function.inputs_origin = target.inputs_origin;
    found_.inputs = target.inputs;
    for (const FileText& file : source.files) found_.texts[file.path] = file.text;
    for (const cost::Chip* chip : check.inputs.chips) {
      chips_.push_back(chip->name);
      found_.chip_status[chip->name] = "unknown";
    }
  }

  FunctionFindings Go() {
    if (Trace()) {
      Lint();
      Compile();
      if (found_.failure.kind() != ErrorKind::kCancelled) Semantics();
    }
    return std::move(found_);
  }

 private:
  ErrorContext Context(Stage stage, std::vector<std::string> chips) const {
    ErrorContext context;
    context.texts = &found_.texts;
    context.target = &target_;
    context.file = found_.source.file;
    context.calls = found_.calls;
    context.chips = std::move(chips);
    context.stage = stage;
    return context;
  }

  CheckStageReport Report(Stage stage, SteadyClock::time_point start) const {
    CheckStageReport report;
    report.stage = stage;
    report.function = target_.function;
    report.milliseconds = MillisecondsSince(start);
    return report;
  }

  void Finish(CheckStageReport report) {
    found_.diagnostics.insert(found_.diagnostics.end(), report.diagnostics.begin(), report.diagnostics.end());
    check_.report(std::move(report));
  }

  // The first reason counts.
  void NoVerdict(const Status& status, CheckStageReport* report) {
    if (found_.failure.ok()) found_.failure = status;
    report->status = "failed";
    report->note = status.message();
  }

  std::vector<Diagnostic> Explain(const CodeError& error, const ErrorContext& context, CheckStageReport* report) {
    std::vector<Diagnostic> diagnostics = check_.inputs.rules->Explain(error, context);
    if (diagnostics.empty()) {
      NoVerdict(Status(ErrorKind::kInternal, "the worker asked in a wrong way: " + error.message, found_.source.file),
                report);
    }
    return diagnostics;
  }

  // True when there is something to compile.
  bool Trace() {
    const auto start = SteadyClock::now();
    TraceRequest request{found_.source, target_.inputs, {chips_.front()}, true, true, check_.compile_limits};
    auto traced = check_.toolchain.Trace(request, stop_);
    CheckStageReport report = Report(Stage::kTrace, start);
    const bool done = traced && traced->outcome == JobOutcome::kDone;
    if (!traced) {
      NoVerdict(traced.error(), &report);
    } else if (Status job = StatusOfJob(*traced, "importing and tracing", found_.source.file); !job.ok()) {
      NoVerdict(job, &report);
    } else if (!done) {
      report.diagnostics = {CrashDiagnostic(*traced, Context(Stage::kTrace, chips_))};
      AllChips("errors");
    }
    if (!done) {
      Finish(std::move(report));
      return false;
    }
    traced_ = *std::move(traced);
    found_.versions = traced_.versions;
    AddClosure();
    if (!traced_.inputs.empty()) {
      found_.inputs = traced_.inputs;
      found_.function.inputs = kernels::FormatInputs(traced_.inputs);
    }
    if (found_.function.inputs_origin.empty()) found_.function.inputs_origin = traced_.inputs_origin;
    found_.calls = traced_.calls_seen;
    if (traced_.program) {
      found_.calls.clear();
      for (const PallasCall* call : FindPallasCalls(*traced_.program)) found_.calls.push_back(*call);
    }
    if (traced_.error) {
      report.diagnostics = Explain(*traced_.error, Context(Stage::kTrace, chips_), &report);
      const bool wrong = std::any_of(report.diagnostics.begin(), report.diagnostics.end(), IsError);
      if (wrong) AllChips("errors");
      Finish(std::move(report));
      if (wrong && !found_.calls.empty()) Lint();  // blocks that the trace came past
      return false;
    }
    Finish(std::move(report));
    return true;
  }

  void AllChips(const std::string& status) {
    for (auto& [chip, each] : found_.chip_status) each = status;
  }

  // The texts that the trace used, from memory from here on. Without the very bytes that were traced no verdict is
  // looked up or kept.
  void AddClosure() {
    bool whole = !traced_.closure.empty();
    std::vector<FileText> user_files;
    for (const ClosureFile& closure : traced_.closure) {
      if (!closure.is_user_file) continue;
      const auto known = found_.texts.find(closure.path);
      if (known == found_.texts.end()) {
        auto text = ReadFile(closure.path, size_t{16} << 20);
        if (!text || Sha256Hex(*text) != closure.sha256) {
          whole = false;
          continue;
        }
        found_.source.files.push_back({closure.path, *text});
        found_.texts[closure.path] = *std::move(text);
      }
      user_files.push_back({closure.path, found_.texts[closure.path]});
    }
    if (whole && !user_files.empty()) content_sha256_ = ContentHash(user_files);
  }

  void Lint() {
    const auto start = SteadyClock::now();
    std::vector<Diagnostic> diagnostics;
    for (const cost::Chip* chip : check_.inputs.chips) {
      auto blocks = check_.inputs.rules->LintBlocks(Context(Stage::kBlocks, {chip->name}), *chip);
      diagnostics.insert(diagnostics.end(), std::make_move_iterator(blocks.begin()),
                         std::make_move_iterator(blocks.end()));
    }
    if (traced_.program) {
      for (const cost::Chip* chip : check_.inputs.chips) {
        auto bodies = check_.inputs.rules->LintKernels(Context(Stage::kBlocks, {chip->name}), *chip);
        diagnostics.insert(diagnostics.end(), std::make_move_iterator(bodies.begin()),
                           std::make_move_iterator(bodies.end()));
      }
    }
    CheckStageReport report = Report(Stage::kBlocks, start);
    report.diagnostics = lints_ = diagnose::MergeChips(std::move(diagnostics));
    Finish(std::move(report));
  }

  void Compile() {
    std::mutex mutex;
    const std::stop_token stop = stop_;
    RunParallel(chips_.size(), check_.inputs.parallel, stop, [&](size_t i) {
      const auto start = SteadyClock::now();
      CompileQuestion question{found_.source, found_.inputs, chips_[i], content_sha256_, check_.compile_limits};
      std::optional<Artefact> artefact;
      if (i == 0 && !traced_.artefacts.empty()) artefact = std::move(traced_.artefacts.front());
      auto verdict = CompileFor(question, std::move(artefact), check_.toolchain, check_.inputs.cache, stop);
      const std::lock_guard lock(mutex);
      CheckStageReport report = Report(Stage::kCompile, start);
      report.chip = chips_[i];
      if (!verdict) {
        NoVerdict(verdict.error(), &report);
        check_.report(std::move(report));
        return false;
      }
      Judge(*verdict, std::move(report));
      return true;
    });
    if (stop.stop_requested() && found_.failure.ok()) {
      found_.failure = Status(ErrorKind::kCancelled, "the check was cancelled", found_.source.file);
    }
  }

  void Judge(const CompileVerdict& verdict, CheckStageReport report) {
    report.cached = verdict.cached;
    std::string& status = found_.chip_status[verdict.chip];
    const ErrorContext context = Context(Stage::kCompile, {verdict.chip});
    if (Status job = StatusOfJob(verdict.job, verdict.what + " for " + verdict.chip, found_.source.file); !job.ok()) {
      NoVerdict(job, &report);
    } else if (verdict.job.outcome != JobOutcome::kDone) {
      report.diagnostics = {CrashDiagnostic(verdict.job, context)};
      status = "errors";
    } else if (verdict.error) {
      report.diagnostics = Explain(*verdict.error, context, &report);
      status = report.diagnostics.empty() ? "unknown" : "errors";
      AbsorbConfirmed(&report.diagnostics, verdict.chip);
    } else {
      status = "clean";
      DropRefuted(verdict.chip);
    }
    Finish(std::move(report));
  }

  // What the block lint has said already is not said again; the compiler's text is kept with it.
  void AbsorbConfirmed(std::vector<Diagnostic>* later, const std::string& chip) {
    std::erase_if(*later, [&](const Diagnostic& diagnostic) {
      for (Diagnostic& earlier : found_.diagnostics) {
        if (earlier.stage != Stage::kBlocks || earlier.id != diagnostic.id || !IsError(earlier)) continue;
        if (std::find(earlier.chips.begin(), earlier.chips.end(), chip) == earlier.chips.end()) continue;
        if (earlier.raw.empty()) earlier.raw = diagnostic.raw;
        return true;
      }
      return false;
    });
  }

  // The compiler accepts the kernel for this chip, so an error of the block lint about it was a false alarm.
  void DropRefuted(const std::string& chip) {
    for (Diagnostic& diagnostic : found_.diagnostics) {
      if (diagnostic.stage == Stage::kBlocks && IsError(diagnostic) && CompilerDecides(diagnostic.id)) {
        std::erase(diagnostic.chips, chip);
      }
    }
    std::erase_if(found_.diagnostics, [&](const Diagnostic& diagnostic) {
      return diagnostic.stage == Stage::kBlocks && IsError(diagnostic) && diagnostic.chips.empty();
    });
  }

  void Semantics() {
    if (!check_.semantics || found_.calls.empty() || !traced_.program) return;
    const bool any = std::any_of(found_.chip_status.begin(), found_.chip_status.end(),
                                 [](const auto& chip) { return chip.second == "clean"; });
    const auto start = SteadyClock::now();
    if (!any) {
      CheckStageReport report = Report(Stage::kSemantics, start);
      report.status = "skipped";
      report.note = "no chip compiles the kernel";
      Finish(std::move(report));
      return;
    }
    std::vector<std::string> chips;
    for (const std::string& chip : chips_) {
      if (found_.chip_status[chip] == "clean") chips.push_back(chip);
    }
    SemanticsQuestion question{found_.source, found_.inputs, *std::move(traced_.program),
                               found_.calls,  chips.front(), check_.semantics_limits};
    auto answer = RunSemantics(question, check_.toolchain, stop_);
    CheckStageReport report = Report(Stage::kSemantics, start);
    if (!answer) {
      NoVerdict(answer.error(), &report);
    } else if (Status job = StatusOfJob(answer->job, "the run in the interpreter", found_.source.file); !job.ok()) {
      NoVerdict(job, &report);
    } else if (answer->job.outcome != JobOutcome::kDone) {
      report.diagnostics = {CrashDiagnostic(answer->job, Context(Stage::kSemantics, chips))};
    } else if (!answer->ran) {
      report.status = "skipped";
      report.note = answer->note;
    } else {
      report.note = answer->note;
      report.diagnostics =
          DiagnosticsOfVerdict(answer->verdict, Context(Stage::kSemantics, chips), lints_, *check_.inputs.rules);
      found_.function.semantics = true;
      Replace(report.diagnostics);
    }
    Finish(std::move(report));
  }

  // A lint that the interpreter has confirmed gives way to the confirmation.
  void Replace(const std::vector<Diagnostic>& confirmed) {
    std::erase_if(found_.diagnostics, [&](const Diagnostic& earlier) {
      return std::any_of(confirmed.begin(), confirmed.end(), [&](const Diagnostic& later) {
        return earlier.stage == Stage::kBlocks && earlier.id == later.id;
      });
    });
  }

  const FunctionCheck& check_;
  const CheckTarget& target_;
  const std::stop_token& stop_;
  std::vector<std::string> chips_;
  FunctionFindings found_;
  TraceReport traced_;
  std::string content_sha256_;
  std::vector<Diagnostic> lints_;
};

}  // namespace

FunctionFindings CheckFunction(const FunctionCheck& check, const Source& source, const CheckTarget& target,
                               const std::stop_token& stop) {
  return FunctionRun(check, source, target, stop).Go();
}

}  // namespace kernelwright::agents
