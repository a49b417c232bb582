// A run on one chip: the original, then changes of structure (lifts or rewrites), then a retune of the best of them.
#pragma once

#include <memory>
#include <vector>

#include "daemon/agents/lift_stage.h"
#include "daemon/agents/run_context.h"
#include "daemon/agents/run_result.h"
#include "daemon/agents/variant.h"
#include "daemon/cost/chips.h"

namespace kernelwright::agents {

// `original` is traced and discovered; `lifts` are those of a function without kernels, empty for others. What is
// proven stays in the result however the rest ends; never throws.
ChipResult RunChip(RunContext& run, Variant& original, Lifts& lifts, const cost::Chip& chip);

}  // namespace kernelwright::agents
