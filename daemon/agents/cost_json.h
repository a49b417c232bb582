// Costs as JSON, in the mapping of profile.proto: for events, stored evaluations and result objects.
#pragma once

#include <nlohmann/json.hpp>

#include "daemon/base/status.h"
#include "daemon/cost/estimate.h"

namespace kernelwright::agents {

// {"estimate": {…}} or {"refusal": {…}}; per-line costs only `with_lines`.
nlohmann::json CostToJson(const cost::CostResult& result, bool with_lines);
// The inverse. kInternal for anything else.
Expected<cost::CostResult> CostFromJson(const nlohmann::json& value);

nlohmann::json EvidenceToJson(const cost::Evidence& evidence);

}  // namespace kernelwright::agents
