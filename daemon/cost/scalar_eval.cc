// See scalar_eval.h. Known numbers are kept as 32-bit patterns; addresses use all 64 bits.
#include "daemon/cost/scalar_eval.h"

namespace kernelwright::cost {
namespace {

constexpr unsigned kMaxScale = 31;

bool IsValue(const Value& v, uint64_t bits) { return v.known == Known::kValue && v.bits == bits; }
bool IsTrue(const Value& v) { return v.known == Known::kValue && v.bits != 0; }

// Results that one known operand fixes alone.
bool Absorbed(const ScalarOp& op, const Value& a, const Value& b, Value* out) {
  const auto set = [out](uint64_t bits) {
    *out = {bits, Known::kValue};
    return true;
  };
  switch (op.kind) {
    case OpKind::kAnd:
    case OpKind::kMul:
    case OpKind::kPredicateAnd:
      return (IsValue(a, 0) || IsValue(b, 0)) && set(0);
    case OpKind::kPredicateNand:
      return (IsValue(a, 0) || IsValue(b, 0)) && set(1);
    case OpKind::kPredicateOr:
      return (IsTrue(a) || IsTrue(b)) && set(1);
    case OpKind::kPredicateNor:
      return (IsTrue(a) || IsTrue(b)) && set(0);
    default:
      return false;
  }
}

// An address shifted by a known number of bits: its offset and its scale move together.
Value ShiftPointer(const Value& pointer, uint64_t by, bool left) {
  const uint64_t offset = PointerOffset(pointer.bits);
  const unsigned scale = PointerScale(pointer.bits);
  if (PointerAllocation(pointer.bits) == kNowhere || PointerAllocation(pointer.bits) == 0) return NowherePointer();
  if (left ? by + scale > kMaxScale || offset >> (kOffsetBits - by) != 0 : by > scale) return NowherePointer();
  const uint64_t moved = left ? offset << by : offset >> by;
  const uint64_t to = left ? scale + by : scale - by;
  return {to << kScaleShift | PointerAllocation(pointer.bits) << kOffsetBits | moved, Known::kPointer};
}

// At least one operand is an address, the other one is a number or an address too.
Value EvaluatePointer(const ScalarOp& op, const Value& a, const Value& b) {
  const bool both = a.known == Known::kPointer && b.known == Known::kPointer;
  // Where the loader puts an allocation cancels out between two addresses in it.
  const bool comparable = both && PointerBase(a.bits) == PointerBase(b.bits) && PointerAllocation(a.bits) != 0 &&
                          PointerAllocation(a.bits) != kNowhere;
  switch (op.kind) {
    case OpKind::kMove:
      return a;
    case OpKind::kAdd:
      return AddAddress(a, b);
    case OpKind::kSub:
      if (b.known == Known::kValue) return {a.bits - static_cast<uint64_t>(Signed32(b.bits)), Known::kPointer};
      if (comparable) return {Low32(a.bits - b.bits), Known::kValue};
      return NowherePointer();
    case OpKind::kShiftLeft:
    case OpKind::kShiftRight:
    case OpKind::kShiftRightSigned:
      if (b.known != Known::kValue || b.bits >= kOffsetBits) return NowherePointer();
      return ShiftPointer(a, b.bits, op.kind == OpKind::kShiftLeft);
    case OpKind::kCompare:
      if (comparable) {
        return {static_cast<uint64_t>(Compare(op, PointerOffset(a.bits), PointerOffset(b.bits))), Known::kValue};
      }
      return NowherePointer();
    default:
      return NowherePointer();
  }
}

}  // namespace

Value EvaluateBinary(const ScalarOp& op, const Value& a, const Value& b) {
  if (a.known == Known::kValue && b.known == Known::kValue) {
    return {Low32(Arithmetic(op, a.bits, b.bits)), Known::kValue};
  }
  if (Value absorbed; Absorbed(op, a, b, &absorbed)) return absorbed;
  const Known known = Worse(a.known, b.known);
  if (known == Known::kPointer) return EvaluatePointer(op, a, b);
  return {Low32(Arithmetic(op, a.bits, b.bits)), known};
}

Value AddAddress(const Value& a, const Value& b) {
  const Known known = Worse(a.known, b.known);
  if (known == Known::kValue) return {Low32(a.bits + b.bits), known};
  if (known == Known::kPointer && a.known == b.known && PointerBase(a.bits) != 0 && PointerBase(b.bits) != 0) {
    return NowherePointer();
  }
  const auto extend = [](const Value& v) {
    return v.known == Known::kValue ? static_cast<uint64_t>(Signed32(v.bits)) : v.bits;
  };
  return {extend(a) + extend(b), known};
}

}  // namespace kernelwright::cost
