// Cycles and the rest of one compiled unit by source line.
#pragma once

#include <vector>

#include "daemon/cost/detailed_cost.h"
#include "daemon/profile/report.h"

namespace kernelwright::profile {

// Sorted by file and line, line 0 first. `trace` says how often each block ran; for a unit whose HLO names a source
// line and whose schedule names none, everything is on that line. The cycles are multiples of a replay tick and add up
// to trace.ticks exactly.
std::vector<LineProfile> LinesOfUnit(const cost::UnitDetail& unit, const cost::ProgramTrace& trace);

// A trace in which every block ran once: for schedules whose course is not known.
cost::ProgramTrace EachBlockOnce(const cost::ScalarProgram& program);

// Adds the lines of one unit to those of a program.
void AddLines(const std::vector<LineProfile>& more, std::vector<LineProfile>* lines);

}  // namespace kernelwright::profile
