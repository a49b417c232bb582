// Decoding. Two points need care. All operations of a bundle read their operands before any of them writes, so a write
// that a later operation of the same bundle must not see goes through a temporary. And a printed name carries a virtual
// and a physical register: pseudo operations that read a name defined in the same bundle see the new value.
#include "daemon/cost/scalar_program.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <tuple>
#include <utility>

namespace kernelwright::cost {
namespace {

using compiler::BundleOp;
using compiler::BundleProgram;

constexpr uint32_t kMaxRegister = 256;  // of each of the two physical files
constexpr int kDelaySlots = 4;          // bundles that still run behind a branch

std::string_view Trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\n')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\n')) s.remove_suffix(1);
  return s;
}

std::optional<uint64_t> ParseNumber(std::string_view s) {
  bool negative = false;
  if (s.starts_with('-')) {
    negative = true;
    s.remove_prefix(1);
  }
  int base = 10;
  if (s.starts_with("0x")) {
    base = 16;
    s.remove_prefix(2);
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value, base);
  if (error != std::errc{} || end != s.data() + s.size()) return std::nullopt;
  return (negative ? 0 - value : value) & 0xffffffffULL;
}

// Text without its comments.
std::string StripComments(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (true) {
    const size_t open = text.find("/*");
    out += text.substr(0, open);
    if (open == std::string_view::npos) return out;
    const size_t close = text.find("*/", open + 2);
    if (close == std::string_view::npos) return out;
    text.remove_prefix(close + 2);
  }
}

// Splits at commas outside of brackets.
std::vector<std::string_view> SplitOperands(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == ',' && depth == 0) {
      out.push_back(Trim(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  if (const auto rest = Trim(text.substr(start)); !rest.empty()) out.push_back(rest);
  return out;
}

struct Name {
  uint32_t reg = 0;  // physical, predicates behind the scalars
  uint64_t virtual_id = 0;
};

// "%s129_s4", "%p34_p0"; an optional "!" is the caller's business.
std::optional<Name> ParseName(std::string_view s) {
  if (s.size() < 5 || s[0] != '%' || (s[1] != 's' && s[1] != 'p')) return std::nullopt;
  const size_t underscore = s.find('_');
  if (underscore == std::string_view::npos || underscore + 2 >= s.size() || s[underscore + 1] != s[1]) {
    return std::nullopt;
  }
  const auto virtual_id = ParseNumber(s.substr(2, underscore - 2));
  const auto physical = ParseNumber(s.substr(underscore + 2));
  if (!virtual_id || !physical || *physical >= kMaxRegister) return std::nullopt;
  return Name{static_cast<uint32_t>(*physical) + (s[1] == 'p' ? kMaxRegister : 0),
              *virtual_id * 2 + (s[1] == 'p' ? 1 : 0)};
}

struct Stem {
  std::string_view name;
  OpKind kind;
};
constexpr std::array kBinary = {
    Stem{"sadd", OpKind::kAdd},          Stem{"ssub", OpKind::kSub},
    Stem{"smul", OpKind::kMul},          Stem{"smulhi", OpKind::kMulHigh},
    Stem{"sand", OpKind::kAnd},          Stem{"sor", OpKind::kOr},
    Stem{"sxor", OpKind::kXor},          Stem{"sshll", OpKind::kShiftLeft},
    Stem{"sshrl", OpKind::kShiftRight},  Stem{"sshra", OpKind::kShiftRightSigned},
    Stem{"smin", OpKind::kMin},          Stem{"smax", OpKind::kMax},
    Stem{"sc", OpKind::kCarry},          Stem{"pand", OpKind::kPredicateAnd},
    Stem{"por", OpKind::kPredicateOr},   Stem{"pnand", OpKind::kPredicateNand},
    Stem{"pnor", OpKind::kPredicateNor}, Stem{"pxor", OpKind::kPredicateXor},
};

std::optional<CompareKind> ParseCompare(std::string_view s) {
  if (s == "eq") return CompareKind::kEqual;
  if (s == "ne") return CompareKind::kNotEqual;
  if (s == "lt") return CompareKind::kLess;
  if (s == "le") return CompareKind::kLessEqual;
  if (s == "gt") return CompareKind::kGreater;
  if (s == "ge") return CompareKind::kGreaterEqual;
  return std::nullopt;
}

class Decoder {
 public:
  Decoder(const BundleProgram& source, std::string name, int index, ScalarMemory* memory)
      : source_(source), index_(index), memory_(memory) {
    program_.name = std::move(name);
    program_.source = &source;
    program_.is_top_level = program_.name == "TLP";
    program_.is_runtime = program_.name.starts_with("<late-");
    program_.registers.assign(size_t{2} * kMaxRegister, Value{});
  }

  ScalarProgram Run() {
    const size_t bundles = source_.bundle_count();
    opcode_useful_.reserve(source_.opcodes().size());
    for (const compiler::Opcode& opcode : source_.opcodes()) {
      opcode_useful_.push_back(IsUseful(opcode));
      opcode_product_.push_back(opcode.name.starts_with("vmatmul"));
    }
    std::vector<uint8_t> leader(bundles + 1, 0);
    std::vector<uint32_t> products(bundles, 0);
    leader[0] = 1;
    std::vector<uint32_t> op_begin(bundles + 1, 0);
    for (size_t b = 0; b < bundles; ++b) {
      op_begin[b] = static_cast<uint32_t>(program_.ops.size());
      DecodeBundle(static_cast<uint32_t>(b), &products[b]);
      for (size_t i = op_begin[b]; i < program_.ops.size(); ++i) {
        const ScalarOp& op = program_.ops[i];
        if (op.kind != OpKind::kBranch) continue;
        if (op.aux >= 0) leader[static_cast<size_t>(op.aux)] = 1;
        leader[std::min(b + kDelaySlots + 1, bundles)] = 1;
      }
    }
    op_begin[bundles] = static_cast<uint32_t>(program_.ops.size());
    program_.block_at.assign(bundles + 1, -1);
    for (size_t b = 0; b < bundles;) {
      size_t end = b + 1;
      while (end < bundles && leader[end] == 0) ++end;
      ScalarBlock block;
      block.bundle_begin = static_cast<uint32_t>(b);
      block.bundle_end = static_cast<uint32_t>(end);
      block.op_begin = op_begin[b];
      block.op_end = op_begin[end];
      for (size_t i = b; i < end; ++i) {
        if (products[i] == 0) continue;
        if (block.products == 0) block.first_product = static_cast<uint32_t>(i);
        block.last_product = static_cast<uint32_t>(i);
        block.products += products[i];
      }
      program_.block_at[b] = static_cast<int32_t>(program_.blocks.size());
      program_.blocks.push_back(block);
      b = end;
    }
    return std::move(program_);
  }

 private:
  struct Pending {
    ScalarOp op;
    uint64_t virtual_destination = 0;
    std::vector<Name> reads;
  };

  static bool IsUseful(const compiler::Opcode& opcode) {
    const std::string& n = opcode.name;
    if (n.starts_with("vwait")) return true;
    if (n[0] == 'v' || n == "sfence" || n.starts_with("shalt") || n == "compiler-scheduling-barrier") return false;
    return n != "sphi" && n != "pphi";
  }

  void DecodeBundle(uint32_t bundle, uint32_t* products) {
    pending_.clear();
    for (uint32_t i = source_.op_begin(bundle); i < source_.op_end(bundle); ++i) {
      const BundleOp& op = source_.ops()[i];
      if (opcode_product_[op.opcode]) ++*products;
      if (opcode_useful_[op.opcode]) DecodeOp(op, i, bundle);
    }
    if (pending_.empty()) return;
    // Stores last: a load of the same bundle reads the old value.
    std::stable_partition(pending_.begin(), pending_.end(),
                          [](const Pending& p) { return p.op.kind != OpKind::kStore; });
    std::vector<std::pair<uint32_t, uint32_t>> moves;  // temporary -> register, at the end of the bundle
    for (size_t i = 0; i < pending_.size(); ++i) {
      Pending& writer = pending_[i];
      if (writer.op.destination < 0) continue;
      const auto reg = static_cast<uint32_t>(writer.op.destination);
      bool old_needed = false;
      for (size_t j = i + 1; j < pending_.size() && !old_needed; ++j) {
        for (const Name& read : pending_[j].reads) {
          old_needed |= read.reg == reg && read.virtual_id != writer.virtual_destination;
        }
      }
      if (!old_needed) continue;
      const uint32_t temporary = NewRegister(Value{});
      moves.emplace_back(temporary, reg);
      if (writer.op.predicate >= 0 && writer.op.otherwise < 0) writer.op.otherwise = static_cast<int32_t>(reg);
      writer.op.destination = static_cast<int32_t>(temporary);
      for (size_t j = i + 1; j < pending_.size(); ++j) {
        RedirectReads(&pending_[j], reg, writer.virtual_destination, temporary);
      }
    }
    for (const Pending& p : pending_) program_.ops.push_back(p.op);
    for (const auto& [temporary, reg] : moves) {
      ScalarOp move;
      move.kind = OpKind::kMove;
      move.a = temporary;
      move.destination = static_cast<int32_t>(reg);
      move.bundle = bundle;
      move.source = pending_.front().op.source;
      program_.ops.push_back(move);
    }
  }

  // A later pseudo operation that reads the new value finds it in the temporary.
  static void RedirectReads(Pending* reader, uint32_t reg, uint64_t virtual_id, uint32_t temporary) {
    bool reads_new = false;
    bool reads_old = false;
    for (const Name& read : reader->reads) {
      if (read.reg != reg) continue;
      (read.virtual_id == virtual_id ? reads_new : reads_old) = true;
    }
    if (!reads_new || reads_old) return;
    for (uint32_t* operand : {&reader->op.a, &reader->op.b, &reader->op.c}) {
      if (*operand == reg) *operand = temporary;
    }
    if (reader->op.otherwise == static_cast<int32_t>(reg)) reader->op.otherwise = static_cast<int32_t>(temporary);
    if (reader->op.predicate == static_cast<int32_t>(reg)) reader->op.predicate = static_cast<int32_t>(temporary);
  }

  uint32_t NewRegister(Value value) {
    program_.registers.push_back(value);
    return static_cast<uint32_t>(program_.registers.size() - 1);
  }

  uint32_t Constant(uint64_t bits, Known known) {
    const auto [it, inserted] = constants_.emplace(std::pair{bits, static_cast<int>(known)}, 0);
    if (inserted) it->second = NewRegister({bits, known});
    return it->second;
  }
  uint32_t UnknownConstant() { return Constant(0, Known::kNothing); }

  // "#allocation13_spill" -> base address and whether it is a spill slot.
  std::optional<uint64_t> Allocation(std::string_view s, bool* spill = nullptr) {
    constexpr std::string_view kPrefix = "#allocation";
    if (!s.starts_with(kPrefix)) return std::nullopt;
    s.remove_prefix(kPrefix.size());
    if (spill != nullptr) *spill = s.ends_with("_spill");
    return memory_->AllocationBase(index_, s);
  }

  // A register, number or "[#allocation4 + $0x1]"; records what it reads. Nothing for another shape.
  std::optional<uint32_t> Operand(std::string_view s, Pending* p) {
    s = Trim(s);
    if (const auto name = ParseName(s)) {
      p->reads.push_back(*name);
      return name->reg;
    }
    if (s.starts_with("[#allocation")) {
      const size_t close = s.find(']');
      if (close == std::string_view::npos) return std::nullopt;
      std::string_view body = s.substr(1, close - 1);
      const size_t plus = body.find('+');
      const auto base = Allocation(Trim(body.substr(0, plus)));
      if (!base) return std::nullopt;
      uint64_t offset = 0;
      if (plus != std::string_view::npos) {
        std::string_view number = Trim(body.substr(plus + 1));
        if (number.starts_with('$')) number.remove_prefix(1);
        const auto parsed = ParseNumber(number);
        if (!parsed) return std::nullopt;
        offset = *parsed;
      }
      return Constant(*base + offset, Known::kPointer);
    }
    // "2 [#allocation4]": the bracket only names the memory that the number points into.
    if (const size_t space = s.find(' '); space != std::string_view::npos) s = s.substr(0, space);
    if (const auto number = ParseNumber(s)) return Constant(*number, Known::kValue);
    return std::nullopt;
  }

  // "[smem:[%s1 + #allocation3 + $0x1]]" -> up to three addends, or the cell when all are constant.
  bool MemoryOperand(std::string_view s, Pending* p) {
    constexpr std::string_view kOpen = "[smem:[";
    if (!s.starts_with(kOpen)) return false;
    const size_t close = s.find(']');
    if (close == std::string_view::npos) return false;
    s = s.substr(kOpen.size(), close - kOpen.size());
    uint64_t fixed = 0;
    bool has_base = false;
    bool spill = false;
    std::vector<uint32_t> registers;
    while (!s.empty()) {
      const size_t plus = s.find('+');
      std::string_view part = Trim(s.substr(0, plus));
      s = plus == std::string_view::npos ? std::string_view{} : s.substr(plus + 1);
      if (const auto name = ParseName(part)) {
        p->reads.push_back(*name);
        registers.push_back(name->reg);
      } else if (const auto base = Allocation(part, &spill)) {
        fixed += *base;
        has_base = true;
      } else {
        if (part.starts_with('$')) part.remove_prefix(1);
        const auto number = ParseNumber(part);
        if (!number) return false;
        fixed += *number;
      }
    }
    if (registers.empty()) {
      p->op.aux = static_cast<int32_t>(memory_->CellAt(fixed, spill));
      return true;
    }
    if (registers.size() > 2) return false;
    const uint32_t rest = Constant(fixed, has_base ? Known::kPointer : Known::kValue);
    p->op.a = registers[0];
    p->op.b = registers.size() > 1 ? registers[1] : Constant(0, Known::kValue);
    p->op.c = rest;
    return true;
  }

  // "/*size_in_granules=*/4096" -> "4096"; the labels are the same on every chip, the order is not.
  static std::string_view Labelled(std::string_view text, std::string_view label) {
    const size_t at = text.find(label);
    if (at == std::string_view::npos) return {};
    std::string_view rest = text.substr(at + label.size());
    if (!rest.starts_with("=*/")) return {};
    rest.remove_prefix(3);
    int depth = 0;
    for (size_t i = 0; i < rest.size(); ++i) {
      if (rest[i] == '[') ++depth;
      if (rest[i] == ']') --depth;
      if ((rest[i] == ',' && depth == 0) || (rest[i] == '/' && i + 1 < rest.size() && rest[i + 1] == '*')) {
        return Trim(rest.substr(0, i));
      }
    }
    return Trim(rest);
  }

  void DecodeOp(const BundleOp& op, uint32_t source, uint32_t bundle) {
    const std::string_view text = source_.op_text(op);
    const std::string_view opcode = source_.opcode(op).name;
    if (opcode.starts_with("vwait")) {
      ++program_.semaphore_waits;
      return;
    }
    Pending p;
    p.op.bundle = bundle;
    p.op.source = source;
    std::string_view head = text;
    if (text.starts_with('%')) {
      const size_t equals = text.find(" = ");
      const std::string_view result = text.substr(0, equals);
      if (const auto name = ParseName(result)) {
        p.op.destination = static_cast<int32_t>(name->reg);
        p.virtual_destination = name->virtual_id;
      }
      head = text.substr(equals + 3);
    }
    head.remove_prefix(std::min(head.size(), opcode.size()));
    const std::string stripped = StripComments(head);
    std::string_view rest = Trim(stripped);
    if (rest.starts_with("[thread:")) rest = Trim(rest.substr(std::min(rest.size(), rest.find(']') + 1)));
    if (rest.starts_with("(%p") || rest.starts_with("(!%p")) rest = Predicate(rest, &p);
    if (!Decode(opcode, text, rest, &p)) {
      ++program_.undecoded;
      if (p.op.destination < 0) {
        // A store whose place is not understood may have written anything.
        if (!opcode.starts_with("sst")) return;
        p.op.kind = OpKind::kStore;
        p.op.aux = -1;
        p.op.a = p.op.b = p.op.c = UnknownConstant();
      } else {
        p.op.kind = OpKind::kUnknown;
        p.op.aux = -1;
      }
    }
    pending_.push_back(std::move(p));
  }

  // "(!%p34_p0), …" or "(!%p34_p0, %s36_s20), …": the second is what the result is when the predicate is false.
  std::string_view Predicate(std::string_view rest, Pending* p) {
    const size_t close = rest.find(')');
    if (close == std::string_view::npos) return rest;
    const auto parts = SplitOperands(rest.substr(1, close - 1));
    std::string_view name = parts.empty() ? std::string_view{} : parts[0];
    if (name.starts_with('!')) {
      p->op.predicate_negated = true;
      name.remove_prefix(1);
    }
    if (const auto parsed = ParseName(name)) {
      p->op.predicate = static_cast<int32_t>(parsed->reg);
      p->reads.push_back(*parsed);
    }
    if (parts.size() > 1) {
      if (const auto other = ParseName(parts[1])) {
        p->reads.push_back(*other);
        if (static_cast<int32_t>(other->reg) != p->op.destination) p->op.otherwise = static_cast<int32_t>(other->reg);
      }
    }
    rest = Trim(rest.substr(close + 1));
    if (rest.starts_with(',')) rest = Trim(rest.substr(1));
    return rest;
  }

  bool Decode(std::string_view opcode, std::string_view text, std::string_view rest, Pending* p) {
    const std::string_view stem = opcode.substr(0, opcode.find('.'));
    if (opcode.starts_with("dma.")) return DecodeDma(opcode, text, rest, p);
    if (opcode.starts_with("sbr")) return DecodeBranch(opcode, rest, p);
    if (opcode == "inlined_call") return DecodeCall(text, rest, p);
    if (stem == "sst") return DecodeStore(rest, p);
    // A scalar operation may name its predicate behind its memory operand: "sld [smem:[…]] (!%p1_p0)".
    if (stem == "sld") {
      p->op.kind = OpKind::kLoad;
      const size_t close = rest.find("]]");
      if (close == std::string_view::npos || !MemoryOperand(rest, p)) return false;
      const std::string_view behind = Trim(rest.substr(close + 2));
      if (behind.starts_with("(%p") || behind.starts_with("(!%p")) Predicate(behind, p);
      return p->op.destination >= 0;
    }
    if (p->op.destination < 0) return true;  // writes nothing that the replay keeps
    const auto operands = SplitOperands(rest);
    const bool floating = opcode.find("f32") != std::string_view::npos || opcode.find("bf16") != std::string_view::npos;
    if (stem == "inlined_call_operand") {
      p->op.kind = OpKind::kParameter;
      const size_t at = rest.find("index: ");
      if (at == std::string_view::npos) return false;
      const std::string_view digits = rest.substr(at + 7);
      const auto number = ParseNumber(digits.substr(0, digits.find_first_not_of("0123456789")));
      if (!number || *number > 4096) return false;
      p->op.aux = static_cast<int32_t>(*number);
      return true;
    }
    if (opcode == "scalar_parameter_address" || opcode == "reloc") {
      // Placed by the loader: a place of its own, distinct for each number.
      p->op.kind = OpKind::kMove;
      p->op.a = operands.empty() ? UnknownConstant() : Address(opcode, operands[0]);
      return true;
    }
    if (opcode.starts_with("int_to_ptr") || opcode.starts_with("ptr_to_int")) {
      // "[resolvable:$true] %s1_s0"
      const size_t close = rest.find(']');
      const auto value = Operand(close == std::string_view::npos ? rest : rest.substr(close + 1), p);
      p->op.kind = OpKind::kMove;
      if (!value) return false;
      p->op.a = *value;
      return true;
    }
    if (floating) {
      p->op.kind = OpKind::kUnknown;
      return true;
    }
    if (stem == "smov" || stem == "scopy" || stem == "pmov" || stem == "pneg" || stem == "sclz") {
      if (operands.size() != 1) return false;
      const auto value = Operand(operands[0], p);
      if (!value) return false;
      p->op.kind = stem == "pneg" ? OpKind::kPredicateNot : stem == "sclz" ? OpKind::kLeadingZeros : OpKind::kMove;
      p->op.a = p->op.b = *value;  // the second operand of a unary operation must not spoil the result
      return true;
    }
    if (stem == "scalar_lea" || stem == "scalar_select") {
      if (operands.size() < 2 || operands.size() > 3) return false;
      std::array<uint32_t, 3> values = {0, 0, Constant(0, Known::kValue)};
      for (size_t i = 0; i < operands.size(); ++i) {
        const auto value = Operand(operands[i], p);
        if (!value) return false;
        values[i] = *value;
      }
      p->op.kind = stem == "scalar_lea" ? OpKind::kLea : OpKind::kSelect;
      std::tie(p->op.a, p->op.b, p->op.c) = std::tie(values[0], values[1], values[2]);
      return stem == "scalar_lea" || operands.size() == 3;
    }
    if (stem == "scmp") return DecodeCompare(opcode, operands, p);
    for (const Stem& known : kBinary) {
      if (known.name != stem) continue;
      if (operands.size() != 2) return false;
      const auto a = Operand(operands[0], p);
      const auto b = Operand(operands[1], p);
      if (!a || !b) return false;
      p->op.kind = known.kind;
      p->op.is_signed = opcode.find("s32") != std::string_view::npos;
      p->op.a = *a;
      p->op.b = *b;
      return true;
    }
    p->op.kind = OpKind::kUnknown;  // spop and others whose result comes from elsewhere
    return true;
  }

  uint32_t Address(std::string_view kind, std::string_view number) {
    const auto parsed = ParseNumber(number);
    if (!parsed) return UnknownConstant();
    if (kind == "reloc") return Constant(*parsed, Known::kPointer);
    return Constant(memory_->AllocationBase(index_, std::string("parameter") + std::string(number)), Known::kPointer);
  }

  bool DecodeCompare(std::string_view opcode, const std::vector<std::string_view>& operands, Pending* p) {
    std::string_view rest = opcode.substr(std::min(opcode.size(), size_t{5}));
    const size_t dot = rest.find('.');
    const auto compare = ParseCompare(rest.substr(0, dot));
    if (!compare || operands.size() != 2) return false;
    const auto a = Operand(operands[0], p);
    const auto b = Operand(operands[1], p);
    if (!a || !b) return false;
    p->op.kind = OpKind::kCompare;
    p->op.compare = *compare;
    p->op.is_signed = rest.find("s32") != std::string_view::npos;
    p->op.a = *a;
    p->op.b = *b;
    return true;
  }

  bool DecodeStore(std::string_view rest, Pending* p) {
    p->op.kind = OpKind::kStore;
    p->op.destination = -1;
    const size_t close = rest.find("]]");
    if (close == std::string_view::npos || !MemoryOperand(rest, p)) return false;
    std::string_view behind = Trim(rest.substr(close + 2));
    if (behind.starts_with("(%p") || behind.starts_with("(!%p")) behind = Predicate(behind, p);
    if (behind.starts_with(',')) behind = Trim(behind.substr(1));
    const auto value = Operand(behind, p);
    // The value sits in `otherwise`, which a store does not need for itself.
    p->op.otherwise = static_cast<int32_t>(value.value_or(UnknownConstant()));
    return true;
  }

  bool DecodeBranch(std::string_view opcode, std::string_view rest, Pending* p) {
    p->op.kind = OpKind::kUnsupportedBranch;
    p->op.destination = -1;
    constexpr std::string_view kTarget = "target = $region";
    const size_t at = rest.find(kTarget);
    if (opcode != "sbr.rel" || at == std::string_view::npos) return true;
    const std::string_view digits = rest.substr(at + kTarget.size());
    const auto region = ParseNumber(digits.substr(0, digits.find_first_not_of("0123456789")));
    if (!region) return true;
    const int64_t bundle = source_.FindRegion(static_cast<int64_t>(*region));
    if (bundle < 0) return true;
    p->op.kind = OpKind::kBranch;
    p->op.aux = static_cast<int32_t>(bundle);
    return true;
  }

  bool DecodeCall(std::string_view text, std::string_view rest, Pending* p) {
    p->op.kind = OpKind::kCall;
    p->op.destination = -1;
    std::vector<uint32_t> arguments;
    for (const std::string_view operand : SplitOperands(rest)) {
      arguments.push_back(Operand(operand, p).value_or(UnknownConstant()));
    }
    // "/* %mm.1 = custom-call(…) */" or "/* <late-initialization> */"
    std::string_view name;
    if (const size_t open = text.find("/*"); open != std::string_view::npos) {
      name = Trim(text.substr(open + 2));
      if (name.starts_with('%')) name.remove_prefix(1);
      name = name.substr(0, name.find_first_of(" =*"));
    }
    p->op.aux = static_cast<int32_t>(program_.callees.size());
    p->op.a = static_cast<uint32_t>(program_.call_arguments.size());
    program_.callees.emplace_back(name);
    program_.call_arguments.push_back(std::move(arguments));
    return true;
  }

  bool DecodeDma(std::string_view opcode, std::string_view text, std::string_view rest, Pending* p) {
    p->op.destination = -1;
    if (opcode.starts_with("dma.done")) {
      p->op.kind = OpKind::kWait;
      const auto operands = SplitOperands(rest);
      if (operands.empty()) return false;
      p->op.a = Operand(operands[0], p).value_or(UnknownConstant());
      p->op.b = operands.size() > 1 ? Operand(operands[1], p).value_or(UnknownConstant()) : Constant(0, Known::kValue);
      return true;
    }
    p->op.kind = OpKind::kDma;
    std::string_view path = opcode.substr(4);
    path = path.substr(0, path.find('.'));
    const size_t to = path.find("_to_");
    const std::string_view from = path.substr(0, to);
    const std::string_view into = to == std::string_view::npos ? std::string_view{} : path.substr(to + 4);
    const auto on_chip = [](std::string_view s) { return s == "vmem" || s == "smem"; };
    if (into.starts_with("host")) {
      p->op.path = DmaPath::kHost;
    } else if (from == "hbm" && into == "hbm") {
      p->op.path = DmaPath::kHbmToHbm;
    } else if ((from == "hbm" && on_chip(into)) || (on_chip(from) && into == "hbm")) {
      p->op.path = DmaPath::kHbm;
    } else if (on_chip(from) && on_chip(into)) {
      p->op.path = DmaPath::kLocal;
    } else {
      p->op.path = DmaPath::kUnmodelled;
    }
    p->op.to_smem = into == "smem";
    p->op.a = Operand(Labelled(text, "size_in_granules"), p).value_or(UnknownConstant());
    p->op.b = Operand(Labelled(text, "/*dst_syncflagno"), p).value_or(UnknownConstant());
    p->op.c = p->op.to_smem ? Operand(Labelled(text, "/*smem"), p).value_or(UnknownConstant()) : UnknownConstant();
    return true;
  }

  struct PairHash {
    size_t operator()(const std::pair<uint64_t, int>& k) const {
      return std::hash<uint64_t>{}(k.first * 4 + static_cast<uint64_t>(k.second));
    }
  };

  const BundleProgram& source_;
  int index_;
  ScalarMemory* memory_;
  ScalarProgram program_;
  std::vector<uint8_t> opcode_useful_;
  std::vector<uint8_t> opcode_product_;
  std::vector<Pending> pending_;
  std::unordered_map<std::pair<uint64_t, int>, uint32_t, PairHash> constants_;
};

}  // namespace

ScalarProgram DecodeScalarProgram(const BundleProgram& source, std::string name, int index, ScalarMemory* memory) {
  return Decoder(source, std::move(name), index, memory).Run();
}

}  // namespace kernelwright::cost
