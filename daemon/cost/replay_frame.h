// State of a replay that the interpreter and the search for steady states share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/cost/affine_shadow.h"
#include "daemon/cost/copy_queue.h"
#include "daemon/cost/period_finder.h"
#include "daemon/cost/replay.h"

namespace kernelwright::cost {

// A loop that is watched for its steady state, by its header.
struct LoopWatch {
  enum class Phase : uint8_t {
    kObserve,   // collecting signatures until they repeat
    kRestart,   // the period is known: take the first snapshot when the header is reached next
    kFirst,     // between the first and the second snapshot
    kShadow,    // executing one round with slopes
    kDisabled,  // nothing was proven often enough
  };
  uint32_t header = 0;
  Phase phase = Phase::kObserve;
  uint64_t hash = 0;  // of the blocks executed since the header was reached
  int64_t last_time = 0;
  PeriodFinder finder;
  size_t period = 0;
  size_t least_period = 1;
  size_t countdown = 0;
  int failures = 0;   // attempts that proved nothing
  int unsettled = 0;  // snapshots in a row whose timing had not settled
  int doublings = 0;  // of the period, because of buffers that alternate
  int weak = 0;       // proofs in a row that covered few rounds
  int broken = 0;     // rounds in a row that took a decision which does not repeat
  std::vector<Value> registers;
  std::vector<Value> cells;
  CopyState copies;
  // At the start of the shadowed round.
  std::unique_ptr<AffineShadow> shadow;
  int64_t start_time = 0;
  ProgramTrace trace;
  int64_t wait_ticks = 0;
  int64_t dma_bytes = 0;
  int64_t unmatched_waits = 0;
};

// One call of a program.
struct Frame {
  int index = 0;
  const ScalarProgram* program = nullptr;
  const Frame* caller = nullptr;
  const std::string* call_site = nullptr;  // name of the instruction that called it; null for the entry
  ProgramTrace* trace = nullptr;
  std::vector<Value> registers;
  std::vector<Value> arguments;
  uint32_t bundle = 0;          // the one that the time stands at
  int32_t pending_target = -1;  // bundle of a taken branch whose delay slots still run
  uint32_t pending_from = 0;
  uint32_t pending_end = 0;
  int64_t child_ticks = 0;
  int64_t wait_ticks = 0;
  int64_t first_product = -1;  // from the first product to behind the last one
  int64_t last_product = -1;
  int64_t dma_bytes = 0;  // with those of what it calls
  bool dma_since_branch = false;
  int depth = 0;
  std::vector<std::unique_ptr<LoopWatch>> watches;
  bool may_skip = true;  // until it calls another program
  std::optional<RoundRecord> round;
};

struct Machine {
  explicit Machine(ScalarMemory* scalar_memory) : memory(*scalar_memory) {}
  ScalarMemory& memory;
  CopyQueue copies;
  int64_t time = 0;
  ReplayResult result;
};

}  // namespace kernelwright::cost
