// See profile_run.h. The functions (the one profiled and the one it is compared with) are traced once each; then each
// chip compiles and reports by itself.
#include "daemon/agents/profile_run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/agents/original.h"
#include "daemon/agents/profile_compile.h"
#include "daemon/base/deadline.h"
#include "daemon/base/json.h"
#include "daemon/cost/detailed_cost.h"
#include "daemon/cost/kernel_work.h"
#include "daemon/profile/build_report.h"
#include "daemon/profile/compare.h"
#include "daemon/profile/report_html.h"
#include "daemon/profile/report_json.h"
#include "daemon/profile/step.h"

namespace kernelwright::agents {
namespace {

using nlohmann::json;

constexpr int kSchemaVersion = 1;
constexpr auto kDefaultTimeout = std::chrono::seconds(120);  // of one trace or compile

// A function that was traced.
struct Subject {
  Original original;
  cost::Work work;
  std::vector<profile::SourceText> sources;
};

// The report of one function on one chip, or why there is none.
struct Outcome {
  std::optional<profile::ProfileReport> report;
  Status status;                   // not ok: no report
  std::optional<CodeError> error;  // of the user's code
};

json ErrorToJson(const Outcome& outcome) {
  if (outcome.report) return nullptr;
  json error = {{"kind", ErrorKindName(outcome.status.kind())},
                {"message", outcome.status.message()},
                {"where", outcome.status.where()},
                {"remedy", outcome.status.remedy()}};
  if (outcome.error) {
    error["stage"] = outcome.error->stage;
    error["type"] = outcome.error->type;
    error["text"] = outcome.error->message;
    error["cause"] = outcome.error->cause;
    error["traceback"] = outcome.error->traceback;
    if (!outcome.error->frames.empty()) {
      error["file"] = outcome.error->frames.front().file;
      error["line"] = outcome.error->frames.front().line;
      error["column"] = outcome.error->frames.front().column;
    }
  }
  return error;
}

std::string FirstLine(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \n\t");
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

class Profiler {
 public:
  Profiler(const ProfileInputs& inputs, ToolchainProvider& toolchains, BlobCache* cache, std::stop_token stop)
      : inputs_(inputs), request_(inputs.request), toolchains_(toolchains), cache_(cache), stop_(std::move(stop)) {
    limits_.deadline = request_.timeout_seconds > 0
                           ? std::chrono::milliseconds(static_cast<int64_t>(request_.timeout_seconds * 1000))
                           : std::chrono::milliseconds(kDefaultTimeout);
    if (request_.budget_seconds > 0) {
      budget_ = Deadline::After(std::chrono::milliseconds(static_cast<int64_t>(request_.budget_seconds * 1000)));
    }
  }

  Expected<ProfileReply> Run() {
    const auto start = std::chrono::steady_clock::now();
    if (Status opened = OpenToolchain(); !opened.ok()) return Fail(opened);
    auto subject = Trace(request_.file, request_.function, request_.inputs);
    if (!subject) return Fail(subject.error());
    std::optional<Subject> other;
    if (!request_.against_file.empty()) {
      // The same inputs by default; an own comment would compare two different problems.
      const std::string given =
          request_.inputs.empty() ? kernels::FormatInputs(subject->original.frozen.inputs) : request_.inputs;
      auto traced = Trace(request_.against_file, request_.against_function, given);
      if (!traced) return Fail(traced.error());
      other = *std::move(traced);
    }
    const bool compares = other || inputs_.against_chip != nullptr;

    json results = json::array();
    std::vector<profile::HtmlPart> parts;
    for (const cost::Chip* chip : inputs_.chips) {
      Outcome outcome = Report(*subject, *chip);
      json object = {{"chip", chip->name}};
      if (outcome.report) object = profile::ReportToJson(*outcome.report);
      object["status"] = !outcome.report ? "failed" : outcome.report->static_counts ? "refused" : "profiled";
      object["error"] = ErrorToJson(outcome);
      object["against"] = nullptr;
      std::optional<profile::Comparison> comparison;
      if (outcome.report && compares) {
        const Outcome against =
            Report(other ? *other : *subject, inputs_.against_chip != nullptr ? *inputs_.against_chip : *chip);
        if (against.report) {
          comparison = profile::Compare(*outcome.report, *against.report);
          object["against"] = profile::ComparisonToJson(*comparison);
        } else {
          object["against"] = {{"error", ErrorToJson(against)}};
          Note(against);
        }
      }
      Note(outcome);
      results.push_back(std::move(object));
      if (outcome.report) parts.push_back({*std::move(outcome.report), std::move(comparison)});
    }

    ProfileReply reply;
    // One profiled chip is a result.
    if (parts.empty()) reply.exit_code = ExitCode(failure_.kind());
    const FrozenReference& frozen = subject->original.frozen;
    json object = {{"schema_version", kSchemaVersion},
                   {"command", "profile"},
                   {"file", frozen.original.file},
                   {"function", frozen.original.function},
                   {"inputs", kernels::FormatInputs(frozen.inputs)},
                   {"inputs_origin", frozen.inputs_origin},
                   {"python", toolchain_->identity().python},
                   {"sandbox", toolchain_->identity().sandbox},
                   {"exit_code", reply.exit_code},
                   {"results", results},
                   {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()}};
    if (results.size() == 1) {
      for (const auto& [name, value] : results.front().items()) object[name] = value;
    }
    reply.result_json = object.dump(2, ' ', false, json::error_handler_t::replace);
    if (request_.want_html && !parts.empty()) reply.html = profile::ReportToHtml(parts);
    return reply;
  }

 private:
  Status OpenToolchain() {
    ToolchainOptions options;
    options.python = request_.python;
    options.file = request_.file;
    if (!request_.against_file.empty()) {
      options.readable_folders.push_back(std::filesystem::path(request_.against_file).parent_path().string());
    }
    options.working_directory = request_.working_directory;
    options.environment = request_.environment;
    options.sandbox = request_.sandbox;
    auto toolchain = toolchains_.Get(options, stop_);
    if (!toolchain) return toolchain.error();
    toolchain_ = *std::move(toolchain);
    return {};
  }

  Expected<Subject> Trace(const std::string& file, const std::string& function, const std::string& given) {
    RunRequest request;
    request.kind = "profile";
    request.file = file;
    request.function = function;
    request.inputs = given;
    auto entry = ReadEntry(request, inputs_.captures);
    if (!entry) return Fail(entry.error().status);
    auto original = TraceOriginal(request, *entry, inputs_.chips.front()->name, *toolchain_, LimitsNow(), stop_);
    if (!original) return Fail(original.error().status);
    Subject subject;
    subject.original = *std::move(original);
    if (subject.original.traced.program) {
      subject.work = cost::WorkOfProgram(subject.original.traced.program->main);
    }
    for (const FileText& text : subject.original.frozen.original.files) {
      subject.sources.push_back({text.path, text.text});
    }
    return subject;
  }

  Outcome Report(const Subject& subject, const cost::Chip& chip) {
    Outcome outcome;
    const FrozenReference& frozen = subject.original.frozen;
    if (budget_.expired()) {
      outcome.status = Status(ErrorKind::kLimit, "the time for the command was used up", chip.name,
                              "Raise it with --budget, or name fewer chips.");
      return outcome;
    }
    auto compiled = CompileForProfile(frozen, chip.name, *toolchain_, LimitsNow(), cache_, stop_);
    if (!compiled) {
      outcome.status = compiled.error();
      return outcome;
    }
    if (compiled->error) {
      outcome.error = compiled->error;
      const CodeError& error = *compiled->error;
      std::string where = frozen.original.file;
      if (!error.frames.empty() && error.frames.front().line > 0) {
        where = error.frames.front().file + ":" + std::to_string(error.frames.front().line);
      }
      outcome.status = Status(
          ErrorKind::kUserCode,
          "does not compile for " + chip.name + ": " + FirstLine(error.message.empty() ? error.cause : error.message),
          where, "Run `kernelwright check` on it.");
      return outcome;
    }
    Versions versions = compiled->versions;
    versions["kernelwright"] = inputs_.build;
    cost::DetailedCost cost =
        cost::EstimateInDetail(std::move(compiled->dumps), chip, subject.work, versions, profile::kRecordedRounds);
    profile::ProfileInput input;
    input.file = frozen.original.file;
    input.function = frozen.original.function;
    input.inputs = kernels::FormatInputs(frozen.inputs);
    if (subject.original.traced.program) input.program = &*subject.original.traced.program;
    input.work = subject.work;
    input.sources = subject.sources;
    outcome.report = profile::BuildReport(std::move(cost), chip, input);
    return outcome;
  }

  // No job outlives the budget of the command.
  Limits LimitsNow() const {
    Limits limits = limits_;
    if (!budget_.never()) limits.deadline = std::min(limits.deadline, budget_.Remaining());
    limits.deadline = std::max(limits.deadline, std::chrono::milliseconds(1));
    return limits;
  }

  // Remembers the first failure: it decides on the exit code when nothing could be profiled.
  void Note(const Outcome& outcome) {
    if (!outcome.report && failure_.ok()) failure_ = outcome.status;
  }

  const ProfileInputs& inputs_;
  const ProfileRequest& request_;
  ToolchainProvider& toolchains_;
  BlobCache* cache_;
  std::stop_token stop_;
  Limits limits_;
  Deadline budget_ = Deadline::Never();
  std::shared_ptr<Toolchain> toolchain_;
  Status failure_;
};

}  // namespace

Expected<ProfileReply> RunProfile(const ProfileInputs& inputs, ToolchainProvider& toolchains, BlobCache* cache,
                                  std::stop_token stop) {
  return Profiler(inputs, toolchains, cache, std::move(stop)).Run();
}

}  // namespace kernelwright::agents
