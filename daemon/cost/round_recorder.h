// Keeps what happened in a few rounds of each outermost loop, for a picture of a step.
#pragma once

#include <cstddef>
#include <cstdint>

#include "daemon/cost/replay_frame.h"

namespace kernelwright::cost {

class RoundRecorder {
 public:
  RoundRecorder(Machine* machine, size_t rounds) : machine_(*machine), rounds_(rounds) {}

  // A branch back to `header` was taken: the round before it ends, and one more begins if it is to be kept. The last
  // round of a loop is left by another way and never kept: it is not like the others.
  void CloseRound(Frame* frame, uint32_t header);
  void OpenRound(Frame* frame, uint32_t header);

  static void KeepBlock(Frame* frame, const RoundRecord::Block& block);
  static void KeepWait(Frame* frame, const RoundRecord::Wait& wait);
  static void KeepCopy(Frame* frame, const RoundRecord::Copy& copy);

 private:
  bool IsOutermost(const Frame& frame, uint32_t header) const;

  Machine& machine_;
  size_t rounds_;
};

}  // namespace kernelwright::cost
