// See check_json.h.
#include "daemon/cli/check_json.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "daemon/base/text.h"
#include "daemon/cli/context.h"

namespace kernelwright::cli {
namespace {

using diagnose::Diagnostic;
using diagnose::Severity;
using nlohmann::json;

// Microseconds are as fine as the clock is worth.
double Rounded(double milliseconds) { return std::round(milliseconds * 1000) / 1000; }

json PlaceFields(const diagnose::Place& place) {
  const auto known = [](int value) { return value > 0 ? json(value) : json(nullptr); };
  json fields = {{"file", place.file},
                 {"line", known(place.line)},
                 {"column", known(place.column)},
                 {"end_line", known(place.end_line)},
                 {"end_column", known(place.end_column)}};
  if (place.cell > 0) fields["cell"] = place.cell;
  return fields;
}

json FixJson(const diagnose::Fix& fix) {
  json edits = json::array();
  for (const kernels::TextEdit& edit : fix.edits) {
    edits.push_back({{"file", edit.file},
                     {"base_sha256", edit.base_hash},
                     {"begin", edit.range.begin},
                     {"end", edit.range.end},
                     {"replacement", edit.replacement}});
  }
  return {{"title", fix.title}, {"verified", fix.verified}, {"edits", edits}};
}

json DiagnosticJson(const Diagnostic& diagnostic) {
  json object = PlaceFields(diagnostic.place);
  object["id"] = diagnostic.id;
  object["name"] = diagnostic.name;
  object["severity"] = diagnose::SeverityName(diagnostic.severity);
  object["stage"] = diagnose::StageName(diagnostic.stage);
  object["message"] = diagnostic.message;
  object["cause"] = diagnostic.cause;
  object["fix"] = diagnostic.advice;
  object["page"] = diagnostic.page;
  object["chips"] = diagnostic.chips;
  object["raw"] = diagnostic.raw;
  object["related"] = json::array();
  for (const diagnose::Related& related : diagnostic.related) {
    json place = PlaceFields(related.place);
    place["message"] = related.message;
    object["related"].push_back(std::move(place));
  }
  object["fixes"] = json::array();
  for (const diagnose::Fix& fix : diagnostic.fixes) object["fixes"].push_back(FixJson(fix));
  return object;
}

size_t Count(const agents::CheckResult& result, Severity severity, const std::string& chip) {
  return static_cast<size_t>(
      std::count_if(result.diagnostics.begin(), result.diagnostics.end(), [&](const Diagnostic& diagnostic) {
        return diagnostic.severity == severity &&
               (chip.empty() ||
                std::find(diagnostic.chips.begin(), diagnostic.chips.end(), chip) != diagnostic.chips.end());
      }));
}

json ChipJson(const agents::CheckResult& result, const agents::CheckChipResult& chip) {
  json compile_ms = nullptr;
  bool cached = true;
  for (const agents::CheckStageReport& stage : result.stages) {
    if (stage.stage != diagnose::Stage::kCompile || stage.chip != chip.chip) continue;
    compile_ms = (compile_ms.is_null() ? 0.0 : compile_ms.get<double>()) + Rounded(stage.milliseconds);
    cached = cached && stage.cached;
  }
  return {{"chip", chip.chip},
          {"status", chip.status},
          {"errors", Count(result, Severity::kError, chip.chip)},
          {"warnings", Count(result, Severity::kWarning, chip.chip)},
          {"compile_ms", compile_ms},
          {"compile_cached", !compile_ms.is_null() && cached}};
}

std::string Plural(size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

std::string CheckSummary(const agents::CheckResult& result) {
  std::vector<std::string> parts;
  if (const size_t errors = Count(result, Severity::kError, "")) parts.push_back(Plural(errors, "error"));
  if (const size_t warnings = Count(result, Severity::kWarning, "")) parts.push_back(Plural(warnings, "warning"));
  if (result.failure.kind() == ErrorKind::kCancelled) {
    parts.emplace_back("cancelled");
  } else if (!result.failure.ok()) {
    parts.emplace_back("not finished");
  }
  std::string text = parts.empty() ? "nothing found" : Join(parts, ", ");
  if (!result.chips.empty()) text += " on " + Join(result.chips, ", ");
  return text;
}

json CheckJson(const agents::CheckRequest& request, const agents::CheckResult& result) {
  json object = {{"schema_version", kSchemaVersion},
                 {"command", "check"},
                 {"status", agents::CheckStatusName(result)},
                 {"message", CheckSummary(result)},
                 {"exit_code", agents::CheckExitCode(result)},
                 {"file", result.file},
                 {"function", request.function.empty() ? json(nullptr) : json(request.function)},
                 {"chips", result.chips},
                 {"python", result.python},
                 {"sandbox", result.sandbox},
                 {"versions", result.versions},
                 {"milliseconds", Rounded(result.milliseconds)},
                 {"functions", json::array()},
                 {"diagnostics", json::array()},
                 {"stages", json::array()},
                 {"results", json::array()}};
  for (const agents::CheckedFunction& function : result.functions) {
    object["functions"].push_back({{"function", function.function},
                                   {"inputs", function.inputs},
                                   {"inputs_origin", function.inputs_origin},
                                   {"semantics", function.semantics}});
  }
  for (const Diagnostic& diagnostic : result.diagnostics) {
    object["diagnostics"].push_back(DiagnosticJson(diagnostic));
  }
  for (const agents::CheckStageReport& stage : result.stages) {
    object["stages"].push_back({{"stage", diagnose::StageName(stage.stage)},
                                {"function", stage.function.empty() ? json(nullptr) : json(stage.function)},
                                {"chip", stage.chip.empty() ? json(nullptr) : json(stage.chip)},
                                {"status", stage.status},
                                {"note", stage.note},
                                {"cached", stage.cached},
                                {"ms", Rounded(stage.milliseconds)},
                                {"at_ms", Rounded(stage.since_start_ms)}});
  }
  for (const agents::CheckChipResult& chip : result.results) object["results"].push_back(ChipJson(result, chip));
  if (result.results.size() == 1) {
    const json only = object["results"][0];
    object["chip"] = only["chip"];
    for (const char* field : {"errors", "warnings", "compile_ms", "compile_cached"}) object[field] = only[field];
  }
  if (!result.failure.ok()) object["error"] = ErrorObject(result.failure)["error"];
  return object;
}

}  // namespace kernelwright::cli
