// The final screen of a run, from its result object alone (docs/json.md), so that a run shown tomorrow or by another
// client looks the same. Pure text functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "daemon/base/status.h"
#include "daemon/cli/output.h"

namespace kernelwright::cli {

// Everything about the run: per chip the outcome, original and best with their evidence, what was tried, and the diff.
std::string RenderResult(const nlohmann::json& result, const Style& style, bool with_diff = true);

// The unified diffs, coloured by style: of one chip when `chip` is given, else of all, equal ones once.
std::string RenderDiff(const nlohmann::json& result, const std::string& chip, const Style& style);

// The edits to apply: those of `chip`, or of the only chip with a best candidate, or the common ones. An empty array
// when nothing is better; kUsage when chips differ and none is named.
Expected<nlohmann::json> ChooseEdits(const nlohmann::json& result, const std::string& chip);

// A time with three significant digits: "11.8 ms", "0.893 ms", "43 µs"; "-" for zero.
std::string FormatMilliseconds(double milliseconds);

// Of run.proto's CostResult in JSON: "11.8 ms (7.65–15.9 ms, medium confidence), estimated by replay for v5e with jax
// …", or "no time: …" for a refusal.
std::string DescribeCost(const nlohmann::json& cost);

}  // namespace kernelwright::cli
