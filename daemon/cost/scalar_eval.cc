// See scalar_eval.h. Known numbers are kept as 32-bit patterns; addresses use all 64 bits.
#include "daemon/cost/scalar_eval.h"

#include <algorithm>
#include <bit>

namespace kernelwright::cost {
namespace {

bool Compare(const ScalarOp& op, uint64_t a, uint64_t b) {
  const int64_t x = op.is_signed ? Signed32(a) : static_cast<int64_t>(Low32(a));
  const int64_t y = op.is_signed ? Signed32(b) : static_cast<int64_t>(Low32(b));
  switch (op.compare) {
    case CompareKind::kEqual:
      return x == y;
    case CompareKind::kNotEqual:
      return x != y;
    case CompareKind::kLess:
      return x < y;
    case CompareKind::kLessEqual:
      return x <= y;
    case CompareKind::kGreater:
      return x > y;
    case CompareKind::kGreaterEqual:
      return x >= y;
  }
  return false;
}

bool IsValue(const Value& v, uint64_t bits) { return v.known == Known::kValue && v.bits == bits; }
bool IsTrue(const Value& v) { return v.known == Known::kValue && v.bits != 0; }

uint64_t Arithmetic(const ScalarOp& op, uint64_t a, uint64_t b) {
  switch (op.kind) {
    case OpKind::kAdd:
      return a + b;
    case OpKind::kSub:
      return a - b;
    case OpKind::kMul:
      return a * b;
    case OpKind::kMulHigh:
      return (Low32(a) * Low32(b)) >> 32;
    case OpKind::kAnd:
      return a & b;
    case OpKind::kOr:
      return a | b;
    case OpKind::kXor:
      return a ^ b;
    case OpKind::kShiftLeft:
      return b >= 32 ? 0 : a << (b & 31);
    case OpKind::kShiftRight:
      return b >= 32 ? 0 : Low32(a) >> (b & 31);
    case OpKind::kShiftRightSigned:
      return static_cast<uint64_t>(Signed32(a) >> std::min<uint64_t>(Low32(b), 31));
    case OpKind::kMin:
      if (op.is_signed) return static_cast<uint64_t>(std::min(Signed32(a), Signed32(b)));
      return std::min(Low32(a), Low32(b));
    case OpKind::kMax:
      if (op.is_signed) return static_cast<uint64_t>(std::max(Signed32(a), Signed32(b)));
      return std::max(Low32(a), Low32(b));
    case OpKind::kCarry:
      return (Low32(a) + Low32(b)) >> 32;
    case OpKind::kLeadingZeros:
      return static_cast<uint64_t>(std::countl_zero(static_cast<uint32_t>(a)));
    case OpKind::kPredicateAnd:
      return static_cast<uint64_t>(a != 0 && b != 0);
    case OpKind::kPredicateOr:
      return static_cast<uint64_t>(a != 0 || b != 0);
    case OpKind::kPredicateNand:
      return static_cast<uint64_t>(!(a != 0 && b != 0));
    case OpKind::kPredicateNor:
      return static_cast<uint64_t>(!(a != 0 || b != 0));
    case OpKind::kPredicateXor:
      return static_cast<uint64_t>((a != 0) != (b != 0));
    case OpKind::kPredicateNot:
      return static_cast<uint64_t>(a == 0);
    case OpKind::kCompare:
      return static_cast<uint64_t>(Compare(op, a, b));
    default:
      return a;
  }
}

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

}  // namespace

Value EvaluateBinary(const ScalarOp& op, const Value& a, const Value& b) {
  if (a.known == Known::kValue && b.known == Known::kValue) {
    return {Low32(Arithmetic(op, a.bits, b.bits)), Known::kValue};
  }
  if (Value absorbed; Absorbed(op, a, b, &absorbed)) return absorbed;
  const Known known = Worse(a.known, b.known);
  if (known == Known::kPointer) {
    // Only sums keep an address usable; comparing addresses of our own numbering says nothing.
    if (op.kind == OpKind::kAdd) return AddAddress(a, b);
    if (op.kind == OpKind::kSub && b.known == Known::kValue) {
      return {a.bits - static_cast<uint64_t>(Signed32(b.bits)), Known::kPointer};
    }
    if (op.kind == OpKind::kMove) return a;
    return {Arithmetic(op, a.bits, b.bits), Known::kPointer};
  }
  return {Low32(Arithmetic(op, a.bits, b.bits)), known};
}

Value AddAddress(const Value& a, const Value& b) {
  const Known known = Worse(a.known, b.known);
  if (known == Known::kValue) return {Low32(a.bits + b.bits), known};
  const auto extend = [](const Value& v) {
    return v.known == Known::kValue ? static_cast<uint64_t>(Signed32(v.bits)) : v.bits;
  };
  return {extend(a) + extend(b), known};
}

}  // namespace kernelwright::cost
