// The object that `check --json` prints (docs/json.md).
#pragma once

#include <nlohmann/json.hpp>

#include "daemon/agents/check.h"

namespace kernelwright::cli {

nlohmann::json CheckJson(const agents::CheckRequest& request, const agents::CheckResult& result);

// "2 errors and 1 warning on v5e, v6e", "nothing found on v6e".
std::string CheckSummary(const agents::CheckResult& result);

}  // namespace kernelwright::cli
