// The last stage of a run on one chip: other values for block sizes and compiler parameters of a variant.
#pragma once

#include <cstddef>
#include <string>

#include "daemon/agents/attempt.h"

namespace kernelwright::agents {

// Searches the variant's space with at most `compiles` compiles; what is proven lands in the evaluation's result. With
// `no_check` (a reason) candidates are compiled only. Adds its steps to the result's plan.
Status Retune(RunContext& run, ChipEvaluation& evaluation, Variant& variant, const cost::Chip& chip,
              const cost::CostResult& current, const cost::Estimate& before, const std::string& no_check,
              size_t compiles, ChipResult& result);

}  // namespace kernelwright::agents
