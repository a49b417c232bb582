// The proof is AffineShadow's; here is the bookkeeping around it: when to try, what a round is, what to count.
#include "daemon/cost/steady_state.h"

#include <algorithm>
#include <utility>

namespace kernelwright::cost {
namespace {

constexpr int kMaxFailures = 12;
constexpr int kMaxUnsettled = 2;
constexpr int kMaxDoublings = 2;
constexpr int kMaxBroken = 4;
constexpr int kMaxWeak = 3;
constexpr int64_t kWeakRounds = 8;
constexpr int64_t kUnbounded = int64_t{1} << 39;  // a loop that nothing ends: not skipped, the limit stops it

// Adds what one round added to the counters, `rounds` times.
void RepeatTrace(const ProgramTrace& before, int64_t rounds, ProgramTrace* now) {
  const auto repeat = [rounds](int64_t old, int64_t* value) { *value += (*value - old) * rounds; };
  repeat(before.dma_bytes, &now->dma_bytes);
  repeat(before.products, &now->products);
  repeat(before.dma_iterations, &now->dma_iterations);
  repeat(before.loop_iterations, &now->loop_iterations);
  const auto all = [&](const std::vector<int64_t>& old, std::vector<int64_t>* values) {
    for (size_t i = 0; i < values->size(); ++i) repeat(old[i], &(*values)[i]);
  };
  all(before.block_counts, &now->block_counts);
  all(before.op_wait_ticks, &now->op_wait_ticks);
  all(before.op_dma_bytes, &now->op_dma_bytes);
}

bool SameFlags(const CopyState& a, const CopyState& b) {
  return std::equal(a.flags.begin(), a.flags.end(), b.flags.begin(), b.flags.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

}  // namespace

std::vector<Value> SteadyState::CaptureCells() const {
  std::vector<Value> values;
  values.reserve(machine_.memory.size());
  for (const ScalarMemory::Cell& cell : machine_.memory.cells()) values.push_back(cell.value);
  return values;
}

void SteadyState::AbandonShadow() {
  shadowed_->shadow.reset();
  shadowed_ = nullptr;
}

// Attempts inside loops that have been left, with headers at or behind `bundle`, are over.
void SteadyState::LeaveInnerLoops(Frame* frame, uint32_t bundle) {
  for (const auto& watch : frame->watches) {
    if (watch->header < bundle) continue;
    if (shadowed_ == watch.get()) AbandonShadow();
    watch->shadow.reset();
    if (watch->phase == LoopWatch::Phase::kFirst || watch->phase == LoopWatch::Phase::kShadow) {
      watch->phase = LoopWatch::Phase::kRestart;
    }
  }
}

void SteadyState::TakeFirstSnapshot(const Frame& frame, LoopWatch* watch) {
  watch->registers = frame.registers;
  watch->cells = CaptureCells();
  watch->copies = machine_.copies.Capture(machine_.time);
  watch->countdown = watch->period;
  watch->phase = LoopWatch::Phase::kFirst;
}

// Another period is needed, or none will do.
void SteadyState::FailAttempt(LoopWatch* watch) {
  watch->shadow.reset();
  watch->least_period = watch->period + 1;
  watch->unsettled = watch->doublings = watch->weak = watch->broken = 0;
  watch->finder.Restart(4 * watch->period);
  watch->phase = ++watch->failures > kMaxFailures ? LoopWatch::Phase::kDisabled : LoopWatch::Phase::kObserve;
}

// The round was special (an outer axis moved on): the next may not be.
void SteadyState::RetryAttempt(Frame* frame, LoopWatch* watch) {
  watch->shadow.reset();
  if (++watch->broken > kMaxBroken) return FailAttempt(watch);
  TakeFirstSnapshot(*frame, watch);
}

void SteadyState::ReachHeader(Frame* frame, uint32_t header) {
  LoopWatch* watch = nullptr;
  for (const auto& candidate : frame->watches) {
    if (candidate->header == header) watch = candidate.get();
  }
  if (watch == nullptr) {
    watch = frame->watches.emplace_back(std::make_unique<LoopWatch>()).get();
    watch->header = header;
    watch->last_time = machine_.time;
    return;
  }
  if (shadowed_ != nullptr && shadowed_ != watch && shadowed_->header < header) return;  // part of an outer round
  LeaveInnerLoops(frame, header + 1);
  const uint64_t signature =
      watch->hash ^ (static_cast<uint64_t>(machine_.time - watch->last_time) * 0xff51afd7ed558ccdULL);
  watch->hash = 0;
  watch->last_time = machine_.time;
  switch (watch->phase) {
    case LoopWatch::Phase::kDisabled:
      return;
    case LoopWatch::Phase::kObserve: {
      const auto period = watch->finder.Add(signature, watch->least_period);
      if (!period) return;
      watch->period = *period;
      TakeFirstSnapshot(*frame, watch);
      return;
    }
    case LoopWatch::Phase::kRestart:
      TakeFirstSnapshot(*frame, watch);
      return;
    case LoopWatch::Phase::kFirst:
      if (--watch->countdown == 0) StartShadow(frame, watch);
      return;
    case LoopWatch::Phase::kShadow:
      if (watch->shadow == nullptr) return RetryAttempt(frame, watch);
      if (--watch->countdown == 0) SkipRounds(frame, watch);
      return;
  }
}

void SteadyState::StartShadow(Frame* frame, LoopWatch* watch) {
  if (const CopyState now = machine_.copies.Capture(machine_.time); !(now == watch->copies)) {
    // Other flags in flight: buffers are used in turn, and twice the period is one. Else it may not have settled yet.
    if (!SameFlags(now, watch->copies) || ++watch->unsettled > kMaxUnsettled) {
      if (++watch->doublings > kMaxDoublings) return FailAttempt(watch);
      watch->period *= 2;
      watch->unsettled = 0;
    }
    return TakeFirstSnapshot(*frame, watch);
  }
  watch->shadow = std::make_unique<AffineShadow>(watch->registers, frame->registers, watch->cells, CaptureCells());
  watch->start_time = machine_.time;
  watch->trace = *frame->trace;
  watch->wait_ticks = frame->wait_ticks;
  watch->dma_bytes = frame->dma_bytes;
  watch->unmatched_waits = machine_.result.unmatched_waits;
  watch->countdown = watch->period;
  watch->phase = LoopWatch::Phase::kShadow;
  shadowed_ = watch;
}

void SteadyState::SkipRounds(Frame* frame, LoopWatch* watch) {
  const std::unique_ptr<AffineShadow> shadow = std::move(watch->shadow);
  shadowed_ = nullptr;
  if (!(machine_.copies.Capture(machine_.time) == watch->copies) || !shadow->Proves(frame->registers, machine_.memory))
    return RetryAttempt(frame, watch);
  // Round 0 was executed and the last proven one will be: it computes anew what Advance leaves stale.
  const int64_t rounds = shadow->last_round() - 1;
  if (rounds >= 1 && rounds < kUnbounded) {
    shadow->Advance(rounds, &frame->registers, &machine_.memory);
    const int64_t ticks = (machine_.time - watch->start_time) * rounds;
    machine_.time += ticks;
    watch->last_time = machine_.time;
    machine_.copies.Shift(ticks);
    RepeatTrace(watch->trace, rounds, frame->trace);
    frame->wait_ticks += (frame->wait_ticks - watch->wait_ticks) * rounds;
    frame->dma_bytes += (frame->dma_bytes - watch->dma_bytes) * rounds;
    machine_.result.unmatched_waits += (machine_.result.unmatched_waits - watch->unmatched_waits) * rounds;
    machine_.result.skipped_iterations += rounds * static_cast<int64_t>(watch->period);
    watch->failures = watch->broken = 0;
  }
  // A short period inside of a longer one is proven only up to the end of the longer one, again and again.
  watch->weak = rounds < kWeakRounds ? watch->weak + 1 : 0;
  if (watch->weak > kMaxWeak) return FailAttempt(watch);
  TakeFirstSnapshot(*frame, watch);
}

}  // namespace kernelwright::cost
