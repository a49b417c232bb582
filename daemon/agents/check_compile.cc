// See check_compile.h. A verdict is a few hundred bytes, errors included, so that looking one up costs nothing beside
// the trace that its key needs.
#include "daemon/agents/check_compile.h"

#include <utility>

#include "daemon/base/hash.h"
#include "daemon/base/json.h"

namespace kernelwright::agents {
namespace {

constexpr const char* kCacheFormat = "check-1";  // raise when the value or the compiler's flags change

std::string KeyOf(const CompileQuestion& question, const WorkerIdentity& identity) {
  Sha256 hash;
  hash.Field(kCacheFormat).Field(question.content_sha256).Field(question.source.file).Field(question.source.function);
  hash.Field(kernels::FormatInputs(question.inputs)).Field(question.chip);
  for (const auto& [name, version] : identity.versions) hash.Field(name).Field(version);
  return hash.Hex();
}

std::string ToBlob(const CompileVerdict& verdict) {
  Json value = Json::object();
  if (verdict.error) {
    const CodeError& error = *verdict.error;
    Json frames = Json::array();
    for (const SourceSpan& span : error.frames) {
      frames.push_back({span.file, span.line, span.column, span.end_line, span.end_column, span.function});
    }
    value["error"] = {{"stage", error.stage}, {"type", error.type}, {"message", error.message},
                      {"cause", error.cause}, {"frames", frames},   {"traceback", error.traceback}};
  }
  return DumpJson(value);
}

std::optional<CompileVerdict> FromBlob(const std::string& blob) {
  try {
    const Json value = Json::parse(blob);
    CompileVerdict verdict;
    verdict.cached = true;
    if (!value.contains("error")) return verdict;
    const Json& stored = value.at("error");
    CodeError error{stored.at("stage"),    stored.at("type"), stored.at("message"), stored.at("cause"), {},
                    stored.at("traceback")};
    for (const Json& span : stored.at("frames")) {
      error.frames.push_back({span.at(0), span.at(1), span.at(2), span.at(3), span.at(4), span.at(5)});
    }
    verdict.error = std::move(error);
    return verdict;
  } catch (const Json::exception&) {
    return std::nullopt;  // a damaged entry is a miss
  }
}

}  // namespace

Expected<CompileVerdict> CompileFor(const CompileQuestion& question, std::optional<Artefact> artefact,
                                    Toolchain& toolchain, BlobCache* cache, const std::stop_token& stop) {
  const bool keep = cache != nullptr && !question.content_sha256.empty();
  const std::string key = keep ? KeyOf(question, toolchain.identity()) : "";
  if (keep) {
    if (const auto blob = cache->Get(key)) {
      if (auto known = FromBlob(*blob)) {
        known->chip = question.chip;
        return *std::move(known);
      }
    }
  }
  CompileVerdict verdict;
  verdict.chip = question.chip;
  if (!artefact) {
    verdict.what = "tracing";
    TraceRequest request{question.source, question.inputs, {question.chip}, false, true, question.limits};
    auto traced = toolchain.Trace(request, stop);
    if (!traced) return Fail(traced.error());
    if (traced->outcome != JobOutcome::kDone) {
      verdict.job = static_cast<const JobReport&>(*traced);
      return verdict;
    }
    if (traced->error) {
      verdict.error = std::move(traced->error);
    } else if (traced->artefacts.empty()) {
      return Fail(ErrorKind::kInternal, "the worker returned no artefact for " + question.chip, "worker");
    } else {
      artefact = std::move(traced->artefacts.front());
    }
  }
  if (!verdict.error) {
    if (artefact->error) {
      verdict.error = std::move(artefact->error);
    } else {
      verdict.what = "compiling";
      auto report = toolchain.Compile({*std::move(artefact), false, question.limits}, stop);
      if (!report) return Fail(report.error());
      verdict.job = static_cast<const JobReport&>(*report);
      if (report->outcome != JobOutcome::kDone) return verdict;
      verdict.error = std::move(report->error);
    }
  }
  if (keep) cache->Put(key, ToBlob(verdict));
  return verdict;
}

}  // namespace kernelwright::agents
