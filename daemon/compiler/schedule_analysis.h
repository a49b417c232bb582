// Parser of `schedule-analysis_final_bundles`: how many bundles of a unit belong to which HLO instruction.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::compiler {

struct ScheduleShare {
  std::string instruction;  // "mm.1"; "<no hlo>" for code of no instruction
  double bundles = 0;
};

struct ScheduleAnalysis {
  int64_t total_bundles = 0;
  int64_t empty_bundles = 0;
  int64_t non_empty_bundles = 0;
  std::vector<ScheduleShare> instructions;
};

// Error when one of the three totals is missing. Lines of another form are skipped.
Expected<ScheduleAnalysis> ParseScheduleAnalysis(std::string_view text);

}  // namespace kernelwright::compiler
