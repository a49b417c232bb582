// The profile as JSON (docs/json.md, profile).
#pragma once

#include <nlohmann/json.hpp>

#include "daemon/profile/compare.h"
#include "daemon/profile/report.h"

namespace kernelwright::profile {

// One element of results[]: everything but the texts of the sources.
nlohmann::json ReportToJson(const ProfileReport& report);

nlohmann::json ComparisonToJson(const Comparison& comparison);

}  // namespace kernelwright::profile
