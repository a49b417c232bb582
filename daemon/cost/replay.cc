// The interpreter. Its inner loop runs over pre-decoded operations; time, queue and counters are integers so that equal
// iterations are exactly equal.
#include "daemon/cost/replay.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>
#include <utility>

#include "daemon/cost/affine_shadow.h"
#include "daemon/cost/period_finder.h"
#include "daemon/cost/scalar_eval.h"

namespace kernelwright::cost {
namespace {

constexpr int kMaxCallDepth = 16;
constexpr uint64_t kGranuleBytes = 32;
constexpr int kMaxFailures = 12;
constexpr int kMaxUnsettled = 2;
constexpr int kMaxDoublings = 2;
constexpr int kMaxBroken = 4;
constexpr int kMaxWeak = 3;
constexpr int64_t kWeakRounds = 8;
constexpr size_t kMaxRoundEvents = 20000;
constexpr int64_t kUnbounded = int64_t{1} << 39;  // a loop that nothing ends: not skipped, the limit stops it

struct Copy {
  int64_t done = 0;       // tick at which it has landed
  uint64_t granules = 0;  // still to be waited for
};

// Copies in flight on one flag, oldest first.
struct Flag {
  std::vector<Copy> copies;
  size_t head = 0;
};

// What of the timing matters for what comes: how far ahead of now the copies land. Equal states behave equally.
struct TimingState {
  int64_t queue_ahead = 0;
  std::vector<std::pair<uint64_t, std::vector<std::pair<int64_t, uint64_t>>>> flags;
  bool operator==(const TimingState&) const = default;
};

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
  uint64_t hash = 0;
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
  TimingState timing;
  // At the start of the shadowed round.
  std::unique_ptr<AffineShadow> shadow;
  int64_t start_time = 0;
  ProgramTrace trace;
  int64_t wait_ticks = 0;
  int64_t dma_bytes = 0;
  int64_t unmatched_waits = 0;
};

std::string WhatIsUnknown(Known known) {
  switch (known) {
    case Known::kPointer:
      return "an address that only the loader knows";
    case Known::kRuntime:
      return "scalar memory that the program does not write";
    default:
      return "data that is known only when the program runs (a scalar-prefetch or SMEM operand, or a computed value)";
  }
}

class Interpreter {
 public:
  Interpreter(const std::vector<ScalarProgram>& programs, const std::vector<std::vector<int>>& callees,
              ScalarMemory* memory, const ReplayTiming& timing, const ReplayOptions& options)
      : programs_(programs), callees_(callees), memory_(*memory), timing_(timing), options_(options) {
    result_.programs.resize(programs.size());
    result_.rounds.resize(programs.size());
    for (size_t i = 0; i < programs.size(); ++i) {
      result_.programs[i].block_counts.assign(programs[i].blocks.size(), 0);
      result_.programs[i].op_wait_ticks.assign(programs[i].ops.size(), 0);
      result_.programs[i].op_dma_bytes.assign(programs[i].ops.size(), 0);
    }
  }

  ReplayResult Run(int entry) {
    Call(entry, {}, 0);
    result_.ticks = time_;
    return std::move(result_);
  }

 private:
  struct Frame {
    int index = 0;
    const ScalarProgram* program = nullptr;
    ProgramTrace* trace = nullptr;
    std::vector<Value> registers;
    std::vector<Value> arguments;
    uint32_t bundle = 0;          // the one that time_ stands at
    int32_t pending_target = -1;  // bundle of a taken branch whose delay slots still run
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

  static std::string Text(const Frame& frame, const ScalarOp& op) {
    const auto& source = *frame.program->source;
    const auto& ops = source.ops();
    return op.source < ops.size() ? std::string(source.op_text(ops[op.source])) : std::string();
  }

  bool Refuse(const Frame& frame, const ScalarOp& op, std::string reason) {
    Refusal refusal;
    refusal.reason = "in " + frame.program->name + ", " + std::move(reason);
    refusal.instruction = Text(frame, op);
    result_.refusal = std::move(refusal);
    return false;
  }

  bool Call(int index, std::vector<Value> arguments, int depth, Frame* caller = nullptr) {
    const ScalarProgram& program = programs_[static_cast<size_t>(index)];
    Frame frame;
    frame.index = index;
    frame.program = &program;
    frame.trace = &result_.programs[static_cast<size_t>(index)];
    frame.registers = program.registers;
    frame.arguments = std::move(arguments);
    frame.depth = depth;
    const int64_t start = time_;
    const int64_t products_before = frame.trace->products;
    if (!Execute(&frame)) return false;
    ++frame.trace->calls;
    // Lower bounds that the schedule does not show.
    const int64_t products = frame.trace->products - products_before;
    auto mxu = static_cast<int64_t>(timing_.cycles_per_product * static_cast<double>(products) * kTicksPerCycle);
    // What comes before the first product (the first blocks arrive) and after the last one (the last block leaves)
    // does not overlap with the MXU: larger blocks pay for it with longer ends.
    if (mxu > 0 && frame.first_product >= 0) mxu += frame.first_product - start + time_ - frame.last_product;
    const int64_t memory = TransferTicks(static_cast<uint64_t>(frame.dma_bytes), timing_.bytes_per_cycle);
    const int64_t elapsed = time_ - start;
    if (const int64_t floor = std::max(mxu, memory); floor > elapsed && !program.is_top_level) {
      (mxu >= memory ? frame.trace->mxu_floor_ticks : frame.trace->memory_floor_ticks) += floor - elapsed;
      time_ = start + floor;
    }
    frame.trace->ticks += time_ - start - frame.child_ticks;
    frame.trace->wait_ticks += frame.wait_ticks;
    if (caller != nullptr) {
      caller->child_ticks += time_ - start;
      caller->dma_bytes += frame.dma_bytes;
    }
    return true;
  }

  bool Execute(Frame* frame) {
    const ScalarProgram& program = *frame->program;
    int32_t block = program.blocks.empty() ? -1 : 0;
    while (block >= 0) {
      const ScalarBlock& b = program.blocks[static_cast<size_t>(block)];
      ++frame->trace->block_counts[static_cast<size_t>(block)];
      frame->trace->products += b.products;
      result_.executed_operations += b.op_end - b.op_begin + 1;
      if (result_.executed_operations > options_.max_operations) {
        Refusal refusal;
        refusal.reason = "in " + program.name + ", the schedule runs for too many steps to be replayed";
        result_.refusal = std::move(refusal);
        return false;
      }
      frame->bundle = b.bundle_begin;
      if (frame->round) Keep(frame, &frame->round->blocks, {static_cast<uint32_t>(block), time_});
      for (const auto& watch : frame->watches) {
        watch->hash = (watch->hash ^ static_cast<uint64_t>(block)) * 0x9e3779b97f4a7c15ULL + 1;
      }
      for (uint32_t i = b.op_begin; i < b.op_end; ++i) {
        const ScalarOp& op = program.ops[i];
        if (shadowed_ != nullptr && !shadowed_->shadow->Track(op, frame->registers, memory_)) AbandonShadow();
        if (!Step(frame, op, i)) return false;
      }
      time_ += int64_t{b.bundle_end - frame->bundle} * kTicksPerCycle;
      if (b.products > 0) {
        // Waits of a block come before its products, so the bundles behind a product say when it was issued.
        const auto before_end = [&](uint32_t bundle) {
          return time_ - int64_t{b.bundle_end - bundle} * kTicksPerCycle;
        };
        if (frame->first_product < 0) frame->first_product = before_end(b.first_product);
        frame->last_product = before_end(b.last_product + 1);
      }
      block = program.block_at[b.bundle_end];
      if (frame->pending_target >= 0 && frame->pending_end == b.bundle_end) {
        const auto target = static_cast<uint32_t>(frame->pending_target);
        frame->pending_target = -1;
        block = program.block_at[target];
        if (target < b.bundle_end) {
          FinishIteration(frame);
          const bool outermost = options_.record_rounds > 0 && program.source->bundle(target).depth == 1;
          if (outermost) CloseRound(frame);
          if (options_.detect_steady_state && frame->may_skip && !program.is_runtime) ReachHeader(frame, target);
          if (outermost) OpenRound(frame, target);
        }
      }
    }
    LeaveInnerLoops(frame, 0);
    return true;
  }

  // ---- rounds that are kept

  template <typename Event>
  static void Keep(Frame* frame, std::vector<Event>* events, Event event) {
    if (events->size() < kMaxRoundEvents) {
      events->push_back(event);
    } else {
      frame->round->truncated = true;
    }
  }

  void OpenRound(Frame* frame, uint32_t header) const {
    size_t kept = 0;
    for (const RoundRecord& round : result_.rounds[static_cast<size_t>(frame->index)])
      kept += round.header == header ? 1 : 0;
    if (kept >= options_.record_rounds) return;
    frame->round.emplace();
    frame->round->header = header;
    frame->round->start = time_;
  }

  // The last round of a loop is left by another way and never closed: it is not like the others.
  void CloseRound(Frame* frame) {
    if (!frame->round) return;
    frame->round->end = time_;
    result_.rounds[static_cast<size_t>(frame->index)].push_back(std::move(*frame->round));
    frame->round.reset();
  }

  // ---- steady state

  TimingState CaptureTiming() const {
    TimingState state;
    state.queue_ahead = std::max<int64_t>(hbm_free_ - time_, 0);
    for (const auto& [address, flag] : flags_) {
      if (flag.head == flag.copies.size()) continue;
      auto& entry = state.flags.emplace_back(address, std::vector<std::pair<int64_t, uint64_t>>{});
      for (size_t i = flag.head; i < flag.copies.size(); ++i) {
        entry.second.emplace_back(std::max<int64_t>(flag.copies[i].done - time_, 0), flag.copies[i].granules);
      }
    }
    std::sort(state.flags.begin(), state.flags.end());
    return state;
  }

  std::vector<Value> CaptureCells() const {
    std::vector<Value> values;
    values.reserve(memory_.size());
    for (const ScalarMemory::Cell& cell : memory_.cells()) values.push_back(cell.value);
    return values;
  }

  void AbandonShadow() {
    shadowed_->shadow.reset();
    shadowed_ = nullptr;
  }

  // Attempts inside loops that have been left, with headers at or behind `bundle`, are over.
  void LeaveInnerLoops(Frame* frame, uint32_t bundle) {
    for (const auto& watch : frame->watches) {
      if (watch->header < bundle) continue;
      if (shadowed_ == watch.get()) AbandonShadow();
      watch->shadow.reset();
      if (watch->phase == LoopWatch::Phase::kFirst || watch->phase == LoopWatch::Phase::kShadow) {
        watch->phase = LoopWatch::Phase::kRestart;
      }
    }
  }

  void TakeFirstSnapshot(const Frame& frame, LoopWatch* watch) {
    watch->registers = frame.registers;
    watch->cells = CaptureCells();
    watch->timing = CaptureTiming();
    watch->countdown = watch->period;
    watch->phase = LoopWatch::Phase::kFirst;
  }

  // Another period is needed, or none will do.
  void FailAttempt(LoopWatch* watch) {
    watch->shadow.reset();
    watch->least_period = watch->period + 1;
    watch->unsettled = watch->doublings = watch->weak = watch->broken = 0;
    watch->finder.Restart(4 * watch->period);
    watch->phase = ++watch->failures > kMaxFailures ? LoopWatch::Phase::kDisabled : LoopWatch::Phase::kObserve;
  }

  // The round was special (an outer axis moved on): the next may not be.
  void RetryAttempt(Frame* frame, LoopWatch* watch) {
    watch->shadow.reset();
    if (++watch->broken > kMaxBroken) return FailAttempt(watch);
    TakeFirstSnapshot(*frame, watch);
  }

  void ReachHeader(Frame* frame, uint32_t header) {
    LoopWatch* watch = nullptr;
    for (const auto& candidate : frame->watches) {
      if (candidate->header == header) watch = candidate.get();
    }
    if (watch == nullptr) {
      watch = frame->watches.emplace_back(std::make_unique<LoopWatch>()).get();
      watch->header = header;
      watch->last_time = time_;
      return;
    }
    if (shadowed_ != nullptr && shadowed_ != watch && shadowed_->header < header) return;  // part of an outer round
    LeaveInnerLoops(frame, header + 1);
    const uint64_t signature = watch->hash ^ (static_cast<uint64_t>(time_ - watch->last_time) * 0xff51afd7ed558ccdULL);
    watch->hash = 0;
    watch->last_time = time_;
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

  void StartShadow(Frame* frame, LoopWatch* watch) {
    if (!(CaptureTiming() == watch->timing)) {
      // Not settled yet, or the copies in flight use buffers in turn: then twice the period is one.
      if (++watch->unsettled > kMaxUnsettled) {
        if (++watch->doublings > kMaxDoublings) return FailAttempt(watch);
        watch->period *= 2;
        watch->unsettled = 0;
      }
      return TakeFirstSnapshot(*frame, watch);
    }
    watch->shadow = std::make_unique<AffineShadow>(watch->registers, frame->registers, watch->cells, CaptureCells());
    watch->start_time = time_;
    watch->trace = *frame->trace;
    watch->wait_ticks = frame->wait_ticks;
    watch->dma_bytes = frame->dma_bytes;
    watch->unmatched_waits = result_.unmatched_waits;
    watch->countdown = watch->period;
    watch->phase = LoopWatch::Phase::kShadow;
    shadowed_ = watch;
  }

  void SkipRounds(Frame* frame, LoopWatch* watch) {
    const std::unique_ptr<AffineShadow> shadow = std::move(watch->shadow);
    shadowed_ = nullptr;
    if (!(CaptureTiming() == watch->timing) || !shadow->Proves(frame->registers, memory_))
      return RetryAttempt(frame, watch);
    // Round 0 was executed and the last proven one will be: it computes anew what Advance leaves stale.
    const int64_t rounds = shadow->last_round() - 1;
    if (rounds >= 1 && rounds < kUnbounded) {
      shadow->Advance(rounds, &frame->registers, &memory_);
      const int64_t ticks = (time_ - watch->start_time) * rounds;
      time_ += ticks;
      watch->last_time = time_;
      hbm_free_ += ticks;
      for (auto& [address, flag] : flags_) {
        for (Copy& copy : flag.copies) copy.done += ticks;
      }
      RepeatTrace(watch->trace, rounds, frame->trace);
      frame->wait_ticks += (frame->wait_ticks - watch->wait_ticks) * rounds;
      frame->dma_bytes += (frame->dma_bytes - watch->dma_bytes) * rounds;
      result_.unmatched_waits += (result_.unmatched_waits - watch->unmatched_waits) * rounds;
      result_.skipped_iterations += rounds * static_cast<int64_t>(watch->period);
      watch->failures = watch->broken = 0;
    }
    // A short period inside of a longer one is proven only up to the end of the longer one, again and again.
    watch->weak = rounds < kWeakRounds ? watch->weak + 1 : 0;
    if (watch->weak > kMaxWeak) return FailAttempt(watch);
    TakeFirstSnapshot(*frame, watch);
  }

  // Adds what one round added to the counters, `rounds` times.
  static void RepeatTrace(const ProgramTrace& before, int64_t rounds, ProgramTrace* now) {
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

  static void FinishIteration(Frame* frame) {
    ++frame->trace->loop_iterations;
    if (frame->dma_since_branch) ++frame->trace->dma_iterations;
    frame->dma_since_branch = false;
  }

  enum class Choice : uint8_t { kNo, kYes, kUnknown };

  // Whether a predicated operation runs. In the run-time system's own code unknown memory counts as zero: its branches
  // only choose between tracing on and off.
  Choice Predicate(const Frame& frame, const ScalarOp& op) const {
    if (op.predicate < 0) return Choice::kYes;
    const Value& p = frame.registers[static_cast<size_t>(op.predicate)];
    if (p.known != Known::kValue && !frame.program->is_runtime) return Choice::kUnknown;
    return (p.bits != 0) != op.predicate_negated ? Choice::kYes : Choice::kNo;
  }

  static Value Join(const Value& a, const Value& b) {
    if (a == b) return a;
    const Known known = Worse(a.known, b.known);
    return {a.bits, known == Known::kRuntime ? Known::kRuntime : Known::kNothing};
  }

  bool Step(Frame* frame, const ScalarOp& op, uint32_t index) {
    std::vector<Value>& r = frame->registers;
    switch (op.kind) {
      case OpKind::kDma:
        return StepDma(frame, op, index);
      case OpKind::kWait:
        return StepWait(frame, op, index);
      case OpKind::kCall:
        return StepCall(frame, op);
      case OpKind::kBranch:
      case OpKind::kUnsupportedBranch:
        return StepBranch(frame, op);
      case OpKind::kStore: {
        const Choice choice = Predicate(*frame, op);
        if (choice != Choice::kNo) Store(*frame, op, choice == Choice::kUnknown);
        return true;
      }
      default:
        break;
    }
    const Value value = Compute(*frame, op);
    const auto destination = static_cast<size_t>(op.destination);
    if (op.predicate < 0) {
      r[destination] = value;
      return true;
    }
    const Value old = op.otherwise >= 0 ? r[static_cast<size_t>(op.otherwise)] : r[destination];
    switch (Predicate(*frame, op)) {
      case Choice::kYes:
        r[destination] = value;
        break;
      case Choice::kNo:
        r[destination] = old;
        break;
      case Choice::kUnknown:
        r[destination] = Join(value, old);
        break;
    }
    return true;
  }

  Value Compute(const Frame& frame, const ScalarOp& op) {
    const std::vector<Value>& r = frame.registers;
    switch (op.kind) {
      case OpKind::kMove:
        return r[op.a];
      case OpKind::kLea:
        return AddAddress(AddAddress(r[op.a], r[op.b]), r[op.c]);
      case OpKind::kSelect: {
        const Value& p = r[op.a];
        if (p.known == Known::kValue || frame.program->is_runtime) return p.bits != 0 ? r[op.b] : r[op.c];
        Value joined = Join(r[op.b], r[op.c]);
        if (!(r[op.b] == r[op.c])) joined.known = Worse(joined.known, p.known);
        return joined;
      }
      case OpKind::kLoad:
        return Load(frame, op);
      case OpKind::kParameter: {
        const auto i = static_cast<size_t>(op.aux);
        if (i < frame.arguments.size()) return frame.arguments[i];
        return {memory_.AllocationBase(frame.index, "argument" + std::to_string(i)), Known::kPointer};
      }
      case OpKind::kUnknown:
        return {0, Known::kNothing};
      default:
        return EvaluateBinary(op, r[op.a], r[op.b]);
    }
  }

  Value Address(const Frame& frame, const ScalarOp& op) const {
    const std::vector<Value>& r = frame.registers;
    return AddAddress(AddAddress(r[op.a], r[op.b]), r[op.c]);
  }

  Value Load(const Frame& frame, const ScalarOp& op) {
    if (op.aux >= 0) return memory_.Read(static_cast<uint32_t>(op.aux));
    const Value address = Address(frame, op);
    if (address.known >= Known::kRuntime) return {0, address.known};
    return memory_.Read(memory_.CellAt(address.bits));
  }

  void Store(const Frame& frame, const ScalarOp& op, bool maybe) {
    const Value value = frame.registers[static_cast<size_t>(op.otherwise)];
    uint32_t cell = 0;
    if (op.aux >= 0) {
      cell = static_cast<uint32_t>(op.aux);
    } else {
      const Value address = Address(frame, op);
      if (address.known >= Known::kRuntime) {
        // The run-time system's tables lie outside of what kernels use.
        if (!frame.program->is_runtime) memory_.ForgetAll();
        return;
      }
      cell = memory_.CellAt(address.bits);
    }
    memory_.Write(cell, maybe ? Join(value, memory_.Read(cell)) : value);
  }

  void AdvanceTo(Frame* frame, uint32_t bundle) {
    time_ += int64_t{bundle - frame->bundle} * kTicksPerCycle;
    frame->bundle = bundle;
  }

  static int64_t TransferTicks(uint64_t bytes, double bytes_per_cycle) {
    return static_cast<int64_t>(std::llround(static_cast<double>(bytes) * kTicksPerCycle / bytes_per_cycle));
  }

  bool StepDma(Frame* frame, const ScalarOp& op, uint32_t index) {
    if (op.path == DmaPath::kHost) return true;
    const Choice choice = Predicate(*frame, op);
    if (choice == Choice::kNo) return true;
    const std::vector<Value>& r = frame->registers;
    if (choice == Choice::kUnknown) {
      const Known known = r[static_cast<size_t>(op.predicate)].known;
      return Refuse(*frame, op, "whether a copy starts depends on " + WhatIsUnknown(known));
    }
    if (op.path == DmaPath::kUnmodelled) {
      return Refuse(*frame, op, "a copy between chips or of an unknown kind is not modelled");
    }
    const Value size = r[op.a];
    if (size.known != Known::kValue) {
      return Refuse(*frame, op, "the size of a copy depends on " + WhatIsUnknown(size.known));
    }
    const Value flag = r[op.b];
    if (flag.known >= Known::kRuntime) {
      return Refuse(*frame, op, "the flag of a copy depends on " + WhatIsUnknown(flag.known));
    }
    AdvanceTo(frame, op.bundle);
    const uint64_t bytes = size.bits * kGranuleBytes;
    int64_t done = 0;
    if (op.path == DmaPath::kLocal) {
      done = time_ + TransferTicks(bytes, timing_.local_bytes_per_cycle) + Ticks(timing_.local_latency_cycles);
    } else {
      const uint64_t moved = op.path == DmaPath::kHbmToHbm ? 2 * bytes : bytes;
      hbm_free_ = std::max(hbm_free_, time_) + TransferTicks(moved, timing_.bytes_per_cycle);
      done = hbm_free_ + Ticks(timing_.dma_latency_cycles);
      frame->dma_bytes += static_cast<int64_t>(moved);
      frame->trace->dma_bytes += static_cast<int64_t>(moved);
      frame->trace->op_dma_bytes[index] += static_cast<int64_t>(moved);
      frame->dma_since_branch = true;
    }
    if (op.to_smem) {
      const Value destination = r[op.c];
      if (destination.known == Known::kPointer) {
        memory_.ForgetAllocation(destination.bits);
      } else {
        memory_.ForgetAll();
      }
    }
    if (frame->round) Keep(frame, &frame->round->copies, {index, time_, done, static_cast<int64_t>(bytes)});
    flags_[flag.bits].copies.push_back({done, size.bits});
    return true;
  }

  static int64_t Ticks(double cycles) { return static_cast<int64_t>(std::llround(cycles * kTicksPerCycle)); }

  bool StepWait(Frame* frame, const ScalarOp& op, uint32_t index) {
    if (frame->program->is_runtime) return true;
    const Choice choice = Predicate(*frame, op);
    if (choice == Choice::kNo) return true;
    const std::vector<Value>& r = frame->registers;
    if (choice == Choice::kUnknown) {
      const Known known = r[static_cast<size_t>(op.predicate)].known;
      return Refuse(*frame, op, "whether a copy is waited for depends on " + WhatIsUnknown(known));
    }
    const Value flag_value = r[op.a];
    const Value size = r[op.b];
    if (flag_value.known >= Known::kRuntime) {
      return Refuse(*frame, op, "the flag that is waited for depends on " + WhatIsUnknown(flag_value.known));
    }
    if (size.known != Known::kValue) {
      return Refuse(*frame, op, "the size that is waited for depends on " + WhatIsUnknown(size.known));
    }
    AdvanceTo(frame, op.bundle);
    uint64_t need = size.bits;
    int64_t until = time_;
    Flag& flag = flags_[flag_value.bits];
    while (need > 0 && flag.head < flag.copies.size()) {
      Copy& copy = flag.copies[flag.head];
      const uint64_t taken = std::min(need, copy.granules);
      until = std::max(until, copy.done);
      need -= taken;
      copy.granules -= taken;
      if (copy.granules == 0) ++flag.head;
    }
    if (need > 0) ++result_.unmatched_waits;
    if (flag.head == flag.copies.size()) {
      flag.copies.clear();
      flag.head = 0;
    } else if (flag.head > 64) {
      flag.copies.erase(flag.copies.begin(), flag.copies.begin() + static_cast<std::ptrdiff_t>(flag.head));
      flag.head = 0;
    }
    frame->wait_ticks += until - time_;
    frame->trace->op_wait_ticks[index] += until - time_;
    if (frame->round && until > time_) Keep(frame, &frame->round->waits, {index, time_, until - time_});
    time_ = until;
    return true;
  }

  bool StepCall(Frame* frame, const ScalarOp& op) {
    const auto name = static_cast<size_t>(op.aux);
    const int callee = callees_[static_cast<size_t>(frame->index)][name];
    if (callee < 0) {
      return Refuse(*frame, op, "the schedule of '" + frame->program->callees[name] + "' is missing from the dumps");
    }
    switch (Predicate(*frame, op)) {
      case Choice::kNo:
        return true;
      case Choice::kUnknown:
        return Refuse(*frame, op,
                      "whether a kernel runs depends on " +
                          WhatIsUnknown(frame->registers[static_cast<size_t>(op.predicate)].known));
      case Choice::kYes:
        break;
    }
    if (frame->depth >= kMaxCallDepth) return Refuse(*frame, op, "calls are nested too deeply");
    AdvanceTo(frame, op.bundle);
    LeaveInnerLoops(frame, 0);
    frame->may_skip = false;
    frame->watches.clear();
    std::vector<Value> arguments;
    for (const uint32_t reg : frame->program->call_arguments[op.a]) arguments.push_back(frame->registers[reg]);
    return Call(callee, std::move(arguments), frame->depth + 1, frame);
  }

  bool StepBranch(Frame* frame, const ScalarOp& op) {
    Choice choice = Predicate(*frame, op);
    if (choice == Choice::kUnknown) {
      const Known known = frame->registers[static_cast<size_t>(op.predicate)].known;
      // The top-level program skips ahead when the run-time system reports a failure.
      const bool status_check = frame->program->is_top_level && known == Known::kRuntime &&
                                op.kind == OpKind::kBranch && op.aux > static_cast<int32_t>(op.bundle);
      if (!status_check) return Refuse(*frame, op, "a branch depends on " + WhatIsUnknown(known));
      choice = Choice::kNo;
    }
    if (choice == Choice::kNo) return true;
    if (op.kind == OpKind::kUnsupportedBranch) {
      return Refuse(*frame, op, "a branch of an unknown form, or to a place that the dump does not show");
    }
    if (frame->pending_target >= 0) return Refuse(*frame, op, "a branch lies in the delay slots of another one");
    frame->pending_target = op.aux;
    frame->pending_end = std::min(op.bundle + 5, static_cast<uint32_t>(frame->program->source->bundle_count()));
    return true;
  }

  const std::vector<ScalarProgram>& programs_;
  const std::vector<std::vector<int>>& callees_;
  ScalarMemory& memory_;
  const ReplayTiming timing_;
  const ReplayOptions options_;
  ReplayResult result_;
  int64_t time_ = 0;
  int64_t hbm_free_ = 0;
  std::unordered_map<uint64_t, Flag> flags_;
  LoopWatch* shadowed_ = nullptr;  // the loop whose round is being followed with slopes
};

}  // namespace

ReplayResult Replay(const std::vector<ScalarProgram>& programs, const std::vector<std::vector<int>>& callees, int entry,
                    ScalarMemory* memory, const ReplayTiming& timing, const ReplayOptions& options) {
  return Interpreter(programs, callees, memory, timing, options).Run(entry);
}

}  // namespace kernelwright::cost
