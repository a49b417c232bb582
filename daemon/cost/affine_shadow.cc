// Arithmetic of slopes. Sums, products with a constant and left shifts are linear also when they wrap; everything else
// is linear only while no operand leaves its range, which is what narrows the number of rounds.
#include "daemon/cost/affine_shadow.h"

#include <algorithm>
#include <bit>

#include "daemon/cost/scalar_eval.h"

namespace kernelwright::cost {
namespace {

constexpr int64_t kMin32 = std::numeric_limits<int32_t>::min();
constexpr int64_t kMax32 = std::numeric_limits<int32_t>::max();

int64_t Wrap32(int64_t v) { return Signed32(static_cast<uint64_t>(v)); }

// True when this operand alone fixes the result: zero and true decide some operations.
bool Decides(OpKind kind, const Value& value) {
  if (value.known != Known::kValue) return false;
  switch (kind) {
    case OpKind::kAnd:
    case OpKind::kMul:
    case OpKind::kPredicateAnd:
    case OpKind::kPredicateNand:
      return value.bits == 0;
    case OpKind::kPredicateOr:
    case OpKind::kPredicateNor:
      return value.bits != 0;
    default:
      return false;
  }
}

}  // namespace

AffineShadow::AffineShadow(const std::vector<Value>& first_registers, const std::vector<Value>& second_registers,
                           const std::vector<Value>& first_cells, const std::vector<Value>& second_cells) {
  for (size_t i = 0; i < second_registers.size(); ++i) {
    registers_.push_back(MakeSlot(first_registers[i], second_registers[i]));
  }
  for (size_t i = 0; i < second_cells.size(); ++i) {
    // A cell that the first round did not have yet is not steady.
    const Value first = i < first_cells.size() ? first_cells[i] : Value{0, Known::kNothing};
    cells_.push_back(MakeSlot(first, second_cells[i]));
    cells_.back().unsteady |= i >= first_cells.size();
  }
}

AffineShadow::Slot AffineShadow::MakeSlot(const Value& first, const Value& second) {
  Slot slot;
  slot.start = second;
  slot.unsteady = first.known != second.known;
  if (second.known == Known::kValue) {
    slot.slope = Wrap32(static_cast<int64_t>(second.bits - first.bits));
  } else if (second.known == Known::kPointer) {
    slot.slope = static_cast<int64_t>(second.bits - first.bits);
  }
  slot.initial_slope = slot.slope;
  return slot;
}

int64_t AffineShadow::ReadRegister(uint32_t index) {
  Slot& slot = registers_[index];
  if (!slot.written) slot.read_first = true;
  return slot.unsteady && !slot.written ? kOpaque : slot.slope;
}

int64_t AffineShadow::ReadCell(uint32_t index) {
  if (index >= cells_.size()) cells_.resize(index + 1);
  Slot& slot = cells_[index];
  if (!slot.written) slot.read_first = true;
  return slot.unsteady && !slot.written ? kOpaque : slot.slope;
}

void AffineShadow::WriteRegister(uint32_t index, int64_t slope) {
  registers_[index].slope = slope;
  registers_[index].written = true;
}

void AffineShadow::WriteCell(uint32_t index, int64_t slope) {
  if (index >= cells_.size()) cells_.resize(index + 1);
  cells_[index].slope = slope;
  cells_[index].written = true;
}

AffineShadow::Choice AffineShadow::Decide(const ScalarOp& op, const std::vector<Value>& registers) {
  if (op.predicate < 0) return Choice::kYes;
  const auto index = static_cast<uint32_t>(op.predicate);
  const int64_t slope = ReadRegister(index);
  const Value& p = registers[index];
  if (p.known != Known::kValue) return slope == kOpaque ? Choice::kFailed : Choice::kUnknown;
  if (slope != 0) return Choice::kFailed;
  return (p.bits != 0) != op.predicate_negated ? Choice::kYes : Choice::kNo;
}

bool AffineShadow::Track(const ScalarOp& op, const std::vector<Value>& registers, const ScalarMemory& memory) {
  switch (op.kind) {
    case OpKind::kCall:
    case OpKind::kSemaphoreWait:
      return false;
    case OpKind::kUnsupportedBranch:
    case OpKind::kBranch:
      return Decide(op, registers) != Choice::kFailed;
    case OpKind::kDma:
    case OpKind::kSignal:
    case OpKind::kWait: {
      const Choice choice = Decide(op, registers);
      if (choice == Choice::kFailed) return false;
      if (choice == Choice::kNo) return true;
      // A copy into scalar memory changes what is known; such loops are executed.
      return !op.to_smem && ReadRegister(op.a) == 0 && ReadRegister(op.b) == 0;
    }
    case OpKind::kStore: {
      const Choice choice = Decide(op, registers);
      if (choice == Choice::kFailed) return false;
      return choice == Choice::kNo || TrackStore(op, registers, memory, choice == Choice::kUnknown);
    }
    default:
      break;
  }
  int64_t slope = 0;
  if (op.kind == OpKind::kLoad) {
    if (!TrackLoad(op, registers, memory, &slope)) return false;
  } else {
    slope = Result(op, registers);
  }
  const auto destination = static_cast<uint32_t>(op.destination);
  switch (Decide(op, registers)) {
    case Choice::kFailed:
      return false;
    case Choice::kYes:
      WriteRegister(destination, slope);
      break;
    case Choice::kNo:
      if (op.otherwise >= 0) WriteRegister(destination, ReadRegister(static_cast<uint32_t>(op.otherwise)));
      break;
    case Choice::kUnknown: {
      const int64_t old = ReadRegister(op.otherwise >= 0 ? static_cast<uint32_t>(op.otherwise) : destination);
      // Joined, the result is unknown unless both are equal in every round.
      WriteRegister(destination, slope == old && slope == 0 ? 0 : kOpaque);
      break;
    }
  }
  return true;
}

bool AffineShadow::TrackLoad(const ScalarOp& op, const std::vector<Value>& registers, const ScalarMemory& memory,
                             int64_t* slope) {
  if (op.aux >= 0) {
    *slope = ReadCell(static_cast<uint32_t>(op.aux));
    return true;
  }
  const int64_t sum = ReadRegister(op.a) | ReadRegister(op.b) | ReadRegister(op.c);
  const Value address = AddAddress(AddAddress(registers[op.a], registers[op.b]), registers[op.c]);
  if (address.known >= Known::kRuntime) {
    *slope = 0;  // whatever is there is unknown in every round
    return true;
  }
  if (sum != 0) return false;
  const auto cell = memory.Find(address.bits);
  if (!cell) return false;
  *slope = ReadCell(*cell);
  return true;
}

bool AffineShadow::TrackStore(const ScalarOp& op, const std::vector<Value>& registers, const ScalarMemory& memory,
                              bool maybe) {
  const int64_t value = ReadRegister(static_cast<uint32_t>(op.otherwise));
  uint32_t cell = 0;
  if (op.aux >= 0) {
    cell = static_cast<uint32_t>(op.aux);
  } else {
    const int64_t sum = ReadRegister(op.a) | ReadRegister(op.b) | ReadRegister(op.c);
    const Value address = AddAddress(AddAddress(registers[op.a], registers[op.b]), registers[op.c]);
    if (address.known >= Known::kRuntime || sum != 0) return false;
    const auto found = memory.Find(address.bits);
    if (!found) return false;
    cell = *found;
  }
  if (maybe) {
    const int64_t old = ReadCell(cell);
    WriteCell(cell, value == 0 && old == 0 ? 0 : kOpaque);
  } else {
    WriteCell(cell, value);
  }
  return true;
}

int64_t AffineShadow::Result(const ScalarOp& op, const std::vector<Value>& registers) {
  const std::vector<Value>& r = registers;
  switch (op.kind) {
    case OpKind::kUnknown:
    case OpKind::kParameter:
      return 0;
    case OpKind::kMove:
      return ReadRegister(op.a);
    case OpKind::kLea: {
      const int64_t a = ReadRegister(op.a);
      const int64_t b = ReadRegister(op.b);
      const int64_t c = ReadRegister(op.c);
      if (a == kOpaque || b == kOpaque || c == kOpaque) return kOpaque;
      // Offsets are sign-extended when they are added to an address: they must not wrap.
      for (const auto& [index, slope] : {std::pair{op.a, a}, {op.b, b}, {op.c, c}}) {
        if (r[index].known == Known::kValue) KeepInRange(Signed32(r[index].bits), slope, true);
      }
      return a + b + c;
    }
    case OpKind::kSelect: {
      const int64_t p = ReadRegister(op.a);
      const int64_t b = ReadRegister(op.b);
      const int64_t c = ReadRegister(op.c);
      const Value& predicate = r[op.a];
      if (predicate.known == Known::kValue) {
        if (p != 0) return kOpaque;
        return predicate.bits != 0 ? b : c;
      }
      return b == 0 && c == 0 && p == 0 ? 0 : kOpaque;
    }
    default:
      break;
  }
  const int64_t sa = ReadRegister(op.a);
  const int64_t sb = ReadRegister(op.b);
  if (sa == 0 && sb == 0) return 0;
  const Value& a = r[op.a];
  const Value& b = r[op.b];
  if ((sa == 0 && Decides(op.kind, a)) || (sb == 0 && Decides(op.kind, b))) return 0;
  if (a.known == Known::kValue && b.known == Known::kValue) {
    if (sa == kOpaque || sb == kOpaque) return kOpaque;
    return op.kind == OpKind::kCompare ? CompareResult(op, a, b, sa, sb) : LinearResult(op, a, b, sa, sb);
  }
  if (sa == kOpaque || sb == kOpaque) return kOpaque;
  if (a.known <= Known::kPointer && b.known <= Known::kPointer && op.kind == OpKind::kAdd) return sa + sb;
  return kOpaque;
}

int64_t AffineShadow::LinearResult(const ScalarOp& op, const Value& a, const Value& b, int64_t sa, int64_t sb) {
  const int64_t va = Signed32(a.bits);
  const int64_t vb = Signed32(b.bits);
  switch (op.kind) {
    case OpKind::kAdd:
      return Wrap32(sa + sb);
    case OpKind::kSub:
      return Wrap32(sa - sb);
    case OpKind::kMul:
      if (sa == 0) return Wrap32(va * sb);
      if (sb == 0) return Wrap32(vb * sa);
      return kOpaque;
    case OpKind::kShiftLeft:
      if (sb != 0 || vb < 0 || vb > 31) return kOpaque;
      return Wrap32(static_cast<int64_t>(static_cast<uint64_t>(sa) << vb));
    case OpKind::kAnd: {
      // The masked bits stay when the moving side moves in steps above the highest of them.
      if (sa != 0 && sb != 0) return kOpaque;
      const auto mask = static_cast<uint32_t>(sa == 0 ? a.bits : b.bits);
      const auto slope = static_cast<uint64_t>(sa == 0 ? sb : sa);
      const uint64_t above = uint64_t{1} << std::bit_width(mask);
      return slope % above == 0 ? 0 : kOpaque;
    }
    case OpKind::kShiftRight:
    case OpKind::kShiftRightSigned: {
      if (sb != 0 || vb < 0 || vb > 31) return kOpaque;
      const int64_t unit = int64_t{1} << vb;
      if (sa % unit != 0) return kOpaque;
      if (op.kind == OpKind::kShiftRight) {
        if (va < 0) return kOpaque;
        KeepInRange(va, sa, false);
      } else {
        KeepInRange(va, sa, true);
      }
      return sa / unit;
    }
    case OpKind::kMin:
    case OpKind::kMax: {
      if (!KeepOrder(a, b, sa, sb, op.is_signed, false)) return kOpaque;
      const bool a_smaller = op.is_signed ? va < vb : Low32(a.bits) < Low32(b.bits);
      return (a_smaller == (op.kind == OpKind::kMin)) ? sa : sb;
    }
    default:
      return kOpaque;
  }
}

int64_t AffineShadow::CompareResult(const ScalarOp& op, const Value& a, const Value& b, int64_t sa, int64_t sb) {
  const bool equality = op.compare == CompareKind::kEqual || op.compare == CompareKind::kNotEqual;
  return KeepOrder(a, b, sa, sb, op.is_signed, equality) ? 0 : kOpaque;
}

void AffineShadow::KeepInRange(int64_t value, int64_t slope, bool is_signed) {
  const int64_t low = is_signed ? kMin32 : 0;
  if (slope > 0) last_round_ = std::min(last_round_, (kMax32 - value) / slope);
  if (slope < 0) last_round_ = std::min(last_round_, (value - low) / -slope);
}

bool AffineShadow::KeepOrder(const Value& a, const Value& b, int64_t sa, int64_t sb, bool is_signed,
                             bool equality_only) {
  const int64_t va = Signed32(a.bits);
  const int64_t vb = Signed32(b.bits);
  // Unsigned numbers are followed only where they are the same as signed ones.
  if (!is_signed && !equality_only && (va < 0 || vb < 0)) return false;
  KeepInRange(va, sa, is_signed || equality_only);
  KeepInRange(vb, sb, is_signed || equality_only);
  const int64_t difference = va - vb;
  const int64_t slope = sa - sb;
  if (slope == 0) return true;
  // difference + slope * m keeps its sign (negative, zero, positive) up to this round.
  if (difference == 0) {
    last_round_ = 0;
  } else if ((difference > 0) != (slope > 0)) {
    const int64_t distance = difference > 0 ? difference : -difference;
    const int64_t step = slope > 0 ? slope : -slope;
    if (equality_only && distance % step != 0) return true;  // it never becomes zero
    last_round_ = std::min(last_round_, (distance - 1) / step);
  }
  return true;
}

bool AffineShadow::Holds(const Slot& slot, const Value& now) {
  if (!slot.read_first) return true;
  if (slot.unsteady || slot.slope == kOpaque) return false;
  if (now.known != slot.start.known || slot.slope != slot.initial_slope) return false;
  Value expected = slot.start;
  Move(slot, 1, &expected);
  return now.known > Known::kPointer || now.bits == expected.bits;
}

void AffineShadow::Move(const Slot& slot, int64_t rounds, Value* value) {
  const uint64_t by = static_cast<uint64_t>(slot.initial_slope) * static_cast<uint64_t>(rounds);
  if (value->known == Known::kValue) value->bits = Low32(value->bits + by);
  if (value->known == Known::kPointer) value->bits += by;
}

bool AffineShadow::Proves(const std::vector<Value>& registers, const ScalarMemory& memory) const {
  for (size_t i = 0; i < registers_.size(); ++i) {
    if (!Holds(registers_[i], registers[i])) return false;
  }
  for (size_t i = 0; i < cells_.size(); ++i) {
    if (!Holds(cells_[i], memory.Read(static_cast<uint32_t>(i)))) return false;
  }
  return true;
}

void AffineShadow::Advance(int64_t rounds, std::vector<Value>* registers, ScalarMemory* memory) const {
  for (size_t i = 0; i < registers_.size(); ++i) {
    if (registers_[i].read_first) Move(registers_[i], rounds, &(*registers)[i]);
  }
  for (size_t i = 0; i < cells_.size(); ++i) {
    if (!cells_[i].read_first) continue;
    Value value = memory->Read(static_cast<uint32_t>(i));
    Move(cells_[i], rounds, &value);
    memory->Write(static_cast<uint32_t>(i), value);
  }
}

}  // namespace kernelwright::cost
