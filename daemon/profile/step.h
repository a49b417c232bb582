// A settled round of a kernel's outermost loop: what it costs, what bounds it, and a picture of it.
#pragma once

#include <optional>

#include "daemon/cost/detailed_cost.h"
#include "daemon/profile/report.h"

namespace kernelwright::profile {

inline constexpr size_t kRecordedRounds = 16;
inline constexpr size_t kTimelineSlices = 160;

// The mean round of the loop that takes the most time: of those that the replay kept, one whose length is the mean of
// all, or up to four consecutive ones where rounds of different lengths alternate. Nothing when the unit has no loop,
// or its rounds hold more than was kept.
std::optional<Step> SettledStep(const cost::UnitDetail& unit, const cost::Chip& chip, const cost::ReplayTiming& timing);

// Issue slots of a unit in each cycle, 0 for units that have none of their own.
int SlotsPerCycle(const cost::Chip& chip, compiler::Unit unit);

}  // namespace kernelwright::profile
