// See round_recorder.h.
#include "daemon/cost/round_recorder.h"

#include <utility>

namespace kernelwright::cost {
namespace {

constexpr size_t kMaxRoundEvents = 20000;

template <typename Event>
void Keep(Frame* frame, std::vector<Event>* events, const Event& event) {
  if (events->size() < kMaxRoundEvents) {
    events->push_back(event);
  } else {
    frame->round->truncated = true;
  }
}

}  // namespace

bool RoundRecorder::IsOutermost(const Frame& frame, uint32_t header) const {
  return rounds_ > 0 && frame.program->source->bundle(header).depth == 1;
}

void RoundRecorder::CloseRound(Frame* frame, uint32_t header) {
  if (!frame->round || !IsOutermost(*frame, header)) return;
  frame->round->end = machine_.time;
  machine_.result.rounds[static_cast<size_t>(frame->index)].push_back(std::move(*frame->round));
  frame->round.reset();
}

void RoundRecorder::OpenRound(Frame* frame, uint32_t header) {
  if (!IsOutermost(*frame, header)) return;
  size_t kept = 0;
  for (const RoundRecord& round : machine_.result.rounds[static_cast<size_t>(frame->index)]) {
    kept += round.header == header ? 1 : 0;
  }
  if (kept >= rounds_) return;
  frame->round.emplace();
  frame->round->header = header;
  frame->round->start = machine_.time;
}

void RoundRecorder::KeepBlock(Frame* frame, const RoundRecord::Block& block) {
  if (frame->round) Keep(frame, &frame->round->blocks, block);
}

void RoundRecorder::KeepWait(Frame* frame, const RoundRecord::Wait& wait) {
  if (frame->round) Keep(frame, &frame->round->waits, wait);
}

void RoundRecorder::KeepCopy(Frame* frame, const RoundRecord::Copy& copy) {
  if (frame->round) Keep(frame, &frame->round->copies, copy);
}

}  // namespace kernelwright::cost
