// Steady states: when the rounds of a loop repeat, one more is executed with slopes, and as many as it proves are then
// counted without being executed. The result is equal to the full replay.
#pragma once

#include <vector>

#include "daemon/cost/replay_frame.h"

namespace kernelwright::cost {

class SteadyState {
 public:
  explicit SteadyState(Machine* machine) : machine_(*machine) {}

  // To be called before each operation, with the state that it will read.
  void Follow(const ScalarOp& op, const std::vector<Value>& registers) {
    if (shadowed_ != nullptr && !shadowed_->shadow->Track(op, registers, machine_.memory)) AbandonShadow();
  }
  // A branch back to `header` was taken: may move the machine and the frame to a later round of the loop.
  void ReachHeader(Frame* frame, uint32_t header);
  // Attempts inside loops that have been left, with headers at or behind `bundle`, are over.
  void LeaveInnerLoops(Frame* frame, uint32_t bundle);

 private:
  std::vector<Value> CaptureCells() const;
  void AbandonShadow();
  void TakeFirstSnapshot(const Frame& frame, LoopWatch* watch);
  void FailAttempt(LoopWatch* watch);
  void RetryAttempt(Frame* frame, LoopWatch* watch);
  void StartShadow(Frame* frame, LoopWatch* watch);
  void SkipRounds(Frame* frame, LoopWatch* watch);

  Machine& machine_;
  LoopWatch* shadowed_ = nullptr;  // the loop whose round is being followed with slopes
};

}  // namespace kernelwright::cost
