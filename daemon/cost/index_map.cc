// A map's graph is flattened into a list of instructions over slots: calls (jax wraps floor division in one) are
// inlined.
#include "daemon/cost/index_map.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>

namespace kernelwright::cost {
namespace {

using Op = IndexMap::Op;

constexpr int kMaxDepth = 32;
constexpr size_t kMaxInstructions = 100000;

struct NamedOp {
  std::string_view name;
  Op op;
  size_t inputs;
};
constexpr std::array kOps = {
    NamedOp{"add", Op::kAdd, 2},
    NamedOp{"sub", Op::kSub, 2},
    NamedOp{"mul", Op::kMul, 2},
    NamedOp{"div", Op::kDiv, 2},
    NamedOp{"rem", Op::kRem, 2},
    NamedOp{"min", Op::kMin, 2},
    NamedOp{"max", Op::kMax, 2},
    NamedOp{"neg", Op::kNeg, 1},
    NamedOp{"abs", Op::kAbs, 1},
    NamedOp{"sign", Op::kSign, 1},
    NamedOp{"and", Op::kAnd, 2},
    NamedOp{"or", Op::kOr, 2},
    NamedOp{"xor", Op::kXor, 2},
    NamedOp{"not", Op::kNot, 1},
    NamedOp{"shift_left", Op::kShiftLeft, 2},
    NamedOp{"shift_right_logical", Op::kShiftRightLogical, 2},
    NamedOp{"shift_right_arithmetic", Op::kShiftRightArithmetic, 2},
    NamedOp{"eq", Op::kEq, 2},
    NamedOp{"ne", Op::kNe, 2},
    NamedOp{"lt", Op::kLt, 2},
    NamedOp{"le", Op::kLe, 2},
    NamedOp{"gt", Op::kGt, 2},
    NamedOp{"ge", Op::kGe, 2},
    NamedOp{"clamp", Op::kClamp, 3},
    NamedOp{"copy", Op::kCopy, 1},
    NamedOp{"copy_p", Op::kCopy, 1},
    NamedOp{"squeeze", Op::kCopy, 1},
    NamedOp{"reshape", Op::kCopy, 1},
    NamedOp{"stop_gradient", Op::kCopy, 1},
};

bool IsCall(std::string_view name) {
  return name == "pjit" || name == "jit" || name == "closed_call" || name == "core_call" || name == "custom_jvp_call" ||
         name == "custom_vjp_call" || name == "remat" || name == "checkpoint" || name == "named_call";
}

bool IsInteger(std::string_view dtype) {
  return dtype == "int32" || dtype == "uint32" || dtype == "bool" || dtype == "int64" || dtype == "int16" ||
         dtype == "int8" || dtype == "uint8" || dtype == "uint16";
}

int64_t Wrap(int64_t v) { return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(v))); }

Status Refuse(std::string what) {
  return {ErrorKind::kLimit, "the index map cannot be evaluated: " + std::move(what), "index map"};
}

// Nothing on a division by zero.
std::optional<int64_t> Apply(Op op, int64_t immediate, std::span<const int64_t> in) {
  const int64_t a = in[0];
  const int64_t b = in.size() > 1 ? in[1] : 0;
  switch (op) {
    case Op::kAdd:
      return Wrap(a + b);
    case Op::kSub:
      return Wrap(a - b);
    case Op::kMul:
      return Wrap(a * b);
    case Op::kDiv:
      if (b == 0) return std::nullopt;
      return Wrap(a / b);
    case Op::kRem:
      if (b == 0) return std::nullopt;
      return a % b;
    case Op::kMin:
      return std::min(a, b);
    case Op::kMax:
      return std::max(a, b);
    case Op::kNeg:
      return Wrap(-a);
    case Op::kAbs:
      return Wrap(a < 0 ? -a : a);
    case Op::kSign:
      return (a > 0) - (a < 0);
    case Op::kAnd:
      return a & b;
    case Op::kOr:
      return a | b;
    case Op::kXor:
      return a ^ b;
    case Op::kNot:
      return ~a;
    case Op::kNotBool:
      return a == 0;
    case Op::kShiftLeft:
      return b < 0 || b > 31 ? 0 : Wrap(static_cast<int64_t>(static_cast<uint64_t>(a) << b));
    case Op::kShiftRightLogical:
      return b < 0 || b > 31 ? 0 : Wrap(static_cast<uint32_t>(a) >> b);
    case Op::kShiftRightArithmetic:
      return a >> std::clamp<int64_t>(b, 0, 31);
    case Op::kEq:
      return a == b;
    case Op::kNe:
      return a != b;
    case Op::kLt:
      return a < b;
    case Op::kLe:
      return a <= b;
    case Op::kGt:
      return a > b;
    case Op::kGe:
      return a >= b;
    case Op::kSelect: {
      const auto which = static_cast<size_t>(std::clamp<int64_t>(a, 0, static_cast<int64_t>(in.size()) - 2));
      return in[1 + which];
    }
    case Op::kClamp:
      return std::min(std::max(b, a), in[2]);
    case Op::kCopy:
      return a;
    case Op::kPow: {
      int64_t result = 1;
      for (int64_t i = 0; i < immediate; ++i) result = Wrap(result * a);
      return result;
    }
  }
  return std::nullopt;
}

}  // namespace

class IndexMapCompiler {
 public:
  explicit IndexMapCompiler(size_t grid_rank) : grid_rank_(grid_rank) {}

  Expected<IndexMap> Run(const Graph& map) {
    if (map.inputs.size() < grid_rank_) return Fail(Refuse("it has fewer inputs than the grid has axes"));
    out_.initial_.assign(grid_rank_, 0);
    for (size_t i = 0; i < grid_rank_; ++i) slots_[map.inputs[i].id] = static_cast<uint32_t>(i);
    // Scalar-prefetch refs get no slot: reading one fails as an unknown value, with its own message.
    for (size_t i = grid_rank_; i < map.inputs.size(); ++i) refs_[map.inputs[i].id] = true;
    if (Status status = Inline(map, 0); !status.ok()) return Fail(std::move(status));
    for (const Operand& operand : map.outputs) {
      const auto slot = Slot(operand);
      if (!slot) return Fail(slot.error());
      out_.outputs_.push_back(*slot);
    }
    out_.Analyse(grid_rank_);
    return std::move(out_);
  }

 private:
  uint32_t NewSlot(int64_t value) {
    out_.initial_.push_back(value);
    return static_cast<uint32_t>(out_.initial_.size() - 1);
  }

  Expected<uint32_t> Slot(const Operand& operand) {
    if (operand.value) {
      if (const auto it = slots_.find(*operand.value); it != slots_.end()) return it->second;
      if (refs_.contains(*operand.value)) {
        return Fail(Refuse("it reads a scalar-prefetch operand, whose content is known only at run time"));
      }
      return Fail(Refuse("it uses a value that is not a scalar integer"));
    }
    if (const auto* integer = std::get_if<int64_t>(&operand.literal)) return NewSlot(*integer);
    if (const auto* flag = std::get_if<bool>(&operand.literal)) return NewSlot(*flag ? 1 : 0);
    return Fail(Refuse("it uses a literal that is not an integer"));
  }

  Status Inline(const Graph& graph, int depth) {
    if (depth > kMaxDepth) return Refuse("its calls are nested too deeply");
    for (const GraphConstant& constant : graph.constants) {
      if (const auto value = ConstantValue(constant)) slots_[constant.value] = NewSlot(*value);
    }
    for (const Operation& op : graph.operations) {
      if (out_.instructions_.size() > kMaxInstructions) return Refuse("it is too long");
      if (Status status = Add(op, depth); !status.ok()) return status;
    }
    return {};
  }

  // Scalar integers only; anything else stays unknown and fails where it is used.
  static std::optional<int64_t> ConstantValue(const GraphConstant& constant) {
    for (const int64_t dim : constant.type.dims) {
      if (dim != 1) return std::nullopt;
    }
    if (!IsInteger(constant.type.dtype) || constant.data.empty() || constant.data.size() > 8) return std::nullopt;
    uint64_t bits = 0;
    for (size_t i = constant.data.size(); i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(constant.data[i]);
    const auto shift = static_cast<int>(64 - 8 * constant.data.size());
    if (constant.type.dtype.starts_with("int")) return static_cast<int64_t>(bits << shift) >> shift;
    return static_cast<int64_t>(bits);
  }

  Status Add(const Operation& op, int depth) {
    if (IsCall(op.name)) return AddCall(op, depth);
    if (op.outputs.size() != 1) return Refuse("operation '" + op.name + "' is not known here");
    IndexMap::Instruction instruction;
    if (op.name == "select_n" && op.inputs.size() >= 2) {
      instruction.op = Op::kSelect;
    } else if (op.name == "integer_pow" && op.inputs.size() == 1) {
      instruction.op = Op::kPow;
      const auto it = op.attributes.find("y");
      const auto* exponent = it == op.attributes.end() ? nullptr : std::get_if<int64_t>(&it->second);
      if (exponent == nullptr || *exponent < 0 || *exponent > 32) return Refuse("a power without a small exponent");
      instruction.immediate = *exponent;
    } else if (op.name == "convert_element_type" && op.inputs.size() == 1) {
      if (!IsInteger(op.outputs[0].type.dtype)) return Refuse("it computes in " + op.outputs[0].type.dtype);
      instruction.op = Op::kCopy;
    } else if (op.name == "broadcast_in_dim" && op.inputs.size() == 1) {
      instruction.op = Op::kCopy;
    } else {
      const auto* known = std::find_if(kOps.begin(), kOps.end(), [&](const NamedOp& o) { return o.name == op.name; });
      if (known == kOps.end() || known->inputs != op.inputs.size()) {
        return Refuse("operation '" + op.name + "' is not known here");
      }
      instruction.op = known->op;
    }
    for (const int64_t dim : op.outputs[0].type.dims) {
      if (dim != 1) return Refuse("operation '" + op.name + "' works on an array");
    }
    if (!IsInteger(op.outputs[0].type.dtype)) return Refuse("it computes in " + op.outputs[0].type.dtype);
    if (instruction.op == Op::kNot && op.outputs[0].type.dtype == "bool") instruction.op = Op::kNotBool;
    for (const Operand& operand : op.inputs) {
      const auto slot = Slot(operand);
      if (!slot) return slot.error();
      instruction.inputs.push_back(*slot);
    }
    instruction.destination = NewSlot(0);
    slots_[op.outputs[0].id] = instruction.destination;
    out_.instructions_.push_back(std::move(instruction));
    return {};
  }

  Status AddCall(const Operation& op, int depth) {
    if (op.regions.empty()) return Refuse("call '" + op.name + "' without a body");
    const Graph& body = op.regions[0];
    if (body.inputs.size() != op.inputs.size() || body.outputs.size() != op.outputs.size()) {
      return Refuse("call '" + op.name + "' with another number of arguments than its body");
    }
    for (size_t i = 0; i < body.inputs.size(); ++i) {
      const auto slot = Slot(op.inputs[i]);
      if (!slot) return slot.error();
      slots_[body.inputs[i].id] = *slot;
    }
    if (Status status = Inline(body, depth + 1); !status.ok()) return status;
    for (size_t i = 0; i < body.outputs.size(); ++i) {
      const auto slot = Slot(body.outputs[i]);
      if (!slot) return slot.error();
      // A copy: the same body may be called again and its slots overwritten.
      slots_[op.outputs[i].id] = *slot;
    }
    return {};
  }

  size_t grid_rank_;
  IndexMap out_;
  std::unordered_map<uint32_t, uint32_t> slots_;
  std::unordered_map<uint32_t, bool> refs_;
};

Expected<IndexMap> IndexMap::Compile(const Graph& map, size_t grid_rank) {
  return IndexMapCompiler(grid_rank).Run(map);
}

bool IndexMap::Affine::is_constant() const {
  return std::all_of(coefficients.begin(), coefficients.end(), [](const std::vector<int64_t>& row) {
    return std::all_of(row.begin(), row.end(), [](int64_t c) { return c == 0; });
  });
}

void IndexMap::Analyse(size_t grid_rank) {
  // Every slot as an affine function of the grid ids, or nothing.
  struct Form {
    bool known = false;
    std::vector<int64_t> c;
    int64_t k = 0;
  };
  std::vector<Form> forms(initial_.size());
  for (size_t i = 0; i < initial_.size(); ++i) {
    forms[i].known = true;
    forms[i].c.assign(grid_rank, 0);
    if (i < grid_rank) {
      forms[i].c[i] = 1;
    } else {
      forms[i].k = initial_[i];
    }
  }
  const auto constant = [](const Form& f) {
    return f.known && std::all_of(f.c.begin(), f.c.end(), [](int64_t c) { return c == 0; });
  };
  for (const Instruction& instruction : instructions_) {
    Form result;
    result.c.assign(grid_rank, 0);
    bool all_constant = true;
    bool all_known = true;
    std::vector<int64_t> values;
    for (const uint32_t input : instruction.inputs) {
      all_constant &= constant(forms[input]);
      all_known &= forms[input].known;
      values.push_back(forms[input].k);
    }
    if (all_constant) {
      if (const auto value = Apply(instruction.op, instruction.immediate, values)) {
        result.known = true;
        result.k = *value;
      }
    } else if (all_known && (instruction.op == Op::kAdd || instruction.op == Op::kSub)) {
      const Form& a = forms[instruction.inputs[0]];
      const Form& b = forms[instruction.inputs[1]];
      const int64_t sign = instruction.op == Op::kAdd ? 1 : -1;
      result.known = true;
      for (size_t i = 0; i < grid_rank; ++i) result.c[i] = Wrap(a.c[i] + sign * b.c[i]);
      result.k = Wrap(a.k + sign * b.k);
    } else if (all_known && instruction.op == Op::kMul &&
               (constant(forms[instruction.inputs[0]]) || constant(forms[instruction.inputs[1]]))) {
      const bool first = constant(forms[instruction.inputs[0]]);
      const Form& f = forms[instruction.inputs[first ? 1 : 0]];
      const int64_t factor = forms[instruction.inputs[first ? 0 : 1]].k;
      result.known = true;
      for (size_t i = 0; i < grid_rank; ++i) result.c[i] = Wrap(f.c[i] * factor);
      result.k = Wrap(f.k * factor);
    } else if (all_known && instruction.op == Op::kCopy) {
      result = forms[instruction.inputs[0]];
    } else if (all_known && instruction.op == Op::kNeg) {
      const Form& f = forms[instruction.inputs[0]];
      result.known = true;
      for (size_t i = 0; i < grid_rank; ++i) result.c[i] = -f.c[i];
      result.k = -f.k;
    }
    forms[instruction.destination] = std::move(result);
  }
  is_affine_ = true;
  affine_ = Affine{};
  for (const uint32_t output : outputs_) {
    if (!forms[output].known) {
      is_affine_ = false;
      return;
    }
    affine_.coefficients.push_back(forms[output].c);
    affine_.constants.push_back(forms[output].k);
  }
}

bool IndexMap::Evaluate(std::span<const int64_t> point, std::vector<int64_t>* scratch, std::span<int64_t> out) const {
  std::vector<int64_t>& slots = *scratch;
  slots = initial_;
  std::copy(point.begin(), point.end(), slots.begin());
  std::array<int64_t, 8> small{};
  std::vector<int64_t> large;
  for (const Instruction& instruction : instructions_) {
    std::span<int64_t> in;
    if (instruction.inputs.size() <= small.size()) {
      in = std::span(small).first(instruction.inputs.size());
    } else {
      large.resize(instruction.inputs.size());
      in = large;
    }
    for (size_t i = 0; i < in.size(); ++i) in[i] = slots[instruction.inputs[i]];
    const auto value = Apply(instruction.op, instruction.immediate, in);
    // Both arms of a select are computed, also a division that the other arm avoids; its result is then not used.
    slots[instruction.destination] = value.value_or(0);
    if (!value) return false;
  }
  for (size_t i = 0; i < outputs_.size(); ++i) out[i] = slots[outputs_[i]];
  return true;
}

Expected<int64_t> CountBlockChanges(const IndexMap& map, std::span<const int64_t> grid, int64_t max_points) {
  int64_t points = 1;
  for (const int64_t extent : grid) {
    if (extent <= 0) return Fail(Refuse("the grid has an axis without a fixed positive size"));
    if (points > std::numeric_limits<int64_t>::max() / extent) return Fail(Refuse("the grid is too large"));
    points *= extent;
  }
  if (const IndexMap::Affine* affine = map.affine()) {
    // A step either advances axis l and resets all axes behind it, or is the first.
    int64_t changes = 1;
    int64_t before = 1;
    for (size_t l = 0; l < grid.size(); ++l) {
      bool moved = false;
      for (const std::vector<int64_t>& c : affine->coefficients) {
        int64_t delta = c[l];
        for (size_t m = l + 1; m < grid.size(); ++m) delta -= c[m] * (grid[m] - 1);
        moved |= delta != 0;
      }
      if (moved) changes += before * (grid[l] - 1);
      before *= grid[l];
    }
    return changes;
  }
  if (points > max_points) return Fail(Refuse("the grid is too large to be walked"));
  std::vector<int64_t> point(grid.size(), 0);
  std::vector<int64_t> scratch;
  std::vector<int64_t> last(map.outputs());
  std::vector<int64_t> now(map.outputs());
  int64_t changes = 0;
  for (int64_t step = 0; step < points; ++step) {
    if (!map.Evaluate(point, &scratch, now)) return Fail(Refuse("it divides by zero"));
    if (step == 0 || now != last) ++changes;
    std::swap(now, last);
    for (size_t axis = grid.size(); axis-- > 0;) {
      if (++point[axis] < grid[axis]) break;
      point[axis] = 0;
    }
  }
  return changes;
}

}  // namespace kernelwright::cost
