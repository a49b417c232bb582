// Payloads of a run's events, as run.proto names them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/agents/journal.h"
#include "daemon/agents/run_result.h"

namespace kernelwright::agents {

nlohmann::json CandidateChangedPayload(const std::string& chip, const CandidateRow& row);
nlohmann::json PlanMadePayload(const std::string& chip, const std::vector<PlanStep>& steps);
nlohmann::json BaselineReadyPayload(const std::string& chip, const cost::CostResult& cost, const std::string& note);
nlohmann::json BestChangedPayload(const std::string& chip, const std::string& candidate, double speedup,
                                  const std::string& verdict);
nlohmann::json ProgressPayload(const std::string& chip, const std::string& stage, size_t finished, size_t total,
                               int compiles, int64_t eta_milliseconds);
nlohmann::json LogLinePayload(const std::string& level, const std::string& text);
nlohmann::json RunFinishedPayload(const std::string& status, const std::string& message, int exit_code);

// Text of a payload; bytes that are not UTF-8 are replaced.
std::string PayloadText(const nlohmann::json& payload);

}  // namespace kernelwright::agents
