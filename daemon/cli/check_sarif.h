// The result of a check as SARIF 2.1.0, which code hosts and editors read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "daemon/agents/check.h"

namespace kernelwright::cli {

// `folder`: files below it are named relative to it; others by absolute URIs.
nlohmann::json CheckSarif(const agents::CheckResult& result, const std::string& folder, const std::string& version);

}  // namespace kernelwright::cli
