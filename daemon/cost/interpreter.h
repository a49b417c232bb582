// The interpreter behind Replay. Its inner loop runs over pre-decoded operations; time, queue and counters are integers
// so that equal iterations are exactly equal.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/cost/replay.h"
#include "daemon/cost/replay_frame.h"
#include "daemon/cost/round_recorder.h"
#include "daemon/cost/steady_state.h"

namespace kernelwright::cost {

class Interpreter {
 public:
  Interpreter(const std::vector<ScalarProgram>& programs, const std::vector<std::vector<int>>& callees,
              ScalarMemory* memory, const ReplayTiming& timing, const ReplayOptions& options);

  ReplayResult Run(int entry);

 private:
  enum class Choice : uint8_t { kNo, kYes, kUnknown };

  // Each returns false when the replay has ended in a refusal.
  bool Call(int index, std::vector<Value> arguments, Frame* caller, const std::string* call_site);
  bool Execute(Frame* frame);
  bool Step(Frame* frame, const ScalarOp& op, uint32_t index);
  bool StepDma(Frame* frame, const ScalarOp& op, uint32_t index);
  bool StepWait(Frame* frame, const ScalarOp& op, uint32_t index);
  bool StepSignal(Frame* frame, const ScalarOp& op);
  bool StepSemaphoreWait(Frame* frame, const ScalarOp& op);
  bool StepCall(Frame* frame, const ScalarOp& op);
  bool StepBranch(Frame* frame, const ScalarOp& op, uint32_t index);
  bool Refuse(const Frame& frame, const ScalarOp& op, std::string reason);

  // How long a block takes without waits for copies.
  int64_t BlockTicks(const ScalarBlock& block) const;
  void FinishBlock(Frame* frame, const ScalarBlock& block);
  void KeepProducts(Frame* frame, const ScalarBlock& block) const;
  void ApplyFloors(Frame* frame, int64_t start, int64_t products);
  static void FinishIteration(Frame* frame);
  // Whether a predicated operation runs. In the run-time system's own code unknown memory counts as zero: its branches
  // only choose between tracing on and off.
  Choice Predicate(const Frame& frame, const ScalarOp& op) const {
    if (op.predicate < 0) return Choice::kYes;
    const Value& p = frame.registers[static_cast<size_t>(op.predicate)];
    if (p.known != Known::kValue && !frame.program->is_runtime) return Choice::kUnknown;
    return (p.bits != 0) != op.predicate_negated ? Choice::kYes : Choice::kNo;
  }
  Value Compute(const Frame& frame, const ScalarOp& op);
  Value Address(const Frame& frame, const ScalarOp& op) const;
  Value Load(const Frame& frame, const ScalarOp& op);
  void Store(const Frame& frame, const ScalarOp& op, bool maybe);
  // What a copy into scalar memory does to it.
  void FillScalarMemory(const Frame& frame, const ScalarOp& op, uint64_t bytes);
  // The operand of the call that a copy reads from, and where in it.
  const std::string* OperandBehind(const Frame& frame, const Value& source, uint64_t* offset) const;

  void AdvanceTo(Frame* frame, uint32_t bundle) {
    machine_.time += int64_t{bundle - frame->bundle} * kTicksPerCycle;
    frame->bundle = bundle;
  }
  static int64_t Ticks(double cycles) { return static_cast<int64_t>(std::llround(cycles * kTicksPerCycle)); }
  static int64_t TransferTicks(uint64_t bytes, double bytes_per_cycle) {
    return Ticks(static_cast<double>(bytes) / bytes_per_cycle);
  }

  const std::vector<ScalarProgram>& programs_;
  const std::vector<std::vector<int>>& callees_;
  const ReplayTiming timing_;
  const ReplayOptions options_;
  Machine machine_;
  SteadyState steady_;
  RoundRecorder recorder_;
};

// What a value of this kind is, for a reader: "data that is known only when the program runs (…)".
std::string WhatIsUnknown(Known known);

}  // namespace kernelwright::cost
