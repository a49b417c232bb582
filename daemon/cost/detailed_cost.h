// An estimate together with what it was made of: schedules, counts of what ran, allocations. What a profile is built
// from; the estimate itself is the same as EstimateFromDumps gives.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/compiler/allocations.h"
#include "daemon/compiler/bundles.h"
#include "daemon/cost/chips.h"
#include "daemon/cost/estimate.h"
#include "daemon/cost/program_estimate.h"
#include "daemon/cost/replay.h"
#include "daemon/cost/scalar_program.h"

namespace kernelwright::cost {

// One compiled unit: the top-level program, a kernel or a fusion.
struct UnitDetail {
  std::string name;
  std::unique_ptr<compiler::BundleProgram> source;
  ScalarProgram program;  // points into `source`
  ProgramTrace trace;     // all zero, with empty vectors, when nothing was replayed
  std::vector<RoundRecord> rounds;
  std::vector<compiler::Allocation> allocations;
  // Of its HLO instruction; empty and 0 when the program around the kernels does not tell.
  std::string opcode;
  std::string file;
  int line = 0;
};

struct DetailedCost {
  CostResult cost;
  // The top-level program first, then the units in the order in which they are reached. With a refusal: as far as
  // their schedules could be read.
  std::vector<UnitDetail> units;
  bool replayed = false;  // the traces hold what ran
  ReplayTiming timing;
};

// As EstimateFromDumps; additionally keeps up to `record_rounds` rounds of every outermost loop.
DetailedCost EstimateInDetail(Dumps dumps, const Chip& chip, const Work& work,
                              const std::map<std::string, std::string>& versions, size_t record_rounds,
                              const std::vector<KnownOperand>& known = {});

}  // namespace kernelwright::cost
