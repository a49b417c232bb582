// Fits the figures of a chip to measured times: what `kernelwright calibrate` does, over values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"
#include "daemon/cost/chips.h"
#include "daemon/cost/program_estimate.h"

namespace kernelwright::cost {

// A compiled program and how long it took on the chip.
struct MeasuredProgram {
  std::string name;
  double milliseconds = 0;
  PreparedProgram program;
};

// What became of one pair. Without a reason it was used; `before` and `after` are estimates in ms.
struct PairOutcome {
  std::string name;
  double measured = 0;
  double before = 0;
  double after = 0;
  std::string left_out;  // why it was not used
};

struct FittedFigure {
  std::string name;  // as in the chip table: "clock_ghz"
  double before = 0;
  double after = 0;
};

struct CalibrationResult {
  Chip chip;  // with the fitted figures
  std::vector<FittedFigure> figures;
  std::vector<PairOutcome> pairs;
  // Median of |estimate / measured - 1| over the pairs that were used.
  double error_before = 0;
  double error_after = 0;
  // The same where each half of the pairs was estimated with figures that were fitted on the other half.
  double error_held_out = 0;
  double worst_held_out = 0;  // 90th percentile
};

// Fits as many figures as the pairs can tell, one for each three pairs, those that matter most first. Deterministic.
// kUsage with what is wrong: fewer than six usable pairs, or pairs that this chip's figures cannot explain (more than a
// third are off by a factor above five, or the fit leaves every plausible range).
Expected<CalibrationResult> Calibrate(const Chip& chip, const std::vector<MeasuredProgram>& programs);

// Only compares: every pair with its estimate in `before` and `after`, no figure fitted.
CalibrationResult Compare(const Chip& chip, const std::vector<MeasuredProgram>& programs);

// The chip table's text with the fitted figures of `result` in place, marked as calibrated and with `source` behind
// them.
Expected<std::string> WriteCalibration(std::string_view chips_json, const CalibrationResult& result,
                                       const std::string& source);

}  // namespace kernelwright::cost
