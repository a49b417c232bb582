// Arithmetic of the scalar unit on values that may be unknown. Operations that do not depend on their unknown operand
// (and with zero, or with true) give a known result, which is what lets bookkeeping code through.
#pragma once

#include "daemon/cost/scalar_program.h"

namespace kernelwright::cost {

// Result of a two-operand or compare operation. kSelect, kLea, kLoad and what touches memory are not handled here.
Value EvaluateBinary(const ScalarOp& op, const Value& a, const Value& b);

// Sum of addresses and offsets: offsets are 32-bit signed, addresses are in the replay's own numbering.
Value AddAddress(const Value& a, const Value& b);

inline Known Worse(Known a, Known b) { return a > b ? a : b; }
inline uint64_t Low32(uint64_t bits) { return bits & 0xffffffffULL; }
inline int64_t Signed32(uint64_t bits) { return static_cast<int32_t>(static_cast<uint32_t>(bits)); }

}  // namespace kernelwright::cost
