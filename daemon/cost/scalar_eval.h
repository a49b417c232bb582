// Arithmetic of the scalar unit on values that may be unknown. Operations that do not depend on their unknown operand
// (and with zero, or with true) give a known result, which is what lets bookkeeping code through.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "daemon/cost/scalar_program.h"

namespace kernelwright::cost {

inline uint64_t Low32(uint64_t bits) { return bits & 0xffffffffULL; }
inline int64_t Signed32(uint64_t bits) { return static_cast<int32_t>(static_cast<uint32_t>(bits)); }

inline bool Compare(const ScalarOp& op, uint64_t a, uint64_t b) {
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

// The operation on known numbers; the caller keeps the low 32 bits.
inline uint64_t Arithmetic(const ScalarOp& op, uint64_t a, uint64_t b) {
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

// Result of a two-operand or compare operation. kSelect, kLea, kLoad and what touches memory are not handled here.
Value EvaluateBinary(const ScalarOp& op, const Value& a, const Value& b);

// Sum of addresses and offsets: offsets are 32-bit signed, addresses are in the replay's own numbering.
Value AddAddress(const Value& a, const Value& b);

inline Known Worse(Known a, Known b) { return a > b ? a : b; }

}  // namespace kernelwright::cost
