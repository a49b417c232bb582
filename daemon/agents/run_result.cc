// The result object; see run_result.h and docs/json.md. Fields of a single chip are repeated at the top level, so that
// scripts for one chip need not index into results[].
#include "daemon/agents/run_result.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/agents/cost_json.h"

namespace kernelwright::agents {
namespace {

using nlohmann::json;

const char* EvidenceWord(const cost::Evidence& evidence) { return cost::EvidenceClassName(evidence.evidence_class); }

json EvidenceObject(const cost::Estimate& estimate) {
  return {{"class", EvidenceWord(estimate.evidence)},
          {"method", estimate.evidence.method},
          {"chip", estimate.evidence.chip},
          {"versions", estimate.evidence.versions},
          {"interval", {estimate.low_milliseconds, estimate.high_milliseconds}},
          {"confidence", cost::ConfidenceName(estimate.confidence)}};
}

json EstimateObject(const cost::Estimate& estimate) {
  json kernels = json::array();
  for (const cost::KernelCost& kernel : estimate.kernels) {
    kernels.push_back({{"name", kernel.name},
                       {"cycles", kernel.cycles},
                       {"dma_wait_cycles", kernel.dma_wait_cycles},
                       {"dma_bytes", kernel.dma_bytes},
                       {"loop_iterations", kernel.loop_iterations},
                       {"bound", cost::BoundName(kernel.bound)}});
  }
  return {{"estimate_ms", estimate.milliseconds},
          {"evidence", EvidenceObject(estimate)},
          {"bound", cost::BoundName(estimate.bound)},
          {"roofline_fraction", estimate.roofline_fraction},
          {"floor_ms", estimate.floor_milliseconds},
          {"dma_bytes", estimate.dma_bytes},
          {"kernels", kernels},
          {"warnings", estimate.warnings}};
}

json GateList(const std::vector<GateResult>& gates) {
  json list = json::array();
  for (const GateResult& gate : gates) {
    list.push_back({{"gate", gate.gate}, {"status", GateStatusName(gate.status)}, {"reason", gate.reason}});
  }
  return list;
}

json OriginalObject(const ChipResult& result) {
  json original = {{"estimate_ms", nullptr}, {"refusal", nullptr}, {"gates", GateList(result.original_gates)}};
  if (!result.original) return original;
  if (const auto* estimate = std::get_if<cost::Estimate>(&*result.original)) {
    original.update(EstimateObject(*estimate));
  } else {
    const auto& refusal = std::get<cost::Refusal>(*result.original);
    original["refusal"] = {{"reason", refusal.reason}, {"instruction", refusal.instruction}};
  }
  return original;
}

json BestObject(const BestCandidate& best) {
  json object = EstimateObject(best.estimate);
  object["id"] = best.id;
  object["what"] = best.what;
  object["content_sha256"] = best.content_sha256;
  object["file"] = best.changes.empty() ? "" : best.changes.front().file;
  object["diff"] = best.diff;
  object["edits"] = json::array();
  for (const FileChange& change : best.changes) {
    object["edits"].push_back(
        {{"file", change.file}, {"base_sha256", change.base_sha256}, {"new_text", change.new_text}});
  }
  object["gates"] = GateList(best.gates);
  object["candidate_error"] = best.candidate_error;
  object["reference_error"] = best.reference_error;
  object["rules"] = best.rules;
  object["exactness"] = kernels::ExactnessName(best.exactness);
  return object;
}

json PlanObject(const std::vector<PlanStep>& plan) {
  json steps = json::array();
  for (const PlanStep& step : plan) steps.push_back(PlanStepToJson(step));
  return steps;
}

json CandidateList(const std::vector<CandidateRow>& candidates) {
  json list = json::array();
  for (const CandidateRow& row : candidates) {
    list.push_back({{"id", row.id},
                    {"status", row.status},
                    {"what", row.what},
                    {"gate", row.gate},
                    {"why", row.why},
                    {"estimate_ms", row.estimate_ms > 0 ? json(row.estimate_ms) : json()},
                    {"ranked_ms", row.ranked_ms > 0 ? json(row.ranked_ms) : json()},
                    {"content_sha256", row.content_sha256},
                    {"milliseconds", row.milliseconds},
                    {"compile_cached", row.compile_cached}});
  }
  return list;
}

json RecognisedList(const std::vector<kernels::Proposal>& proposals) {
  json list = json::array();
  for (const kernels::Proposal& proposal : proposals) {
    list.push_back({{"rule", proposal.rule},
                    {"what", proposal.what},
                    {"file", proposal.place.file},
                    {"line", proposal.place.line},
                    {"end_line", proposal.place.end_line},
                    {"reason", proposal.reason},
                    {"evidence", proposal.evidence},
                    {"expected_gain", proposal.expected_gain > 0 ? json(proposal.expected_gain) : json()},
                    {"exactness", kernels::ExactnessName(proposal.exactness)}});
  }
  return list;
}

json RefusalList(const std::vector<kernels::RuleRefusal>& refusals) {
  json list = json::array();
  for (const kernels::RuleRefusal& refusal : refusals) {
    list.push_back({{"rule", refusal.rule},
                    {"reason", refusal.reason},
                    {"file", refusal.place.file},
                    {"line", refusal.place.line > 0 ? json(refusal.place.line) : json()},
                    {"end_line", refusal.place.line > 0 ? json(refusal.place.end_line) : json()}});
  }
  return list;
}

json ErrorObject(const ChipResult& result) {
  if (result.status != "failed") return nullptr;
  json error = {{"kind", ErrorKindName(result.error)}, {"message", result.message}};
  if (result.code_error) {
    error["stage"] = result.code_error->stage;
    error["type"] = result.code_error->type;
    error["text"] = result.code_error->message;
    error["cause"] = result.code_error->cause;
    error["traceback"] = result.code_error->traceback;
    if (!result.code_error->frames.empty()) {
      const SourceSpan& frame = result.code_error->frames.front();
      error["file"] = frame.file;
      error["line"] = frame.line;
      error["column"] = frame.column;
    }
  }
  return error;
}

json ChipObject(const ChipResult& result) {
  json object = {{"chip", result.chip},
                 {"status", result.status},
                 {"message", result.message},
                 {"error", ErrorObject(result)},
                 {"original", OriginalObject(result)},
                 {"best", nullptr},
                 {"speedup", nullptr},
                 {"verdict", nullptr},
                 {"evidence", nullptr},
                 {"bound", nullptr},
                 {"roofline_fraction", nullptr},
                 {"plan", PlanObject(result.plan)},
                 {"recognised", RecognisedList(result.recognised)},
                 {"not_recognised", RefusalList(result.refusals)},
                 {"candidates", CandidateList(result.candidates)},
                 {"compiles", result.compiles},
                 {"compiles_cached", result.compiles_cached},
                 {"seconds", result.seconds}};
  const cost::Estimate* shown = result.original ? std::get_if<cost::Estimate>(&*result.original) : nullptr;
  if (result.best) {
    object["best"] = BestObject(*result.best);
    object["speedup"] = result.speedup;
    shown = &result.best->estimate;
  }
  if (!result.verdict.empty()) object["verdict"] = result.verdict;
  if (shown != nullptr) {
    object["evidence"] = EvidenceObject(*shown);
    object["bound"] = cost::BoundName(shown->bound);
    object["roofline_fraction"] = shown->roofline_fraction;
  }
  return object;
}

}  // namespace

json PlanStepToJson(const PlanStep& step) {
  return {{"id", step.id},
          {"title", step.title},
          {"file", step.file},
          {"line", step.line},
          {"end_line", step.end_line},
          {"reason", step.reason},
          {"expected_gain", step.expected_gain},
          {"evidence", step.evidence},
          {"content_sha256", step.content_sha256}};
}

std::string VerdictWord(double ratio) {
  if (ratio >= 1.10) return "faster";
  return ratio >= 1.02 ? "probably" : "tie";
}

std::string OverallStatus(const RunResult& result) {
  for (const char* status : {"improved", "cancelled", "failed"}) {
    if (std::any_of(result.results.begin(), result.results.end(),
                    [&](const ChipResult& chip) { return chip.status == status; })) {
      return status;
    }
  }
  return result.results.empty() ? "failed" : "no_improvement";
}

int OverallExitCode(const RunResult& result) {
  const std::string status = OverallStatus(result);
  if (status == "improved" || status == "no_improvement") return 0;
  if (status == "cancelled") return ExitCode(ErrorKind::kCancelled);
  for (const ChipResult& chip : result.results) {
    if (chip.status == "failed" && chip.error != ErrorKind::kOk) return ExitCode(chip.error);
  }
  return ExitCode(ErrorKind::kUserCode);
}

std::string OverallMessage(const RunResult& result) {
  std::string text;
  for (const ChipResult& chip : result.results) {
    if (!text.empty()) text += "; ";
    text += result.results.size() > 1 ? chip.chip + ": " + chip.message : chip.message;
  }
  return text;
}

std::string ResultJson(const RunResult& result) {
  json object = {
      {"schema_version", kResultSchemaVersion},
      {"command", result.command},
      {"run", result.run},
      {"file", result.file},
      {"function", result.function},
      {"reference",
       {{"file", result.reference_file}, {"function", result.reference_function}, {"sha256", result.reference_sha256}}},
      {"inputs", result.inputs},
      {"inputs_origin", result.inputs_origin},
      {"python", result.python},
      {"sandbox", result.sandbox},
      {"results", json::array()}};
  for (const ChipResult& chip : result.results) object["results"].push_back(ChipObject(chip));
  if (result.results.size() == 1) object.update(object["results"][0]);
  object["status"] = OverallStatus(result);
  object["message"] = OverallMessage(result);
  object["exit_code"] = OverallExitCode(result);
  return object.dump(2, ' ', false, json::error_handler_t::replace);
}

}  // namespace kernelwright::agents
