// Stages of one candidate's evaluation; see evaluator.h. What a compile gave is kept as one blob (CBOR) under a key of
// everything that it depends on, so that the cache needs no invalidation; the estimate is made from the blob each time.
#include "daemon/agents/evaluator.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/agents/cost_json.h"
#include "daemon/agents/gate_list.h"
#include "daemon/agents/program_gate.h"
#include "daemon/agents/source_gate.h"
#include "daemon/base/gzip.h"
#include "daemon/base/hash.h"
#include "daemon/cost/estimate.h"
#include "daemon/cost/program_estimate.h"

namespace kernelwright::agents {
namespace {

using nlohmann::json;
using SteadyClock = std::chrono::steady_clock;

constexpr const char* kCacheFormat = "compile-2";  // raise when the blob or the compiler's flags change
constexpr size_t kDumpLimit = size_t{512} << 20;   // unpacked size of one dump

uint32_t MillisecondsSince(SteadyClock::time_point start) {
  return static_cast<uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now() - start).count());
}

json ErrorToJson(const CodeError& error) {
  json frames = json::array();
  for (const SourceSpan& span : error.frames) {
    frames.push_back({{"file", span.file},
                      {"line", span.line},
                      {"column", span.column},
                      {"end_line", span.end_line},
                      {"end_column", span.end_column},
                      {"function", span.function}});
  }
  return {{"stage", error.stage}, {"type", error.type}, {"message", error.message},
          {"cause", error.cause}, {"frames", frames},   {"traceback", error.traceback}};
}

CodeError ErrorFromJson(const json& value) {
  CodeError error{value.at("stage"),    value.at("type"), value.at("message"), value.at("cause"), {},
                  value.at("traceback")};
  for (const json& frame : value.at("frames")) {
    error.frames.push_back({frame.at("file"), frame.at("line"), frame.at("column"), frame.at("end_line"),
                            frame.at("end_column"), frame.at("function")});
  }
  return error;
}

json GatesToJson(const std::vector<GateResult>& gates) {
  json list = json::array();
  for (const GateResult& gate : gates) {
    list.push_back({{"gate", gate.gate}, {"status", GateStatusName(gate.status)}, {"reason", gate.reason}});
  }
  return list;
}

std::vector<GateResult> GatesFromJson(const json& list) {
  std::vector<GateResult> gates;
  for (const json& entry : list) {
    const std::string status = entry.at("status");
    gates.push_back({entry.at("gate"),
                     status == "pass"   ? GateStatus::kPass
                     : status == "fail" ? GateStatus::kFail
                                        : GateStatus::kNotRun,
                     entry.at("reason")});
  }
  return gates;
}

// The first failed gate becomes the reason of the stage; a gate that was not run counts only when none failed, since a
// failure is what keeps later gates from being run.
template <typename Stage>
void Conclude(Stage& stage) {
  stage.passed = true;
  for (const GateStatus wanted : {GateStatus::kFail, GateStatus::kNotRun}) {
    for (const GateResult& gate : stage.gates) {
      if (gate.status != wanted || !stage.passed) continue;
      stage.gate = gate.gate;
      stage.reason = gate.reason;
      stage.passed = false;
    }
  }
}

std::string FirstLine(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \n\t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find('\n', begin) - begin);
}

constexpr size_t kHeadlineLimit = 240;

// What to show of a long text on one line: the sentence that names the exceeded limit if there is one, else the first
// line, with the next one when the first is only a heading ("E1001: CompileTimeScopedVmemOom:").
std::string Headline(const std::string& text) {
  if (const size_t limit = text.find("exceeded scoped vmem limit"); limit != std::string::npos) {
    const size_t before = text.rfind(". ", limit);
    const size_t begin = before == std::string::npos ? 0 : before + 2;
    const size_t after = text.find(". ", limit);
    return FirstLine(text.substr(begin, after == std::string::npos ? after : after - begin));
  }
  std::string line = FirstLine(text);
  const size_t end = text.find(line) + line.size();
  if (line.ends_with(':') && end < text.size()) line += " " + FirstLine(text.substr(end));
  if (line.size() > kHeadlineLimit) line = line.substr(0, kHeadlineLimit) + " …";
  return line;
}

std::string ErrorLine(const CodeError& error) {
  const std::string text = Headline(error.message.empty() ? error.cause : error.message);
  std::string line = error.stage + ": " + (text.empty() ? error.type : text);
  if (!error.frames.empty() && error.frames.front().line > 0) {
    const SourceSpan& frame = error.frames.front();
    line += " (" + frame.file.substr(frame.file.rfind('/') + 1) + ":" + std::to_string(frame.line) + ")";
  }
  return line;
}

std::string OutcomeLine(const JobReport& report) {
  return std::string("the job ended by ") + JobOutcomeName(report.outcome) +
         (report.detail.empty() ? "" : ": " + FirstLine(report.detail));
}

}  // namespace

std::string ContentHash(std::vector<FileText> files) {
  std::sort(files.begin(), files.end(), [](const FileText& a, const FileText& b) { return a.path < b.path; });
  Sha256 hash;
  for (const FileText& file : files) hash.Field(file.path).Field(file.text);
  return hash.Hex();
}

// What tracing and compiling gave, in the form in which it is cached.
struct Evaluator::Compiled {
  std::vector<GateResult> gates;   // G11 and the compiled part of G20, as far as they were reached
  std::optional<CodeError> error;  // trace, lower or compile
  std::string outcome;             // set when the job did not end well: not cached, because another try may
  std::vector<DumpFile> dumps;
  Versions versions;
  bool cached = false;
  uint32_t job_milliseconds = 0;  // spent in the children, from fork to result; not in the blob

  std::string ToBlob() const;
  static std::optional<Compiled> FromBlob(const std::string& blob);
};

std::string Evaluator::Compiled::ToBlob() const {
  json value = {{"gates", GatesToJson(gates)}, {"versions", versions}, {"dumps", json::array()}};
  if (error) value["error"] = ErrorToJson(*error);
  for (const DumpFile& dump : dumps) {
    value["dumps"].push_back(
        {{"name", dump.name}, {"gzip", json::binary(std::vector<uint8_t>(dump.gzip.begin(), dump.gzip.end()))}});
  }
  const std::vector<uint8_t> bytes = json::to_cbor(value);
  return {bytes.begin(), bytes.end()};
}

std::optional<Evaluator::Compiled> Evaluator::Compiled::FromBlob(const std::string& blob) {
  try {
    const json value = json::from_cbor(blob.begin(), blob.end());
    Compiled compiled;
    compiled.gates = GatesFromJson(value.at("gates"));
    compiled.versions = value.at("versions").get<Versions>();
    if (value.contains("error")) compiled.error = ErrorFromJson(value.at("error"));
    for (const json& dump : value.at("dumps")) {
      const auto& bytes = dump.at("gzip").get_binary();
      compiled.dumps.push_back({dump.at("name"), std::string(bytes.begin(), bytes.end())});
    }
    compiled.cached = true;
    return compiled;
  } catch (const json::exception&) {
    return std::nullopt;  // a damaged entry is a miss
  }
}

Evaluator::Evaluator(Toolchain& toolchain, Journal& journal, const FrozenReference& frozen, const cost::Work& work,
                     Options options)
    : toolchain_(toolchain), journal_(journal), frozen_(frozen), work_(work), options_(std::move(options)) {}

Source Evaluator::SourceOf(const CandidateSource& candidate) const {
  return {frozen_.original.file, frozen_.original.function, candidate.files};
}

std::string Evaluator::CacheKey(const CandidateSource& candidate, const cost::Chip& chip) const {
  const WorkerIdentity& identity = toolchain_.identity();
  Sha256 hash;
  hash.Field(kCacheFormat)
      .Field(candidate.content_sha256)
      .Field(frozen_.original.file)
      .Field(frozen_.original.function);
  hash.Field(kernels::FormatInputs(frozen_.inputs)).Field(chip.name);
  for (const auto& [name, version] : identity.versions) hash.Field(name).Field(version);
  return hash.Hex();
}

std::optional<cost::Dumps> Evaluator::DumpsOf(const CandidateSource& candidate, const cost::Chip& chip,
                                              Versions* versions) const {
  const auto blob = journal_.CacheGet(CacheKey(candidate, chip));
  const auto compiled = blob ? Compiled::FromBlob(*blob) : std::nullopt;
  if (!compiled) return std::nullopt;
  cost::Dumps dumps;
  for (const DumpFile& dump : compiled->dumps) {
    auto text = GzipDecompress(dump.gzip, kDumpLimit);
    if (!text) return std::nullopt;
    dumps.push_back({dump.name, *std::move(text)});
  }
  *versions = compiled->versions;
  return dumps;
}

Expected<Evaluator::Compiled> Evaluator::CompileOrCached(const CandidateSource& candidate, const cost::Chip& chip,
                                                         std::stop_token stop) {
  ++compiles_;
  const std::string key = CacheKey(candidate, chip);
  if (auto blob = journal_.CacheGet(key)) {
    if (auto compiled = Compiled::FromBlob(*blob)) return *std::move(compiled);
  }

  Compiled compiled;
  TraceRequest trace;
  trace.source = SourceOf(candidate);
  trace.inputs = frozen_.inputs;
  trace.chips = {chip.name};
  trace.want_artefacts = true;
  trace.limits = options_.compile_limits;
  auto traced = toolchain_.Trace(trace, stop);
  if (!traced) return Fail(traced.error());
  compiled.versions = traced->versions;
  compiled.job_milliseconds = traced->milliseconds;
  if (traced->outcome == JobOutcome::kCancelled) return Fail(ErrorKind::kCancelled, "the trace was cancelled");
  if (traced->outcome != JobOutcome::kDone) {
    compiled.outcome = OutcomeLine(*traced);
    return compiled;
  }
  if (traced->error) {
    compiled.error = traced->error;
  } else if (traced->artefacts.empty()) {
    return Fail(ErrorKind::kInternal, "the worker returned no artefact for " + chip.name, "worker");
  } else {
    if (traced->program) compiled.gates.push_back(CheckKernelCalls(FindPallasCalls(*traced->program), chip));
    compiled.error = traced->artefacts.front().error;
  }
  const bool legal = compiled.gates.empty() || compiled.gates.back().status == GateStatus::kPass;
  if (!compiled.error && legal) {
    CompileRequest request{std::move(traced->artefacts.front()), true, options_.compile_limits};
    auto report = toolchain_.Compile(request, stop);
    if (!report) return Fail(report.error());
    if (report->outcome == JobOutcome::kCancelled) return Fail(ErrorKind::kCancelled, "the compile was cancelled");
    if (report->outcome != JobOutcome::kDone) {
      compiled.outcome = OutcomeLine(*report);
      return compiled;
    }
    compiled.job_milliseconds += report->milliseconds;
    compiled.error = report->error;
    compiled.dumps = std::move(report->dumps);
    if (!report->versions.empty()) compiled.versions = report->versions;
    if (!compiled.error) {
      auto hlo = GzipDecompress(report->hlo_gzip, kDumpLimit);
      if (!hlo) return Fail(hlo.error());
      const bool claims_kernel = traced->program && !FindPallasCalls(*traced->program).empty();
      compiled.gates.push_back(CheckHlo(ReadHlo(*hlo), claims_kernel, work_.flops.value_or(0)));
    }
  }
  journal_.CachePut(key, compiled.ToBlob());
  return compiled;
}

Expected<CompileStage> Evaluator::Compile(const CandidateSource& candidate, const cost::Chip& chip, double ranked_ms,
                                          std::stop_token stop) {
  const auto start = SteadyClock::now();
  CompileStage stage;
  auto stored = journal_.FindStage(chip.name, candidate.content_sha256, "compile");
  if (!stored) return Fail(stored.error());
  if (*stored) {
    try {
      const json value = json::parse((*stored)->result_json);
      if (value.at("build") == options_.build) {
        stage.gates = GatesFromJson(value.at("gates"));
        if (value.contains("error")) stage.error = ErrorFromJson(value.at("error"));
        if (value.contains("cost")) {
          auto result = CostFromJson(value.at("cost"));
          if (!result) return Fail(result.error());
          stage.cost = *std::move(result);
        }
        Conclude(stage);
        stage.cached = stage.resumed = true;
        stage.milliseconds = (*stored)->milliseconds;
        ++compiles_;
        return stage;
      }
    } catch (const json::exception&) {
      stage = CompileStage();  // written by another build: evaluated again below, from the cache
    }
  }

  for (const FileText& file : candidate.files) {
    const auto original = std::find_if(frozen_.original.files.begin(), frozen_.original.files.end(),
                                       [&](const FileText& other) { return other.path == file.path; });
    const std::string before = original == frozen_.original.files.end() ? "" : original->text;
    if (before == file.text) continue;
    stage.gates.push_back(
        CheckSource(file.path, before, file.text, file.path == frozen_.original.file ? frozen_.original.function : ""));
    if (stage.gates.back().status != GateStatus::kPass) break;
  }
  if (stage.gates.empty()) stage.gates.push_back(Pass("G10"));  // nothing was added
  uint32_t job_milliseconds = 0;

  if (stage.gates.back().status == GateStatus::kPass) {
    auto compiled = CompileOrCached(candidate, chip, stop);
    if (!compiled) return Fail(compiled.error());
    stage.cached = compiled->cached;
    job_milliseconds = compiled->job_milliseconds;
    stage.error = compiled->error;
    stage.gates.insert(stage.gates.end(), compiled->gates.begin(), compiled->gates.end());
    const bool gates_hold = std::all_of(stage.gates.begin(), stage.gates.end(),
                                        [](const GateResult& gate) { return gate.status == GateStatus::kPass; });
    if (stage.error) {
      stage.gates.push_back(FailGate("G23", ErrorLine(*stage.error)));
    } else if (!compiled->outcome.empty()) {
      stage.gates.push_back(FailGate("G23", compiled->outcome));
    } else if (gates_hold) {
      stage.gates.push_back(Pass("G23"));
      cost::Dumps dumps;
      for (const DumpFile& dump : compiled->dumps) {
        auto text = GzipDecompress(dump.gzip, kDumpLimit);
        if (!text) return Fail(text.error());
        dumps.push_back({dump.name, *std::move(text)});
      }
      Versions versions = compiled->versions;
      versions["kernelwright"] = options_.build;
      stage.cost = cost::EstimateFromDumps(dumps, chip, work_, versions);
      stage.gates.push_back(CheckScheduleFloor(*stage.cost, work_, chip));
    }
  }
  Conclude(stage);
  stage.milliseconds = MillisecondsSince(start);

  json value = {{"gates", GatesToJson(stage.gates)}, {"build", options_.build}, {"job_milliseconds", job_milliseconds}};
  if (stage.error) value["error"] = ErrorToJson(*stage.error);
  if (stage.cost) value["cost"] = CostToJson(*stage.cost, false);
  const StageRecord record{chip.name,
                           candidate.id,
                           candidate.content_sha256,
                           "compile",
                           stage.passed ? "passed" : "failed",
                           stage.gate,
                           stage.reason,
                           value.dump(-1, ' ', false, json::error_handler_t::replace),
                           stage.milliseconds};
  CandidateRow row;
  row.id = candidate.id;
  row.status = stage.passed ? "compiled" : "failed";
  row.what = candidate.what;
  row.gate = stage.gate;
  row.why = stage.reason;
  if (stage.estimate()) row.estimate_ms = stage.estimate()->milliseconds;
  row.ranked_ms = ranked_ms;
  row.content_sha256 = candidate.content_sha256;
  row.milliseconds = stage.milliseconds;
  row.compile_cached = stage.cached;
  if (Status saved = journal_.SaveStage(record, row); !saved.ok()) return Fail(saved);
  return stage;
}

Expected<CheckStage> Evaluator::Check(const CandidateSource& candidate, const cost::Chip& chip,
                                      const std::vector<CheckShape>& shapes, bool reference_only, CandidateRow row,
                                      std::stop_token stop) {
  const auto start = SteadyClock::now();
  const std::string name = reference_only ? "soundness" : "check";
  CheckStage stage;
  auto stored = journal_.FindStage(chip.name, candidate.content_sha256, name);
  if (!stored) return Fail(stored.error());
  if (*stored) {
    try {
      const json value = json::parse((*stored)->result_json);
      stage.gates = GatesFromJson(value.at("gates"));
      stage.candidate_error = value.at("candidate_error");
      stage.reference_error = value.at("reference_error");
      Conclude(stage);
      stage.resumed = true;
      stage.milliseconds = (*stored)->milliseconds;
      return stage;
    } catch (const json::exception&) {
      stage = CheckStage();
    }
  }

  JudgeRequest request;
  request.candidate = SourceOf(candidate);
  request.reference = frozen_.reference;
  request.shapes = shapes;
  request.seeds = frozen_.seeds;
  request.tolerance = frozen_.tolerance;
  request.chip = chip.name;
  request.reference_only = reference_only;
  request.limits = options_.check_limits;
  auto report = toolchain_.Judge(request, stop);
  if (!report) return Fail(report.error());
  if (report->outcome == JobOutcome::kCancelled) return Fail(ErrorKind::kCancelled, "the check was cancelled");
  if (report->outcome != JobOutcome::kDone) {
    stage.gates.push_back(FailGate(report->outcome == JobOutcome::kSandbox ? "G50" : "G31",
                                   OutcomeLine(*report) + (report->role.empty() ? "" : " (" + report->role + ")")));
  } else {
    stage.gates = report->gates;
    for (const Comparison& comparison : report->comparisons) {
      stage.candidate_error = std::max(stage.candidate_error, comparison.candidate_error);
      stage.reference_error = std::max(stage.reference_error, comparison.reference_error);
    }
    if (stage.gates.empty()) stage.gates.push_back(NotRun("G30", "the judge returned no verdict"));
  }
  Conclude(stage);
  stage.milliseconds = MillisecondsSince(start);

  const json value = {{"gates", GatesToJson(stage.gates)},
                      {"candidate_error", stage.candidate_error},
                      {"reference_error", stage.reference_error},
                      {"job_milliseconds", report->milliseconds}};
  const StageRecord record{chip.name,
                           candidate.id,
                           candidate.content_sha256,
                           name,
                           stage.passed ? "passed" : "failed",
                           stage.gate,
                           stage.reason,
                           value.dump(-1, ' ', false, json::error_handler_t::replace),
                           stage.milliseconds};
  row.status = stage.passed ? "passed" : "failed";
  row.gate = stage.gate;
  row.why = stage.reason;
  row.milliseconds += stage.milliseconds;
  if (Status saved = journal_.SaveStage(record, row); !saved.ok()) return Fail(saved);
  return stage;
}

}  // namespace kernelwright::agents
