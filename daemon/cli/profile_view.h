// The screen of `profile`, from its result object alone (docs/json.md). Pure text functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "daemon/cli/output.h"

namespace kernelwright::cli {

// Per chip: time and evidence or the refusal, source lines with bars, kernels, comparison, advice.
std::string RenderProfile(const nlohmann::json& result, const Style& style);

}  // namespace kernelwright::cli
