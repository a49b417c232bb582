// Operands are registers, also those that are constant: the interpreter then needs no other kind.
#include "daemon/cost/operation_decoder.h"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>

namespace kernelwright::cost {
namespace {

constexpr uint64_t kMaxParameter = 4096;

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

bool ComputesValue(OpKind kind) {
  switch (kind) {
    case OpKind::kStore:
    case OpKind::kDma:
    case OpKind::kWait:
    case OpKind::kSignal:
    case OpKind::kSemaphoreWait:
    case OpKind::kCall:
    case OpKind::kBranch:
    case OpKind::kUnsupportedBranch:
      return false;
    default:
      return true;
  }
}

}  // namespace

OperationDecoder::OperationDecoder(const compiler::BundleProgram& source, int index, ScalarMemory* memory,
                                   ScalarProgram* program)
    : source_(source), index_(index), memory_(memory), program_(program) {}

uint32_t OperationDecoder::NewRegister(Value value) {
  program_->registers.push_back(value);
  return static_cast<uint32_t>(program_->registers.size() - 1);
}

uint32_t OperationDecoder::Constant(uint64_t bits, Known known) {
  const auto [it, inserted] = constants_.emplace(std::pair{bits, static_cast<int>(known)}, 0);
  if (inserted) it->second = NewRegister({bits, known});
  return it->second;
}

// "#allocation13_spill" -> base address and whether it is a spill slot.
std::optional<uint64_t> OperationDecoder::Allocation(std::string_view s, bool* spill) {
  constexpr std::string_view kPrefix = "#allocation";
  if (!s.starts_with(kPrefix)) return std::nullopt;
  s.remove_prefix(kPrefix.size());
  if (spill != nullptr) *spill = s.ends_with("_spill");
  return memory_->AllocationBase(index_, s);
}

// A register, number or "[#allocation4 + $0x1]"; records what it reads. Nothing for another shape.
std::optional<uint32_t> OperationDecoder::Operand(std::string_view s, Pending* p) {
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
bool OperationDecoder::MemoryOperand(std::string_view s, Pending* p) {
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

std::optional<DecodedOperation> OperationDecoder::Decode(const compiler::BundleOp& op, uint32_t source,
                                                         uint32_t bundle) {
  const std::string_view text = source_.op_text(op);
  const std::string_view opcode = source_.opcode(op).name;
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
  if (!DecodeByOpcode(opcode, text, rest, &p)) {
    ++program_->undecoded;
    if (p.op.destination < 0) {
      // A store whose place is not understood may have written anything.
      if (!opcode.starts_with("sst")) return std::nullopt;
      p.op.kind = OpKind::kStore;
      p.op.aux = -1;
      p.op.a = p.op.b = p.op.c = UnknownConstant();
      p.op.otherwise = static_cast<int32_t>(UnknownConstant());
    } else {
      p.op.kind = OpKind::kUnknown;
      p.op.aux = -1;
    }
  }
  // What computes a value and names no register for it leaves nothing behind.
  if (p.op.destination < 0 && ComputesValue(p.op.kind)) return std::nullopt;
  return p;
}

// "(!%p34_p0), …" or "(!%p34_p0, %s36_s20), …": the second is what the result is when the predicate is false.
std::string_view OperationDecoder::Predicate(std::string_view rest, Pending* p) {
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

bool OperationDecoder::DecodeByOpcode(std::string_view opcode, std::string_view text, std::string_view rest,
                                      Pending* p) {
  const std::string_view stem = opcode.substr(0, opcode.find('.'));
  if (opcode.starts_with("dma.")) return DecodeDma(opcode, text, rest, p);
  if (opcode.starts_with("sbr")) return DecodeBranch(opcode, rest, p);
  if (opcode == "inlined_call") return DecodeCall(text, rest, p);
  if (stem == "sst") return DecodeStore(rest, p);
  if (stem == "vsyncadd" || stem == "vwait") return DecodeFlag(opcode, rest, p);
  if (stem == "sld") return DecodeLoad(rest, p);
  if (p->op.destination < 0) return true;  // writes nothing that the replay keeps
  if (stem == "inlined_call_operand") return DecodeParameter(opcode, rest, p);
  if (opcode == "scalar_parameter_address" || opcode == "reloc") {
    // Placed by the loader: a place of its own, distinct for each number.
    const auto operands = SplitOperands(rest);
    p->op.kind = OpKind::kMove;
    p->op.a = operands.empty() ? UnknownConstant() : LoaderAddress(opcode, operands[0]);
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
  return DecodeArithmetic(opcode, rest, p);
}

// A scalar operation may name its predicate behind its memory operand: "sld [smem:[…]] (!%p1_p0)".
bool OperationDecoder::DecodeLoad(std::string_view rest, Pending* p) {
  p->op.kind = OpKind::kLoad;
  const size_t close = rest.find("]]");
  if (close == std::string_view::npos || !MemoryOperand(rest, p)) return false;
  const std::string_view behind = Trim(rest.substr(close + 2));
  if (behind.starts_with("(%p") || behind.starts_with("(!%p")) Predicate(behind, p);
  return p->op.destination >= 0;
}

bool OperationDecoder::DecodeParameter(std::string_view opcode, std::string_view rest, Pending* p) {
  constexpr std::string_view kIndex = "index: ";
  p->op.kind = OpKind::kParameter;
  const size_t at = rest.find(kIndex);
  if (at == std::string_view::npos) return false;
  const std::string_view digits = rest.substr(at + kIndex.size());
  const auto number = ParseNumber(digits.substr(0, digits.find_first_not_of("0123456789")));
  if (!number || *number > kMaxParameter) return false;
  p->op.aux = static_cast<int32_t>(*number);
  p->op.a = OperandPlace("argument", *number);
  // Arrays lie where the caller put them; that place is not looked into, so that each operand can have one of its own.
  const std::string_view space = opcode.substr(std::min(opcode.size(), opcode.find('.')));
  if (space == ".hbm" || space == ".vmem") p->op.kind = OpKind::kMove;
  return true;
}

// A place of its own for an array that the program is given.
uint32_t OperationDecoder::OperandPlace(std::string_view kind, uint64_t number) {
  const uint64_t base = memory_->AllocationBase(index_, std::string(kind) + std::to_string(number));
  program_->operands.push_back({base, static_cast<size_t>(number)});
  return Constant(base, Known::kPointer);
}

bool OperationDecoder::DecodeArithmetic(std::string_view opcode, std::string_view rest, Pending* p) {
  const std::string_view stem = opcode.substr(0, opcode.find('.'));
  const auto operands = SplitOperands(rest);
  const bool floating = opcode.find("f32") != std::string_view::npos || opcode.find("bf16") != std::string_view::npos;
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

uint32_t OperationDecoder::LoaderAddress(std::string_view kind, std::string_view number) {
  const auto parsed = ParseNumber(number);
  if (!parsed) return UnknownConstant();
  return kind == "reloc" ? Constant(*parsed, Known::kPointer) : OperandPlace("parameter", *parsed);
}

bool OperationDecoder::DecodeCompare(std::string_view opcode, const std::vector<std::string_view>& operands,
                                     Pending* p) {
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

bool OperationDecoder::DecodeStore(std::string_view rest, Pending* p) {
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

bool OperationDecoder::DecodeBranch(std::string_view opcode, std::string_view rest, Pending* p) {
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

bool OperationDecoder::DecodeCall(std::string_view text, std::string_view rest, Pending* p) {
  p->op.kind = OpKind::kCall;
  p->op.destination = -1;
  std::vector<uint32_t> arguments;
  for (const std::string_view operand : SplitOperands(rest)) {
    arguments.push_back(OperandOrUnknown(operand, p));
  }
  // "/* %mm.1 = custom-call(…) */" or "/* <late-initialization> */"
  std::string_view name;
  if (const size_t open = text.find("/*"); open != std::string_view::npos) {
    name = Trim(text.substr(open + 2));
    if (name.starts_with('%')) name.remove_prefix(1);
    name = name.substr(0, name.find_first_of(" =*"));
  }
  p->op.aux = static_cast<int32_t>(program_->callees.size());
  p->op.a = static_cast<uint32_t>(program_->call_arguments.size());
  program_->callees.emplace_back(name);
  program_->call_arguments.push_back(std::move(arguments));
  return true;
}

// "vsyncadd [#allocation5], 1" and "vwait.ge.trace [#allocation3], 0".
bool OperationDecoder::DecodeFlag(std::string_view opcode, std::string_view rest, Pending* p) {
  const bool wait = opcode.starts_with("vwait");
  const auto operands = SplitOperands(rest);
  p->op.kind = wait ? OpKind::kSemaphoreWait : OpKind::kSignal;
  p->op.destination = -1;
  // A wait of another form, or for another chip's flag, is for something that is not known.
  const bool known = operands.size() == 2 && (wait ? opcode.starts_with("vwait.ge") : opcode == "vsyncadd");
  p->op.a = known ? OperandOrUnknown(operands[0], p) : UnknownConstant();
  p->op.b = known ? OperandOrUnknown(operands[1], p) : UnknownConstant();
  return true;
}

bool OperationDecoder::DecodeDma(std::string_view opcode, std::string_view text, std::string_view rest, Pending* p) {
  p->op.destination = -1;
  if (opcode.starts_with("dma.done")) {
    p->op.kind = OpKind::kWait;
    const auto operands = SplitOperands(rest);
    if (operands.empty()) return false;
    p->op.a = OperandOrUnknown(operands[0], p);
    p->op.b = operands.size() > 1 ? OperandOrUnknown(operands[1], p) : Constant(0, Known::kValue);
    return true;
  }
  p->op.kind = OpKind::kDma;
  std::string_view path = opcode.substr(4);
  path = path.substr(0, path.find('.'));
  const size_t to = path.find("_to_");
  const std::string_view from = path.substr(0, to);
  const std::string_view into = to == std::string_view::npos ? std::string_view{} : path.substr(to + 4);
  const auto on_chip = [](std::string_view s) { return s == "vmem" || s == "smem"; };
  // "dma.general … /* smem-to-hbm */": the opcode does not tell where from and where to, the comment does. In the
  // program around the kernels it is a message to the SparseCores, whose flag only the loader knows.
  const bool message = path == "general" && text.find("-to-hbm */") != std::string_view::npos;
  // A window of an operand in HBM with more strides than the plain forms take.
  const bool window = path == "general" && !message && text.find("window_bounds:") != std::string_view::npos;
  if (into.starts_with("host")) {
    p->op.path = DmaPath::kHost;
  } else if (from == "hbm" && into == "hbm") {
    p->op.path = DmaPath::kHbmToHbm;
  } else if (window || (from == "hbm" && on_chip(into)) || (on_chip(from) && into == "hbm")) {
    p->op.path = DmaPath::kHbm;
  } else if (on_chip(from) && on_chip(into)) {
    p->op.path = DmaPath::kLocal;
  } else if (message) {
    p->op.path = program_->is_top_level ? DmaPath::kHost : DmaPath::kHbm;
  } else {
    p->op.path = DmaPath::kUnmodelled;
  }
  p->op.to_smem = into == "smem";
  p->op.a = OperandOrUnknown(Labelled(text, "size_in_granules"), p);
  p->op.b = OperandOrUnknown(Labelled(text, "/*dst_syncflagno"), p);
  if (p->op.to_smem) {
    p->op.c = OperandOrUnknown(Labelled(text, "/*smem"), p);
    // Where it comes from, when that is one piece: what is known of an operand may land in scalar memory.
    const bool strided = !Labelled(text, "/*src_stride").empty();
    const std::string label = "/*" + std::string(from);
    p->op.otherwise = static_cast<int32_t>(strided ? UnknownConstant() : OperandOrUnknown(Labelled(text, label), p));
  } else {
    p->op.c = UnknownConstant();
  }
  return true;
}

}  // namespace kernelwright::cost
