// Control flow, arithmetic and calls; copies are in interpreter_copies.cc.
#include "daemon/cost/interpreter.h"

#include <algorithm>
#include <utility>

#include "daemon/cost/scalar_eval.h"

namespace kernelwright::cost {
namespace {

constexpr int kMaxCallDepth = 16;

std::string Text(const Frame& frame, const ScalarOp& op) {
  const auto& source = *frame.program->source;
  const auto& ops = source.ops();
  return op.source < ops.size() ? std::string(source.op_text(ops[op.source])) : std::string();
}

Value Join(const Value& a, const Value& b) {
  if (a == b) return a;
  const Known known = Worse(a.known, b.known);
  return {a.bits, known == Known::kRuntime ? Known::kRuntime : Known::kNothing};
}

}  // namespace

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

Interpreter::Interpreter(const std::vector<ScalarProgram>& programs, const std::vector<std::vector<int>>& callees,
                         ScalarMemory* memory, const ReplayTiming& timing, const ReplayOptions& options)
    : programs_(programs),
      callees_(callees),
      timing_(timing),
      options_(options),
      machine_(memory),
      steady_(&machine_),
      recorder_(&machine_, options.record_rounds) {
  machine_.result.programs.resize(programs.size());
  machine_.result.rounds.resize(programs.size());
  for (size_t i = 0; i < programs.size(); ++i) {
    machine_.result.programs[i].block_counts.assign(programs[i].blocks.size(), 0);
    for (const ScalarBlock& block : programs[i].blocks) {
      machine_.result.programs[i].block_ticks.push_back(BlockTicks(block));
    }
    machine_.result.programs[i].op_wait_ticks.assign(programs[i].ops.size(), 0);
    machine_.result.programs[i].op_dma_bytes.assign(programs[i].ops.size(), 0);
  }
}

ReplayResult Interpreter::Run(int entry) {
  Call(entry, {}, nullptr, nullptr);
  machine_.result.ticks = machine_.time;
  return std::move(machine_.result);
}

bool Interpreter::Refuse(const Frame& frame, const ScalarOp& op, std::string reason) {
  Refusal refusal;
  refusal.reason = "in " + frame.program->name + ", " + std::move(reason);
  refusal.instruction = Text(frame, op);
  machine_.result.refusal = std::move(refusal);
  return false;
}

bool Interpreter::Call(int index, std::vector<Value> arguments, Frame* caller, const std::string* call_site) {
  const ScalarProgram& program = programs_[static_cast<size_t>(index)];
  Frame frame;
  frame.index = index;
  frame.program = &program;
  frame.caller = caller;
  frame.call_site = call_site;
  frame.trace = &machine_.result.programs[static_cast<size_t>(index)];
  frame.registers = program.registers;
  frame.arguments = std::move(arguments);
  frame.depth = caller == nullptr ? 0 : caller->depth + 1;
  const int64_t start = machine_.time;
  const int64_t products_before = frame.trace->products;
  if (!Execute(&frame)) return false;
  ++frame.trace->calls;
  if (!program.is_top_level) ApplyFloors(&frame, start, frame.trace->products - products_before);
  // What starting a program or a kernel costs beyond its own instructions; copies in flight go on meanwhile.
  if (!program.is_runtime && frame.depth <= 1) {
    const double cycles = program.is_top_level ? timing_.program_overhead_cycles : timing_.kernel_overhead_cycles;
    frame.trace->overhead_ticks += Ticks(cycles);
    machine_.time += Ticks(cycles);
  }
  frame.trace->ticks += machine_.time - start - frame.child_ticks;
  frame.trace->wait_ticks += frame.wait_ticks;
  if (caller != nullptr) {
    caller->child_ticks += machine_.time - start;
    caller->dma_bytes += frame.dma_bytes;
  }
  return true;
}

// Lower bounds that the schedule does not show.
void Interpreter::ApplyFloors(Frame* frame, int64_t start, int64_t products) {
  int64_t mxu = Ticks(timing_.cycles_per_product * static_cast<double>(products) / 2);
  // What comes before the first product (the first blocks arrive) and after the last one (the last block leaves)
  // does not overlap with the MXU: larger blocks pay for it with longer ends.
  if (mxu > 0 && frame->first_product >= 0) {
    mxu += frame->first_product - start + machine_.time - frame->last_product;
  }
  const int64_t memory = TransferTicks(static_cast<uint64_t>(frame->dma_bytes), timing_.bytes_per_cycle);
  const int64_t elapsed = machine_.time - start;
  if (const int64_t floor = std::max(mxu, memory); floor > elapsed) {
    (mxu >= memory ? frame->trace->mxu_floor_ticks : frame->trace->memory_floor_ticks) += floor - elapsed;
    machine_.time = start + floor;
  }
}

void Interpreter::FinishBlock(Frame* frame, const ScalarBlock& block) {
  machine_.time += int64_t{block.bundle_end - frame->bundle} * kTicksPerCycle;
  const int64_t stall = frame->trace->block_ticks[static_cast<size_t>(&block - frame->program->blocks.data())] -
                        int64_t{block.bundle_end - block.bundle_begin} * kTicksPerCycle;
  KeepProducts(frame, block);
  machine_.time += stall;
}

void Interpreter::KeepProducts(Frame* frame, const ScalarBlock& block) const {
  if (block.products == 0) return;
  // Waits of a block come before its products, so the bundles behind a product say when it was issued.
  const auto before_end = [&](uint32_t bundle) {
    return machine_.time - int64_t{block.bundle_end - bundle} * kTicksPerCycle;
  };
  if (frame->first_product < 0) frame->first_product = before_end(block.first_product);
  frame->last_product = before_end(block.last_product + 1);
}

void Interpreter::FinishIteration(Frame* frame) {
  ++frame->trace->loop_iterations;
  if (frame->dma_since_branch) ++frame->trace->dma_iterations;
  frame->dma_since_branch = false;
}

Value Interpreter::Compute(const Frame& frame, const ScalarOp& op) {
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
      return i < frame.arguments.size() ? frame.arguments[i] : r[op.a];
    }
    case OpKind::kUnknown:
      return {0, Known::kNothing};
    default: {
      const Value& a = r[op.a];
      const Value& b = r[op.b];
      if (a.known == Known::kValue && b.known == Known::kValue) {
        return {Low32(Arithmetic(op, a.bits, b.bits)), Known::kValue};
      }
      return EvaluateBinary(op, a, b);
    }
  }
}

bool Interpreter::Step(Frame* frame, const ScalarOp& op, uint32_t index) {
  std::vector<Value>& r = frame->registers;
  switch (op.kind) {
    case OpKind::kDma:
      return StepDma(frame, op, index);
    case OpKind::kWait:
      return StepWait(frame, op, index);
    case OpKind::kSignal:
      return StepSignal(frame, op);
    case OpKind::kSemaphoreWait:
      return StepSemaphoreWait(frame, op);
    case OpKind::kCall:
      return StepCall(frame, op);
    case OpKind::kBranch:
    case OpKind::kUnsupportedBranch:
      return StepBranch(frame, op, index);
    case OpKind::kStore: {
      const Choice choice = Predicate(*frame, op);
      if (choice != Choice::kNo) Store(*frame, op, choice == Choice::kUnknown);
      return true;
    }
    default:
      break;
  }
  if (op.destination < 0) return true;  // its result goes nowhere
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

Value Interpreter::Address(const Frame& frame, const ScalarOp& op) const {
  const std::vector<Value>& r = frame.registers;
  return AddAddress(AddAddress(r[op.a], r[op.b]), r[op.c]);
}

Value Interpreter::Load(const Frame& frame, const ScalarOp& op) {
  if (op.aux >= 0) return machine_.memory.Read(static_cast<uint32_t>(op.aux));
  const Value address = Address(frame, op);
  if (!IsPlace(address)) return {0, std::max(address.known, Known::kRuntime)};
  return machine_.memory.Read(machine_.memory.CellAt(address.bits));
}

void Interpreter::Store(const Frame& frame, const ScalarOp& op, bool maybe) {
  const Value value = frame.registers[static_cast<size_t>(op.otherwise)];
  uint32_t cell = 0;
  if (op.aux >= 0) {
    cell = static_cast<uint32_t>(op.aux);
  } else {
    const Value address = Address(frame, op);
    if (!IsPlace(address)) {
      // The run-time system's tables lie outside of what kernels use.
      if (!frame.program->is_runtime) machine_.memory.ForgetAll();
      return;
    }
    cell = machine_.memory.CellAt(address.bits);
  }
  machine_.memory.Write(cell, maybe ? Join(value, machine_.memory.Read(cell)) : value);
}

bool Interpreter::Execute(Frame* frame) {
  const ScalarProgram& program = *frame->program;
  int32_t block = program.blocks.empty() ? -1 : 0;
  while (block >= 0) {
    const ScalarBlock& b = program.blocks[static_cast<size_t>(block)];
    ++frame->trace->block_counts[static_cast<size_t>(block)];
    frame->trace->products += b.products;
    machine_.result.executed_operations += b.op_end - b.op_begin + 1;
    if (machine_.result.executed_operations > options_.max_operations) {
      Refusal refusal;
      refusal.reason = "in " + program.name + ", the schedule runs for too many steps to be replayed";
      machine_.result.refusal = std::move(refusal);
      return false;
    }
    frame->bundle = b.bundle_begin;
    RoundRecorder::KeepBlock(frame, {static_cast<uint32_t>(block), machine_.time});
    for (const auto& watch : frame->watches) {
      watch->hash = (watch->hash ^ static_cast<uint64_t>(block)) * 0x9e3779b97f4a7c15ULL + 1;
    }
    for (uint32_t i = b.op_begin; i < b.op_end; ++i) {
      const ScalarOp& op = program.ops[i];
      steady_.Follow(op, frame->registers);
      if (!Step(frame, op, i)) return false;
    }
    FinishBlock(frame, b);
    block = program.block_at[b.bundle_end];
    if (frame->pending_target >= 0 && frame->pending_end == b.bundle_end) {
      const auto target = static_cast<uint32_t>(frame->pending_target);
      frame->pending_target = -1;
      block = program.block_at[target];
      if (target <= frame->pending_from) {
        FinishIteration(frame);
        recorder_.CloseRound(frame, target);
        if (options_.detect_steady_state && frame->may_skip && !program.is_runtime) {
          steady_.ReachHeader(frame, target);
        }
        recorder_.OpenRound(frame, target);
      }
    }
  }
  steady_.LeaveInnerLoops(frame, 0);
  return true;
}

int64_t Interpreter::BlockTicks(const ScalarBlock& block) const {
  const double bundles = block.bundle_end - block.bundle_begin + (timing_.cycles_per_empty_bundle - 1) * block.empty +
                         timing_.cycles_per_strided_load * block.strided_loads;
  const double products = timing_.block_cycles_per_product * block.products / 2;
  const double lanes =
      timing_.cycles_per_transpose * block.transposes + timing_.cycles_per_lane_move * block.lane_moves;
  return Ticks(std::max({bundles, products, lanes}));
}

bool Interpreter::StepCall(Frame* frame, const ScalarOp& op) {
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
  steady_.LeaveInnerLoops(frame, 0);
  frame->may_skip = false;
  frame->watches.clear();
  std::vector<Value> arguments;
  for (const uint32_t reg : frame->program->call_arguments[op.a]) arguments.push_back(frame->registers[reg]);
  return Call(callee, std::move(arguments), frame, &frame->program->callees[name]);
}

bool Interpreter::StepBranch(Frame* frame, const ScalarOp& op, uint32_t index) {
  // In the delay slots of a taken branch another one has no effect: compilers put branches there whose predicate was
  // not even computed on this path.
  if (frame->pending_target >= 0) return true;
  if (op.kind == OpKind::kBranch && op.b > 0) {
    const int64_t stall = int64_t{op.b} * kTicksPerCycle;
    frame->wait_ticks += stall;
    frame->trace->op_wait_ticks[index] += stall;
    machine_.time += stall;
  }
  Choice choice = Predicate(*frame, op);
  if (choice == Choice::kUnknown) {
    const Known known = frame->registers[static_cast<size_t>(op.predicate)].known;
    // The top-level program skips ahead when the run-time system reports a failure.
    const bool status_check = frame->program->is_top_level && known == Known::kRuntime && op.kind == OpKind::kBranch &&
                              op.aux > static_cast<int32_t>(op.bundle);
    if (!status_check) return Refuse(*frame, op, "a branch depends on " + WhatIsUnknown(known));
    choice = Choice::kNo;
  }
  if (choice == Choice::kNo) return true;
  if (op.kind == OpKind::kUnsupportedBranch) {
    return Refuse(*frame, op, "a branch of an unknown form, or to a place that the dump does not show");
  }
  frame->pending_target = op.aux;
  frame->pending_from = op.bundle;
  frame->pending_end = op.c;
  return true;
}

ReplayResult Replay(const std::vector<ScalarProgram>& programs, const std::vector<std::vector<int>>& callees, int entry,
                    ScalarMemory* memory, const ReplayTiming& timing, const ReplayOptions& options) {
  return Interpreter(programs, callees, memory, timing, options).Run(entry);
}

}  // namespace kernelwright::cost
