// Replay of the scalar unit over a program's bundles: one bundle is one cycle, copies go through one serial HBM queue
// and a wait stalls until its copy has landed. The result is exact for the model: integer time, every executed block
// counted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/cost/estimate.h"
#include "daemon/cost/scalar_program.h"

namespace kernelwright::cost {

// Ticks of the replay's clock per cycle: fractions of a cycle that copies take stay exact integers.
inline constexpr int64_t kTicksPerCycle = 1024;

// What the replay knows of a chip.
struct ReplayTiming {
  double bytes_per_cycle = 0;  // effective HBM bandwidth
  double dma_latency_cycles = 0;
  double local_bytes_per_cycle = 0;  // copies within the chip
  double local_latency_cycles = 0;
  double cycles_per_product = 0;  // of a packed vmatmul; 0: no lower bound by products
  // Where the hardware, not the schedule, waits for its units, a block takes as long as its busiest unit. With all
  // units of a kind at work, 0: the schedule shows it.
  double block_cycles_per_product = 0;
  double cycles_per_transpose = 0;
  double cycles_per_lane_move = 0;
  double cycles_per_empty_bundle = 1;
  double cycles_per_strided_load = 0;  // beyond its bundle
  double kernel_overhead_cycles = 0;   // before each kernel that the top-level program calls
  double program_overhead_cycles = 0;  // around the top-level program
};

// What is known of the operands of calls, as the bytes lie in the operand's memory. Copies of them into scalar memory
// then bring values instead of data.
class OperandContents {
 public:
  OperandContents() = default;
  OperandContents(const OperandContents&) = delete;
  OperandContents& operator=(const OperandContents&) = delete;
  virtual ~OperandContents() = default;
  // Operand `index` of the call that the program around names `call_site`; an empty call site is the program itself,
  // with its parameters. Null when it is not known. The result stays valid as long as this object.
  virtual const std::string* Find(std::string_view call_site, size_t index) const = 0;
};

struct ReplayOptions {
  bool detect_steady_state = true;            // off: every iteration is executed (the slow reference)
  uint64_t max_operations = 400000000;        // executed scalar operations before the replay gives up
  size_t record_rounds = 0;                   // rounds of each outermost loop to keep, for a picture of a step
  const OperandContents* contents = nullptr;  // null: nothing is known of any operand
};

// What happened in one executed round of a loop, in order of time. Times are ticks from the start of the replay.
struct RoundRecord {
  struct Block {
    uint32_t block = 0;  // index into ScalarProgram::blocks
    int64_t start = 0;   // of its first bundle; waits inside of the block push what follows back
  };
  struct Wait {
    uint32_t op = 0;  // index into ScalarProgram::ops
    int64_t start = 0;
    int64_t ticks = 0;
  };
  struct Copy {
    uint32_t op = 0;
    int64_t start = 0;  // when it was issued
    int64_t done = 0;   // when it has landed, which may be in a later round
    int64_t bytes = 0;
  };
  uint32_t header = 0;  // bundle that the loop jumps back to
  int64_t start = 0;
  int64_t end = 0;
  bool truncated = false;  // more happened than is kept
  std::vector<Block> blocks;
  std::vector<Wait> waits;
  std::vector<Copy> copies;
};

// Totals of one program over all its calls; cycles of what it calls are not in it.
struct ProgramTrace {
  int64_t calls = 0;
  int64_t ticks = 0;  // bundles, waits and what the floors added
  int64_t wait_ticks = 0;
  int64_t mxu_floor_ticks = 0;     // added because products cannot be faster
  int64_t memory_floor_ticks = 0;  // added because the bytes cannot be moved faster
  int64_t overhead_ticks = 0;      // what starting it costs beyond its own instructions
  int64_t dma_bytes = 0;           // to and from HBM
  int64_t products = 0;            // halves of a packed vmatmul
  int64_t dma_iterations = 0;      // loop iterations in which a copy was started
  int64_t loop_iterations = 0;     // of all loops
  std::vector<int64_t> block_counts;
  std::vector<int64_t> block_ticks;    // of one execution, waits for copies left out
  std::vector<int64_t> op_wait_ticks;  // by scalar operation
  std::vector<int64_t> op_dma_bytes;   // by scalar operation
};

struct ReplayResult {
  std::optional<Refusal> refusal;  // set: the rest is not meaningful
  int64_t ticks = 0;
  std::vector<ProgramTrace> programs;  // same order as the programs
  // By program: executed rounds of its outermost loops, from their second on, at most record_rounds of each loop.
  std::vector<std::vector<RoundRecord>> rounds;
  int64_t unmatched_waits = 0;     // waits for copies that the replay did not see start
  int64_t skipped_iterations = 0;  // covered by the steady state instead of being executed
  uint64_t executed_operations = 0;
};

// Programs by index, the top-level one at `entry`. `callees[i][j]` is the program that program i's callee j names, or
// -1. `memory` is the memory that the programs were decoded with; it is consumed.
ReplayResult Replay(const std::vector<ScalarProgram>& programs, const std::vector<std::vector<int>>& callees, int entry,
                    ScalarMemory* memory, const ReplayTiming& timing, const ReplayOptions& options);

}  // namespace kernelwright::cost
