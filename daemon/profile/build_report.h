// From a detailed estimate to a profile.
#pragma once

#include <string>
#include <vector>

#include "daemon/cost/detailed_cost.h"
#include "daemon/kernels/program.h"
#include "daemon/profile/report.h"

namespace kernelwright::profile {

struct ProfileInput {
  std::string file;  // the user's file
  std::string function;
  std::string inputs;                // in the form of --inputs
  const Program* program = nullptr;  // traced; null: no grids, no roofline, and casts cannot be told apart
  cost::Work work;                   // of the whole function
  std::vector<SourceText> sources;   // texts of the user's files, by the paths that the compiler's locations use
};

// `cost` is used up. With a refusal the report counts each bundle of the schedules that could be read once, which says
// where the code is but not where the time goes.
ProfileReport BuildReport(cost::DetailedCost cost, const cost::Chip& chip, const ProfileInput& input);

}  // namespace kernelwright::profile
