// Lifts of a function without a kernel: made at a run's start, the same for every chip, because the check shapes that
// they need are frozen with the run.
#pragma once

#include <memory>
#include <vector>

#include "daemon/agents/variant.h"

namespace kernelwright::agents {

struct Lifts {
  std::vector<std::unique_ptr<Variant>> variants;  // traced and discovered
  std::vector<kernels::RuleRefusal> refusals;
};

// `original` must be traced. A Status error means that a worker failed or the run was cancelled; a function that cannot
// be lifted gives no variants and refusals.
Expected<Lifts> MakeLifts(RunContext& run, Variant& original, const cost::Chip& chip);

}  // namespace kernelwright::agents
