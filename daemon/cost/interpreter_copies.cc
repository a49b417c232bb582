// Copies and waits, and what a copy into scalar memory makes known or unknown.
#include <algorithm>

#include "daemon/cost/interpreter.h"
#include "daemon/cost/scalar_eval.h"

namespace kernelwright::cost {
namespace {
constexpr uint64_t kGranuleBytes = 32;
constexpr uint64_t kWordBytes = 4;  // what scalar memory is addressed in
}  // namespace

bool Interpreter::StepDma(Frame* frame, const ScalarOp& op, uint32_t index) {
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
  if (!IsPlace(flag)) {
    return Refuse(*frame, op, "the flag of a copy depends on " + WhatIsUnknown(flag.known));
  }
  AdvanceTo(frame, op.bundle);
  const uint64_t bytes = size.bits * kGranuleBytes;
  int64_t done = 0;
  if (op.path == DmaPath::kLocal) {
    done = machine_.time + TransferTicks(bytes, timing_.local_bytes_per_cycle) + Ticks(timing_.local_latency_cycles);
  } else {
    const uint64_t moved = op.path == DmaPath::kHbmToHbm ? 2 * bytes : bytes;
    done = machine_.copies.Transfer(machine_.time, TransferTicks(moved, timing_.bytes_per_cycle)) +
           Ticks(timing_.dma_latency_cycles);
    frame->dma_bytes += static_cast<int64_t>(moved);
    frame->trace->dma_bytes += static_cast<int64_t>(moved);
    frame->trace->op_dma_bytes[index] += static_cast<int64_t>(moved);
    frame->dma_since_branch = true;
  }
  if (op.to_smem) FillScalarMemory(*frame, op, bytes);
  RoundRecorder::KeepCopy(frame, {index, machine_.time, done, static_cast<int64_t>(bytes)});
  machine_.copies.Start(flag.bits, done, size.bits);
  return true;
}

bool Interpreter::StepWait(Frame* frame, const ScalarOp& op, uint32_t index) {
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
  if (!IsPlace(flag_value)) {
    return Refuse(*frame, op, "the flag that is waited for depends on " + WhatIsUnknown(flag_value.known));
  }
  if (size.known != Known::kValue) {
    return Refuse(*frame, op, "the size that is waited for depends on " + WhatIsUnknown(size.known));
  }
  AdvanceTo(frame, op.bundle);
  bool matched = true;
  const int64_t until = machine_.copies.Wait(flag_value.bits, size.bits, machine_.time, &matched);
  if (!matched) ++machine_.result.unmatched_waits;
  frame->wait_ticks += until - machine_.time;
  frame->trace->op_wait_ticks[index] += until - machine_.time;
  if (until > machine_.time) RoundRecorder::KeepWait(frame, {index, machine_.time, until - machine_.time});
  machine_.time = until;
  return true;
}

// Copies within the chip that are done by loads and stores raise their flag this way, and so does a kernel that
// synchronises with itself.
bool Interpreter::StepSignal(Frame* frame, const ScalarOp& op) {
  if (frame->program->is_runtime) return true;
  const Choice choice = Predicate(*frame, op);
  if (choice == Choice::kNo) return true;
  const Value flag = frame->registers[op.a];
  const Value amount = frame->registers[op.b];
  if (choice == Choice::kUnknown || !IsPlace(flag) || amount.known != Known::kValue) {
    machine_.copies.ForgetSignals();
    return true;
  }
  AdvanceTo(frame, op.bundle);
  machine_.copies.Signal(flag.bits, Signed32(amount.bits), machine_.time);
  return true;
}

bool Interpreter::StepSemaphoreWait(Frame* frame, const ScalarOp& op) {
  if (frame->program->is_runtime || frame->program->is_top_level) return true;
  if (Predicate(*frame, op) == Choice::kNo) return true;
  const Value flag = frame->registers[op.a];
  const Value least = frame->registers[op.b];
  if (IsPlace(flag) && least.known == Known::kValue && machine_.copies.IsRaised(flag.bits, Signed32(least.bits))) {
    return true;
  }
  return Refuse(*frame, op, "a wait for a semaphore that this core alone does not raise: another core or chip does");
}

void Interpreter::FillScalarMemory(const Frame& frame, const ScalarOp& op, uint64_t bytes) {
  const Value destination = frame.registers[op.c];
  if (destination.known != Known::kPointer || !IsPlace(destination)) return machine_.memory.ForgetAll();
  uint64_t offset = 0;
  const std::string* known = OperandBehind(frame, frame.registers[static_cast<size_t>(op.otherwise)], &offset);
  if (known == nullptr || offset > known->size() || bytes > known->size() - offset) {
    return machine_.memory.Fill(destination.bits, bytes / kWordBytes);
  }
  machine_.memory.Fill(destination.bits, std::string_view(*known).substr(offset, bytes));
}

const std::string* Interpreter::OperandBehind(const Frame& frame, const Value& source, uint64_t* offset) const {
  if (options_.contents == nullptr || source.known != Known::kPointer) return nullptr;
  for (const OperandAddress& operand : frame.program->operands) {
    if (PointerAllocation(operand.base) != PointerAllocation(source.bits)) continue;
    // A copy counts in granules, whatever the unit in which the operand's address is passed.
    *offset = PointerOffset(source.bits) * kGranuleBytes;
    return options_.contents->Find(frame.call_site == nullptr ? std::string_view() : *frame.call_site, operand.index);
  }
  return nullptr;
}

}  // namespace kernelwright::cost
