// Event payloads, field by field; see run_events.h.
#include "daemon/agents/run_events.h"

#include "daemon/agents/cost_json.h"

namespace kernelwright::agents {

using nlohmann::json;

json CandidateChangedPayload(const std::string& chip, const CandidateRow& row) {
  return {{"chip", chip},
          {"candidate",
           {{"id", row.id},
            {"status", row.status},
            {"what", row.what},
            {"gate", row.gate},
            {"why", row.why},
            {"estimate_ms", row.estimate_ms},
            {"ranked_ms", row.ranked_ms},
            {"content_sha256", row.content_sha256},
            {"milliseconds", row.milliseconds},
            {"compile_cached", row.compile_cached}}}};
}

json PlanMadePayload(const std::string& chip, const std::vector<PlanStep>& steps) {
  json list = json::array();
  for (const PlanStep& step : steps) list.push_back(PlanStepToJson(step));
  return {{"chip", chip}, {"steps", list}};
}

json BaselineReadyPayload(const std::string& chip, const cost::CostResult& cost, const std::string& note) {
  return {{"chip", chip}, {"cost", CostToJson(cost, false)}, {"note", note}};
}

json BestChangedPayload(const std::string& chip, const std::string& candidate, double speedup,
                        const std::string& verdict) {
  return {{"chip", chip}, {"candidate", candidate}, {"speedup", speedup}, {"verdict", verdict}};
}

json ProgressPayload(const std::string& chip, const std::string& stage, size_t finished, size_t total, int compiles,
                     int64_t eta_milliseconds) {
  return {{"chip", chip},   {"stage", stage},       {"finished", finished},
          {"total", total}, {"compiles", compiles}, {"eta_milliseconds", eta_milliseconds}};
}

json LogLinePayload(const std::string& level, const std::string& text) { return {{"level", level}, {"text", text}}; }

json RunFinishedPayload(const std::string& status, const std::string& message, int exit_code) {
  return {{"status", status}, {"message", message}, {"exit_code", exit_code}};
}

std::string PayloadText(const json& payload) { return payload.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace kernelwright::agents
