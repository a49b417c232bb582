// A loop is run once with its first values, which is certain to happen when its length is known, and once more with
// everything unknown, so that no store of a later round is missed. A branch whose predicate is unknown is run with
// everything unknown too. In these second runs nothing is reported and what is stored counts as written.
#include "daemon/diagnose/kernel_lint_steps.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "daemon/kernels/index_map.h"

namespace kernelwright::diagnose {
namespace {

constexpr int64_t kMaxSteps = 256;
constexpr int64_t kMaxLines = 4096;
constexpr int64_t kMaxOperations = 400000;
constexpr int64_t kNarrowSumLeast = 8;  // additions in 16 bits before the error is worth a word

using Kind = StepFinding::Kind;

struct Source {
  Kind kind = Kind::kUninitialised;
  const Operation* operation = nullptr;
  int ref = -1;
  int axis = -1;
  int dim = -1;
};

struct Value {
  std::optional<int64_t> scalar;
  uint32_t axes = 0;          // program ids that it depends on
  int ref = -1;               // a reference
  std::vector<int> sources;   // garbage in it
  std::vector<int> tail;      // per dimension: reference whose padding is in it, or -1; empty: none
  std::vector<int> tail_dim;  // the dimension of that reference's array
  int read_of = -1;           // exactly the content of this reference
  int sum_of = -1;            // this reference's content plus something
  bool sum_narrow = false;
  bool product = false;                     // a 32-bit product or sum
  const Operation* narrowed = nullptr;      // … that was rounded to 16 bits here
  const Operation* sum_narrowed = nullptr;  // the running sum has such a one in it
};

struct RefState {
  bool written = false;
  std::vector<int64_t> position;  // of the last store
  std::vector<std::optional<int64_t>> block;
  bool block_known = false;
  bool revisited = false;  // the block was left before
  std::set<std::vector<std::optional<int64_t>>> left;
  int64_t narrow_sums = 0;
  int64_t narrowed_addends = 0;
};

bool IsNarrowFloat(const std::string& dtype) { return dtype == "bfloat16" || dtype == "float16"; }

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsUnary(std::string_view name) {
  return IsOneOf(name, {"convert_element_type", "neg", "exp", "exp2", "log", "log1p", "tanh", "logistic", "sqrt",
                        "rsqrt", "sin", "cos", "abs", "integer_pow", "square", "copy", "erf", "stop_gradient"});
}

bool IsBinary(std::string_view name) { return IsOneOf(name, {"add", "add_any", "sub", "mul", "div", "max", "min"}); }

bool IsReduction(std::string_view name) {
  return IsOneOf(name, {"reduce_sum", "reduce_max", "reduce_min", "reduce_prod"});
}

// Operations whose result is garbage when an operand is.
bool CarriesGarbage(std::string_view name) {
  return IsUnary(name) || IsBinary(name) || IsReduction(name) ||
         IsOneOf(name, {"dot_general", "reshape", "broadcast_in_dim", "transpose", "squeeze", "expand_dims"});
}

bool IsPlainCall(std::string_view name) {
  return IsOneOf(name, {"pjit", "jit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat",
                        "checkpoint", "run_scoped"});
}

std::optional<int64_t> ScalarResult(const Operation& operation, const std::vector<Value>& in) {
  const std::string& name = operation.name;
  if (name == "select_n") {
    if (in.empty() || !in[0].scalar) return std::nullopt;
    const auto chosen = static_cast<size_t>(*in[0].scalar) + 1;
    return *in[0].scalar >= 0 && chosen < in.size() ? in[chosen].scalar : std::nullopt;
  }
  if (in.empty() || std::any_of(in.begin(), in.end(), [](const Value& v) { return !v.scalar; })) return std::nullopt;
  const int64_t a = *in[0].scalar;
  const std::string dtype = operation.outputs.empty() ? "" : operation.outputs[0].type.dtype;
  if (!dtype.starts_with("int") && !dtype.starts_with("uint") && dtype != "bool") return std::nullopt;
  if (in.size() == 1) {
    if (IsOneOf(name, {"convert_element_type", "copy", "squeeze", "reshape", "stop_gradient", "multiple_of"})) return a;
    if (name == "neg") return -a;
    if (name == "abs") return a < 0 ? -a : a;
    if (name == "sign") return a > 0 ? 1 : a < 0 ? -1 : 0;
    if (name == "not") return dtype == "bool" ? static_cast<int64_t>(a == 0) : ~a;
    return std::nullopt;
  }
  if (in.size() == 3 && name == "clamp") return std::min(std::max(*in[1].scalar, a), *in[2].scalar);
  if (in.size() != 2) return std::nullopt;
  const int64_t b = *in[1].scalar;
  constexpr int64_t kLarge = int64_t{1} << 31;
  if (a > kLarge || a < -kLarge || b > kLarge || b < -kLarge) return std::nullopt;
  if (name == "add") return a + b;
  if (name == "sub") return a - b;
  if (name == "mul") return a * b;
  if (name == "div") return b == 0 ? std::nullopt : std::optional(a / b);
  if (name == "rem") return b == 0 ? std::nullopt : std::optional(a % b);
  if (name == "max") return std::max(a, b);
  if (name == "min") return std::min(a, b);
  if (name == "eq") return a == b;
  if (name == "ne") return a != b;
  if (name == "lt") return a < b;
  if (name == "le") return a <= b;
  if (name == "gt") return a > b;
  if (name == "ge") return a >= b;
  if (name == "and") return a & b;
  if (name == "or") return a | b;
  if (name == "xor") return a ^ b;
  return std::nullopt;
}

// "(((1),(0)),((),()))" → {{1}, {0}, {}, {}}: contracted dimensions of both sides, then batch dimensions.
std::vector<std::vector<int>> DimensionNumbers(const Operation& dot) {
  std::vector<std::vector<int>> lists;
  const std::string text = TextAttribute(dot, "dimension_numbers.structure");
  int depth = 0;
  int number = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      number = std::max(number, 0) * 10 + (c - '0');
      continue;
    }
    if (number >= 0 && !lists.empty()) lists.back().push_back(number);
    number = -1;
    if (c == '(' && ++depth == 3) lists.emplace_back();
    if (c == ')') --depth;
  }
  lists.resize(4);
  return lists;
}

// Dimensions of a reference that an index leaves whole, in the order of the result: `[0:8:1, $2, 0:128:1]`.
std::optional<std::vector<int>> WholeDims(const Operation& get, const std::vector<int64_t>& dims) {
  const std::string text = TextAttribute(get, "arguments");
  std::vector<int> whole;
  if (text == "()") {
    for (size_t d = 0; d < dims.size(); ++d) whole.push_back(static_cast<int>(d));
    return whole;
  }
  if (!text.starts_with("([") || !text.ends_with("])") || text.find(']') != text.size() - 2) return std::nullopt;
  size_t at = 2;
  for (size_t d = 0; d < dims.size(); ++d) {
    size_t end = text.find(", ", at);
    if (end == std::string::npos) end = text.size() - 2;
    if (at > end) return std::nullopt;
    const std::string part = text.substr(at, end - at);
    at = end + 2;
    const bool sliced = part.find(':') != std::string::npos;
    if (part == "0:" + std::to_string(dims[d]) + ":1") {
      whole.push_back(static_cast<int>(d));
    } else if (sliced) {
      return std::nullopt;
    }
  }
  return whole;
}

// One part of an index, `2`, `$1`, `$1:8:1`: `$n` is operand n of the operation.
struct IndexPart {
  std::optional<int64_t> start;
  int64_t size = 1;
  int64_t stride = 1;
};

std::optional<int64_t> IndexNumber(const std::string& text, const std::vector<Value>& in) {
  const bool operand = text.starts_with("$");
  const std::string digits = operand ? text.substr(1) : text;
  if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  const int64_t number = std::stoll(digits);
  if (!operand) return number;
  return static_cast<size_t>(number) < in.size() ? in[static_cast<size_t>(number)].scalar : std::nullopt;
}

// The parts of a single index, or nothing for views of views.
std::vector<IndexPart> IndexParts(const Operation& operation, const std::vector<Value>& in) {
  const std::string text = TextAttribute(operation, "arguments");
  std::vector<IndexPart> parts;
  if (!text.starts_with("([") || !text.ends_with("])") || text.find(']') != text.size() - 2) return parts;
  for (size_t at = 2; at < text.size() - 2;) {
    const size_t end = std::min(text.find(", ", at), text.size() - 2);
    const std::string part = text.substr(at, end - at);
    at = end + 2;
    IndexPart& out = parts.emplace_back();
    const size_t first = part.find(':');
    out.start = IndexNumber(part.substr(0, first), in);
    if (first == std::string::npos) continue;
    const size_t second = part.find(':', first + 1);
    const auto size = IndexNumber(part.substr(first + 1, second - first - 1), in);
    const auto stride =
        second == std::string::npos ? std::optional<int64_t>(1) : IndexNumber(part.substr(second + 1), in);
    if (size && stride) {
      out.size = *size;
      out.stride = *stride;
    } else {
      out.start = std::nullopt;
    }
  }
  return parts;
}

class Runner {
 public:
  Runner(const PallasCall& call, const std::vector<KernelRef>& refs) : call_(call), refs_(refs) {
    states_.resize(refs.size());
    for (size_t r = 0; r < refs.size(); ++r) {
      const KernelRef& ref = refs[r];
      if (ref.kind != KernelRef::Kind::kInput || ref.block < 0) continue;
      const BlockMapping& block = call.blocks[static_cast<size_t>(ref.block)];
      if (!block.has_index_map || block.block.size() != block.array.dims.size()) continue;
      for (size_t d = 0; d < block.block.size(); ++d) {
        const BlockDim& dim = block.block[d];
        if (dim.kind == BlockDim::Kind::kBlocked && dim.size > 0 && block.array.dims[d] > 0 &&
            block.array.dims[d] % dim.size != 0) {
          tailed_.push_back(r);
          break;
        }
      }
    }
  }

  StepResult Run() {
    const bool dynamic = std::any_of(call_.grid.begin(), call_.grid.end(), [](int64_t n) { return n <= 0; });
    int64_t total = 1;
    for (const int64_t n : call_.grid) total = total > (int64_t{1} << 40) ? total : total * std::max<int64_t>(n, 1);
    const int64_t steps = dynamic ? 1 : std::min(total, kMaxSteps);
    std::vector<int64_t> position(call_.grid.size(), 0);
    bool all = true;
    for (int64_t step = 0; step < steps && all; ++step) {
      all = Step(position, /*assume_written=*/false);
      Advance(&position);
    }
    result_.complete = all && !dynamic && steps == total;
    if (all && !dynamic && !result_.complete) result_.all_lines = RunLines();
    return std::move(result_);
  }

 private:
  void Advance(std::vector<int64_t>* position) const {
    for (size_t a = position->size(); a-- > 0;) {
      if (++(*position)[a] < call_.grid[a]) return;
      (*position)[a] = 0;
    }
  }

  // Every value of each axis, the other axes at their first and at their last; what carries over is not judged there.
  bool RunLines() {
    int64_t count = 0;
    for (const int64_t n : call_.grid) count += 2 * n;
    if (count > kMaxLines) return false;
    for (size_t a = 0; a < call_.grid.size(); ++a) {
      for (const bool last : {false, true}) {
        std::vector<int64_t> position(call_.grid.size(), 0);
        for (size_t b = 0; last && b < position.size(); ++b) position[b] = call_.grid[b] - 1;
        for (position[a] = 0; position[a] < call_.grid[a]; ++position[a]) {
          if (!Step(position, /*assume_written=*/true)) return false;
        }
      }
    }
    return true;
  }

  // False when the budget is used up.
  bool Step(const std::vector<int64_t>& position, bool assume_written) {
    position_ = position;
    for (size_t r = 0; r < refs_.size(); ++r) {
      RefState& state = states_[r];
      const KernelRef& ref = refs_[r];
      const bool memory = ref.type.memory_space == "vmem" || ref.type.memory_space == "smem";
      const bool judged = memory && !ref.aliased && !assume_written &&
                          (ref.kind == KernelRef::Kind::kOutput || ref.kind == KernelRef::Kind::kScratch);
      if (ref.kind == KernelRef::Kind::kOutput) EnterBlock(ref, &state);
      if (!judged) MarkWritten(&state);
      if (assume_written) state.narrow_sums = state.narrowed_addends = 0;
    }
    EvaluateTails();
    environment_.clear();
    uncertain_ = 0;
    trips_ = 1;
    for (size_t p = 0; p < call_.kernel.inputs.size(); ++p) {
      Value value;
      value.ref = static_cast<int>(p);
      environment_[call_.kernel.inputs[p].id] = value;
    }
    for (const GraphConstant& constant : call_.kernel.constants) environment_[constant.value] = Value();
    Execute(call_.kernel);
    return budget_ > 0;
  }

  // The block of an output in this step; another one than before has no content yet.
  void EnterBlock(const KernelRef& ref, RefState* state) const {
    const BlockMapping& block = call_.blocks[static_cast<size_t>(ref.block)];
    std::vector<std::optional<int64_t>> index;
    bool known = call_.grid.empty();
    if (block.has_index_map) {
      index = kernels::EvaluateIndexMap(block, position_);
      known = index.size() == block.block.size() &&
              std::all_of(index.begin(), index.end(), [](const auto& i) { return i.has_value(); });
    }
    if (!known) {
      *state = RefState();
      MarkWritten(state);
    } else if (!state->block_known || state->block != index) {
      RefState fresh;
      fresh.left = std::move(state->left);
      if (state->block_known) fresh.left.insert(std::move(state->block));
      fresh.revisited = fresh.left.contains(index);
      fresh.block = std::move(index);
      fresh.block_known = true;
      *state = std::move(fresh);
    }
  }

  void MarkWritten(RefState* state) const {
    state->written = true;
    state->position = position_;
  }

  // Which dimensions of the inputs' references hold padding in this step.
  void EvaluateTails() {
    tails_.clear();
    for (const size_t r : tailed_) {
      const BlockMapping& block = call_.blocks[static_cast<size_t>(refs_[r].block)];
      const auto index = kernels::EvaluateIndexMap(block, position_);
      if (index.size() != block.block.size()) continue;
      std::vector<int> dims;
      bool any = false;
      for (size_t d = 0; d < block.block.size(); ++d) {
        const BlockDim& dim = block.block[d];
        if (dim.kind == BlockDim::Kind::kSqueezed) continue;
        const bool tail = dim.kind == BlockDim::Kind::kBlocked && index[d] && *index[d] >= 0 &&
                          *index[d] * dim.size < block.array.dims[d] &&
                          (*index[d] + 1) * dim.size > block.array.dims[d];
        any = any || tail;
        dims.push_back(tail ? static_cast<int>(d) : -1);
      }
      if (any) tails_[static_cast<int>(r)] = std::move(dims);
    }
  }

  Value Read(const Operand& operand) const {
    if (operand.value) {
      const auto it = environment_.find(*operand.value);
      return it == environment_.end() ? Value() : it->second;
    }
    Value value;
    if (const auto* number = std::get_if<int64_t>(&operand.literal)) value.scalar = *number;
    if (const auto* flag = std::get_if<bool>(&operand.literal)) value.scalar = *flag ? 1 : 0;
    return value;
  }

  void Execute(const Graph& graph) {
    for (const Operation& operation : graph.operations) {
      if (--budget_ <= 0) return;
      std::vector<Value> in;
      in.reserve(operation.inputs.size());
      for (const Operand& operand : operation.inputs) in.push_back(Read(operand));
      std::vector<Value> out = Apply(operation, in);
      out.resize(operation.outputs.size());
      for (size_t i = 0; i < operation.outputs.size(); ++i) environment_[operation.outputs[i].id] = std::move(out[i]);
    }
  }

  std::vector<Value> RunRegion(const Operation& operation, size_t region, const std::vector<Value>& in, bool forget) {
    const Graph& graph = operation.regions[region];
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const int operand = OperandOfRegionInput(operation, region, i);
      Value value = operand >= 0 ? in[static_cast<size_t>(operand)] : Value();
      if (forget && value.ref < 0) value = Value();
      environment_[graph.inputs[i].id] = std::move(value);
    }
    Execute(graph);
    std::vector<Value> out;
    out.reserve(graph.outputs.size());
    for (const Operand& output : graph.outputs) out.push_back(Read(output));
    return out;
  }

  void RunUncertain(const Operation& operation, size_t region, const std::vector<Value>& in, bool forget) {
    ++uncertain_;
    RunRegion(operation, region, in, forget);
    --uncertain_;
  }

  std::vector<Value> Apply(const Operation& operation, const std::vector<Value>& in) {
    const std::string& name = operation.name;
    if (name == "program_id") {
      Value value;
      const int64_t axis = IntAttribute(operation, "axis", -1);
      if (axis >= 0 && axis < static_cast<int64_t>(position_.size())) {
        value.scalar = position_[static_cast<size_t>(axis)];
        if (axis < 32) value.axes = 1U << axis;
      }
      return {value};
    }
    if (name == "num_programs") {
      Value value;
      const int64_t axis = IntAttribute(operation, "axis", -1);
      if (axis >= 0 && axis < static_cast<int64_t>(call_.grid.size()) && call_.grid[static_cast<size_t>(axis)] > 0) {
        value.scalar = call_.grid[static_cast<size_t>(axis)];
      }
      return {value};
    }
    if (name == "cond") return Branch(operation, in);
    if (name == "scan") return Loop(operation, in);
    if (name == "get") return {Get(operation, in)};
    if (name == "swap") {
      Store(operation, in);
      return {};
    }
    if (IsPlainCall(name) && operation.regions.size() == 1) return RunRegion(operation, 0, in, /*forget=*/false);
    if (!operation.regions.empty()) {
      for (size_t r = 0; r < operation.regions.size(); ++r) RunUncertain(operation, r, in, /*forget=*/true);
      TouchAll(operation, in);
      return {};
    }
    TouchAll(operation, in);
    return Compute(operation, in);
  }

  // References that an operation may write count as written.
  void TouchAll(const Operation& operation, const std::vector<Value>& in) {
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i].ref < 0 || static_cast<size_t>(in[i].ref) >= states_.size()) continue;
      if (operation.name != "get" && (operation.effects.empty() || WritesOperand(operation, i))) {
        MarkWritten(&states_[static_cast<size_t>(in[i].ref)]);
      }
    }
  }

  std::vector<Value> Branch(const Operation& operation, const std::vector<Value>& in) {
    if (in.empty() || operation.regions.empty()) return {};
    BranchUse& use = result_.branches[&operation];
    use.axes |= in[0].axes;
    if (!in[0].scalar) {
      use.unknown = true;
      for (size_t r = 0; r < operation.regions.size(); ++r) RunUncertain(operation, r, in, /*forget=*/false);
      return {};
    }
    const auto last = static_cast<int64_t>(operation.regions.size()) - 1;
    const auto branch = static_cast<size_t>(std::clamp<int64_t>(*in[0].scalar, 0, last));
    use.taken.insert(branch);
    return RunRegion(operation, branch, in, /*forget=*/false);
  }

  std::vector<Value> Loop(const Operation& operation, const std::vector<Value>& in) {
    if (operation.regions.empty()) return {};
    const int64_t length = IntAttribute(operation, "length", 0);
    const auto fixed =
        static_cast<size_t>(IntAttribute(operation, "num_consts", 0) + IntAttribute(operation, "num_carry", 0));
    if (length <= 0) return {};
    const int64_t outer = trips_;
    trips_ = std::min<int64_t>(trips_ * length, 1 << 30);
    std::vector<Value> first = in;
    for (size_t i = fixed; i < first.size(); ++i) first[i] = Value();
    RunRegion(operation, 0, first, /*forget=*/false);
    trips_ = outer;
    if (length > 1) RunUncertain(operation, 0, in, /*forget=*/true);
    return {};
  }

  Value Get(const Operation& operation, const std::vector<Value>& in) {
    Value value;
    if (in.empty() || in[0].ref < 0 || static_cast<size_t>(in[0].ref) >= refs_.size()) return value;
    const int ref = in[0].ref;
    const RefState& state = states_[static_cast<size_t>(ref)];
    value.read_of = ref;
    CheckBounds(operation, in, ref);
    if (uncertain_ > 0) return value;
    if (!state.written) {
      const Kind kind = state.revisited ? Kind::kRevisited : Kind::kUninitialised;
      value.sources.push_back(AddSource({kind, &operation, ref, -1, -1}));
    } else if (refs_[static_cast<size_t>(ref)].kind == KernelRef::Kind::kOutput ||
               refs_[static_cast<size_t>(ref)].kind == KernelRef::Kind::kScratch) {
      for (size_t a = 0; a < call_.dimension_semantics.size() && a < position_.size(); ++a) {
        const bool parallel = call_.dimension_semantics[a].find("parallel") != std::string::npos;
        if (parallel && a < state.position.size() && state.position[a] != position_[a]) {
          value.sources.push_back(AddSource({Kind::kCarried, &operation, ref, static_cast<int>(a), -1}));
        }
      }
    }
    const auto tail = tails_.find(ref);
    if (tail != tails_.end()) {
      const auto whole = WholeDims(operation, refs_[static_cast<size_t>(ref)].type.dims);
      if (whole && !operation.outputs.empty() && whole->size() == operation.outputs[0].type.dims.size()) {
        for (const int d : *whole) {
          const int dim = static_cast<size_t>(d) < tail->second.size() ? tail->second[static_cast<size_t>(d)] : -1;
          value.tail.push_back(dim >= 0 ? ref : -1);
          value.tail_dim.push_back(dim);
        }
      }
    }
    return value;
  }

  // An index that certainly goes past the end of the reference.
  void CheckBounds(const Operation& operation, const std::vector<Value>& in, int ref) {
    if (uncertain_ > 0) return;
    const std::vector<int64_t>& dims = refs_[static_cast<size_t>(ref)].type.dims;
    const auto parts = IndexParts(operation, in);
    if (parts.size() != dims.size()) return;
    for (size_t d = 0; d < dims.size(); ++d) {
      const IndexPart& part = parts[d];
      if (!part.start || part.size <= 0 || dims[d] < 0) continue;
      if (*part.start + (part.size - 1) * part.stride < dims[d]) continue;
      StepFinding finding;
      finding.kind = Kind::kOverrun;
      finding.operation = &operation;
      finding.ref = ref;
      finding.dim = static_cast<int>(d);
      finding.start = *part.start;
      finding.size = part.size;
      finding.position = position_;
      Report(std::move(finding));
    }
  }

  void Store(const Operation& operation, const std::vector<Value>& in) {
    if (in.size() < 2 || in[0].ref < 0 || static_cast<size_t>(in[0].ref) >= refs_.size()) return;
    const int ref = in[0].ref;
    CheckBounds(operation, in, ref);
    RefState& state = states_[static_cast<size_t>(ref)];
    const Value& value = in[1];
    if (uncertain_ == 0) {
      for (const int s : value.sources) {
        const Source& source = sources_[static_cast<size_t>(s)];
        if (source.kind == Kind::kCarried && (source.ref != ref || value.sum_of != ref)) continue;
        StepFinding finding;
        finding.kind = source.kind;
        finding.operation = source.operation;
        finding.ref = source.ref;
        finding.axis = source.axis;
        finding.dim = source.dim;
        finding.position = position_;
        Report(std::move(finding));
      }
      const bool narrow = IsNarrowFloat(refs_[static_cast<size_t>(ref)].type.dtype);
      if (value.sum_of == ref && narrow) {
        state.narrow_sums += trips_;
        if (state.narrow_sums >= kNarrowSumLeast) {
          ReportSum(Kind::kNarrowSum, operation, ref, state.narrow_sums);
        }
      } else if (value.sum_of == ref && value.sum_narrowed != nullptr) {
        state.narrowed_addends += trips_;
        if (state.narrowed_addends >= 2) {
          ReportSum(Kind::kNarrowedAddend, *value.sum_narrowed, ref, state.narrowed_addends);
        }
      } else {
        state.narrow_sums = 0;
        state.narrowed_addends = 0;
      }
    }
    MarkWritten(&state);
  }

  std::vector<Value> Compute(const Operation& operation, const std::vector<Value>& in) {
    if (operation.outputs.empty()) return {};
    const TensorType& type = operation.outputs[0].type;
    const std::string& name = operation.name;
    Value value;
    for (const Value& operand : in) value.axes |= operand.axes;
    if (type.dims.empty()) value.scalar = ScalarResult(operation, in);
    if (name == "select_n") {
      // A scalar predicate that is known chooses; every other choice is made by values.
      if (!in.empty() && in[0].scalar && operation.inputs.size() > 1) {
        const auto chosen = static_cast<size_t>(std::clamp<int64_t>(*in[0].scalar, 0, 1 << 20)) + 1;
        if (chosen < in.size()) {
          const auto scalar = value.scalar;
          const uint32_t axes = value.axes;
          value = in[chosen];
          value.scalar = scalar;
          value.axes = axes;
        }
      }
      return {value};
    }
    if (name == "convert_element_type" && !in.empty()) {
      value.read_of = in[0].read_of;
      value.sum_of = in[0].sum_of;
      value.sum_narrowed = in[0].sum_narrowed;
      value.product = in[0].product && type.dtype == "float32";
      value.narrowed = in[0].narrowed;
      if (in[0].product && IsNarrowFloat(type.dtype)) value.narrowed = &operation;
    }
    if ((name == "add" || name == "add_any") && in.size() == 2) {
      for (const size_t side : {size_t{0}, size_t{1}}) {
        const Value& sum = in[side];
        if (sum.read_of < 0 && sum.sum_of < 0) continue;
        const int ref = sum.read_of >= 0 ? sum.read_of : sum.sum_of;
        const auto kind =
            static_cast<size_t>(ref) < refs_.size() ? refs_[static_cast<size_t>(ref)].kind : KernelRef::Kind::kInput;
        if (kind == KernelRef::Kind::kInput || kind == KernelRef::Kind::kPrefetch) continue;
        value.sum_of = ref;
        const Operation* narrowed = sum.sum_narrowed != nullptr ? sum.sum_narrowed : in[1 - side].narrowed;
        value.sum_narrowed = type.dtype == "float32" ? narrowed : nullptr;
        break;
      }
    }
    if (name == "dot_general" || name == "reduce_sum") value.product = type.dtype == "float32";
    if (CarriesGarbage(name)) {
      for (const Value& operand : in) {
        for (const int source : operand.sources) AddTo(&value.sources, source);
      }
    }
    if (uncertain_ == 0) FollowTails(operation, in, &value);
    return {value};
  }

  void FollowTails(const Operation& operation, const std::vector<Value>& in, Value* out) {
    const std::string& name = operation.name;
    const size_t rank = operation.outputs[0].type.dims.size();
    const auto has_tail = [](const Value& value) {
      return std::any_of(value.tail.begin(), value.tail.end(), [](int ref) { return ref >= 0; });
    };
    if (std::none_of(in.begin(), in.end(), has_tail)) return;
    if (IsUnary(name)) {
      out->tail = in[0].tail;
      out->tail_dim = in[0].tail_dim;
    } else if (IsBinary(name) && in.size() == 2) {
      for (const size_t side : {size_t{0}, size_t{1}}) {
        // A number of all elements, or the same padding on both sides; another array may be a mask.
        const bool scalar = operation.inputs[1 - side].value ? in[1 - side].scalar.has_value() : true;
        if (has_tail(in[side]) && (scalar || in[1 - side].tail == in[side].tail)) {
          out->tail = in[side].tail;
          out->tail_dim = in[side].tail_dim;
        }
      }
    } else if (name == "transpose") {
      const auto permutation = IntsAttribute(operation, "permutation");
      if (permutation.size() != in[0].tail.size()) return;
      for (const int64_t from : permutation) {
        out->tail.push_back(in[0].tail[static_cast<size_t>(from)]);
        out->tail_dim.push_back(in[0].tail_dim[static_cast<size_t>(from)]);
      }
    } else if (IsReduction(name)) {
      const auto axes = IntsAttribute(operation, "axes");
      for (size_t d = 0; d < in[0].tail.size(); ++d) {
        const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
        if (!reduced) {
          out->tail.push_back(in[0].tail[d]);
          out->tail_dim.push_back(in[0].tail_dim[d]);
        } else if (in[0].tail[d] >= 0) {
          AddTo(&out->sources, AddSource({Kind::kTail, &operation, in[0].tail[d], -1, in[0].tail_dim[d]}));
        }
      }
      if (out->tail.size() != rank) out->tail.clear();
    } else if (name == "dot_general" && in.size() >= 2) {
      const auto numbers = DimensionNumbers(operation);
      std::vector<int> tail;
      std::vector<int> dims;
      const auto take = [&](size_t side, size_t d) {
        const bool known = d < in[side].tail.size();
        tail.push_back(known ? in[side].tail[d] : -1);
        dims.push_back(known ? in[side].tail_dim[d] : -1);
      };
      for (const size_t side : {size_t{0}, size_t{1}}) {
        for (const int d : numbers[side]) {
          if (static_cast<size_t>(d) < in[side].tail.size() && in[side].tail[static_cast<size_t>(d)] >= 0) {
            AddTo(&out->sources, AddSource({Kind::kTail, &operation, in[side].tail[static_cast<size_t>(d)], -1,
                                            in[side].tail_dim[static_cast<size_t>(d)]}));
          }
        }
      }
      for (const int d : numbers[2]) take(0, static_cast<size_t>(d));
      for (const size_t side : {size_t{0}, size_t{1}}) {
        const Operand& operand = operation.inputs[side];
        const size_t side_rank = operand.value ? RankOf(side, in, numbers, rank) : 0;
        for (size_t d = 0; d < side_rank; ++d) {
          const auto is_in = [&](const std::vector<int>& list) {
            return std::find(list.begin(), list.end(), static_cast<int>(d)) != list.end();
          };
          if (!is_in(numbers[side]) && !is_in(numbers[side + 2])) take(side, d);
        }
      }
      if (tail.size() == rank) {
        out->tail = std::move(tail);
        out->tail_dim = std::move(dims);
      }
    }
  }

  // Rank of one side of a product: known where its padding is followed, else what is left of the result's rank.
  static size_t RankOf(size_t side, const std::vector<Value>& in, const std::vector<std::vector<int>>& numbers,
                       size_t rank) {
    if (!in[side].tail.empty()) return in[side].tail.size();
    const size_t other = 1 - side;
    if (in[other].tail.empty()) return 0;
    const size_t other_free = in[other].tail.size() - numbers[other].size() - numbers[other + 2].size();
    return rank - numbers[2].size() - other_free + numbers[side].size() + numbers[side + 2].size();
  }

  int AddSource(const Source& source) {
    sources_.push_back(source);
    return static_cast<int>(sources_.size()) - 1;
  }

  static void AddTo(std::vector<int>* sources, int source) {
    if (sources->size() < 6 && std::find(sources->begin(), sources->end(), source) == sources->end()) {
      sources->push_back(source);
    }
  }

  void ReportSum(Kind kind, const Operation& operation, int ref, int64_t count) {
    StepFinding finding;
    finding.kind = kind;
    finding.operation = &operation;
    finding.ref = ref;
    finding.count = count;
    finding.position = position_;
    Report(std::move(finding));
  }

  void Report(StepFinding finding) {
    for (StepFinding& known : result_.findings) {
      // A reduction of two operands with padding is one mistake.
      const bool same_tail = finding.kind == Kind::kTail && known.operation == finding.operation;
      if (known.kind == finding.kind && (known.ref == finding.ref || same_tail)) {
        if (same_tail && known.ref != finding.ref) known.other_ref = finding.ref;
        known.count = std::max(known.count, finding.count);
        return;
      }
    }
    result_.findings.push_back(std::move(finding));
  }

  const PallasCall& call_;
  const std::vector<KernelRef>& refs_;
  std::vector<RefState> states_;
  std::vector<size_t> tailed_;             // inputs whose arrays are no multiple of their blocks
  std::map<int, std::vector<int>> tails_;  // those with padding in this step: per dimension of the reference
  std::map<uint32_t, Value> environment_;
  std::vector<Source> sources_;
  std::vector<int64_t> position_;
  int uncertain_ = 0;
  int64_t trips_ = 1;
  int64_t budget_ = kMaxOperations;
  StepResult result_;
};

}  // namespace

StepResult RunSteps(const PallasCall& call, const std::vector<KernelRef>& refs) { return Runner(call, refs).Run(); }

}  // namespace kernelwright::diagnose
