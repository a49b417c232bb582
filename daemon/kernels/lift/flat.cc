// See flat.h.
#include "daemon/kernels/lift/flat.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace kernelwright::kernels::lift {
namespace {

bool IsCall(const std::string& name) {
  static const std::set<std::string> names = {
      "pjit",  "jit",        "closed_call", "core_call",       "custom_jvp_call",      "custom_vjp_call",
      "remat", "checkpoint", "remat2",      "custom_lin_call", "custom_vjp_call_jaxpr"};
  return names.contains(name);
}

// Reads a scalar constant from its bytes; nothing for types that no kernel computes with.
std::optional<Arg> ScalarConstant(const GraphConstant& constant) {
  const std::string& dtype = constant.type.dtype;
  const char* data = constant.data.data();
  const auto read = [&]<typename T>(T value) -> std::optional<double> {
    if (constant.data.size() != sizeof(T)) return std::nullopt;
    std::memcpy(&value, data, sizeof(T));
    return static_cast<double>(value);
  };
  std::optional<double> number;
  Arg arg;
  if (dtype == "float32") number = read(float{});
  if (dtype == "int32") number = read(int32_t{});
  if (dtype == "uint32") number = read(uint32_t{});
  if (dtype == "bool") number = read(uint8_t{});
  if (dtype == "bfloat16" && constant.data.size() == 2) {
    uint16_t bits = 0;
    std::memcpy(&bits, data, 2);
    number = std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  if (!number) return std::nullopt;
  arg.number = *number;
  arg.is_bool = dtype == "bool";
  arg.is_integer = dtype.find("int") != std::string::npos;
  return arg;
}

std::optional<Arg> LiteralArg(const Operand& operand) {
  Arg arg;
  if (const auto* integer = std::get_if<int64_t>(&operand.literal)) {
    arg.number = static_cast<double>(*integer);
    arg.is_integer = true;
  } else if (const auto* number = std::get_if<double>(&operand.literal)) {
    arg.number = *number;
  } else if (const auto* flag = std::get_if<bool>(&operand.literal)) {
    arg.number = *flag ? 1 : 0;
    arg.is_bool = true;
  } else {
    return std::nullopt;
  }
  return arg;
}

bool IsView(const std::string& op) {
  return op == "broadcast_in_dim" || op == "reshape" || op == "squeeze" || op == "expand_dims" || op == "copy" ||
         op == "stop_gradient" || op == "transpose";
}

// The value of an operation on numbers alone; nothing when it is not worth knowing.
std::optional<Arg> Fold(const Operation& operation, const std::vector<Arg>& args) {
  const std::string& op = operation.name;
  const TensorType& type = operation.outputs[0].type;
  Arg result;
  result.is_bool = type.dtype == "bool";
  result.is_integer = type.dtype.find("int") != std::string::npos;
  const auto number = [&](size_t i) { return args[i].number; };
  if (IsView(op)) {
    result.number = number(0);
  } else if (op == "convert_element_type") {
    result.number = result.is_integer ? std::trunc(number(0)) : result.is_bool ? (number(0) != 0) : number(0);
  } else if (op == "neg") {
    result.number = -number(0);
  } else if (op == "sqrt") {
    result.number = static_cast<float>(std::sqrt(static_cast<float>(number(0))));
  } else if (op == "rsqrt") {
    result.number = 1.0F / std::sqrt(static_cast<float>(number(0)));
  } else if (args.size() == 2) {
    const double a = number(0);
    const double b = number(1);
    if (op == "add") {
      result.number = a + b;
    } else if (op == "sub") {
      result.number = a - b;
    } else if (op == "mul") {
      result.number = a * b;
    } else if (op == "div" && b != 0) {
      result.number = result.is_integer ? std::trunc(a / b) : a / b;
    } else if (op == "max") {
      result.number = std::max(a, b);
    } else if (op == "min") {
      result.number = std::min(a, b);
    } else if (op == "gt") {
      result.number = a > b;
    } else if (op == "ge") {
      result.number = a >= b;
    } else if (op == "lt") {
      result.number = a < b;
    } else if (op == "le") {
      result.number = a <= b;
    } else if (op == "eq") {
      result.number = a == b;
    } else if (op == "ne") {
      result.number = a != b;
    } else {
      return std::nullopt;
    }
  } else {
    return std::nullopt;
  }
  if (type.dtype == "float32") result.number = static_cast<float>(result.number);
  return result;
}

class Flattener {
 public:
  FlatResult Run(const Program& program) {
    for (const GraphValue& input : program.main.inputs) {
      Node node;
      node.op = "input";
      node.name = input.name;
      node.type = input.type;
      values_[input.id] = Arg{static_cast<int>(flat_.nodes.size())};
      flat_.nodes.push_back(std::move(node));
    }
    flat_.inputs = flat_.nodes.size();
    if (!Visit(program.main, 0)) return obstacle_;
    for (const Operand& output : program.main.outputs) {
      const auto arg = Resolve(output, {});
      if (!arg) return obstacle_;
      flat_.outputs.push_back(*arg);
    }
    return std::move(flat_);
  }

 private:
  bool Refuse(std::string reason, const std::vector<SourceSpan>& spans) {
    obstacle_ = {std::move(reason), spans};
    return false;
  }

  std::optional<Arg> Resolve(const Operand& operand, const std::vector<SourceSpan>& spans) {
    if (operand.value) {
      const auto found = values_.find(*operand.value);
      if (found != values_.end()) return found->second;
      const auto constant = constants_.find(*operand.value);
      if (constant != constants_.end()) {
        Refuse("it captures an array of " + std::to_string(constant->second) + " bytes: pass it as an argument", spans);
        return std::nullopt;
      }
    } else if (const auto literal = LiteralArg(operand)) {
      return literal;
    }
    Refuse("it uses a value that the trace does not show", spans);
    return std::nullopt;
  }

  bool Visit(const Graph& graph, int call) {
    for (const GraphConstant& constant : graph.constants) {
      if (const auto scalar = constant.type.dims.empty() ? ScalarConstant(constant) : std::nullopt) {
        values_[constant.value] = *scalar;
      } else {
        constants_[constant.value] = constant.size_bytes;
      }
    }
    return std::all_of(graph.operations.begin(), graph.operations.end(),
                       [&](const Operation& operation) { return Visit(operation, call); });
  }

  bool Visit(const Operation& operation, int call) {
    std::vector<Arg> args;
    for (const Operand& operand : operation.inputs) {
      auto arg = Resolve(operand, operation.spans);
      if (!arg) return false;
      args.push_back(*arg);
    }
    if (operation.name == "cond") return VisitBranch(operation, args);
    if (IsCall(operation.name) && operation.regions.size() >= 1) {
      flat_.has_custom_vjp = flat_.has_custom_vjp || operation.name.starts_with("custom_vjp");
      return Inline(operation, operation.regions.front(), args, 0);
    }
    if (!operation.regions.empty() || !operation.pallas.empty()) {
      return Refuse(operation.name == "pallas_call" ? "there is a kernel in it already"
                    : operation.name == "scan"      ? "a scan carries values from step to step"
                    : operation.name == "while"     ? "a loop's number of steps is not known while tracing"
                                                    : operation.name + " holds a body that is not seen through",
                    operation.spans);
    }
    if (!operation.effects.empty()) return Refuse(operation.name + " has effects", operation.spans);
    if (operation.outputs.size() != 1) {
      return Refuse(operation.name + " has " + std::to_string(operation.outputs.size()) + " results", operation.spans);
    }
    const bool numbers = std::all_of(args.begin(), args.end(), [](const Arg& arg) { return arg.is_number(); });
    if (numbers && !args.empty()) {
      if (const auto folded = Fold(operation, args)) {
        values_[operation.outputs[0].id] = *folded;
        return true;
      }
      return Refuse(operation.name + " of constants is not computed ahead", operation.spans);
    }
    if (operation.name == "select_n" && args[0].is_number() && args.size() == 3) {
      values_[operation.outputs[0].id] = args[args[0].number != 0 ? 2 : 1];
      return true;
    }
    if (const auto same = FindSame(operation, args)) {
      values_[operation.outputs[0].id] = *same;
      return true;
    }
    Node node;
    node.op = operation.name;
    node.args = std::move(args);
    node.operation = &operation;
    node.type = operation.outputs[0].type;
    node.spans = operation.spans;
    node.call = call;
    values_[operation.outputs[0].id] = Arg{static_cast<int>(flat_.nodes.size())};
    flat_.nodes.push_back(std::move(node));
    return true;
  }

  // The node that computes the same already.
  std::optional<Arg> FindSame(const Operation& operation, const std::vector<Arg>& args) const {
    for (size_t i = flat_.inputs; i < flat_.nodes.size(); ++i) {
      const Node& node = flat_.nodes[i];
      if (node.op == operation.name && node.args == args && node.type.dtype == operation.outputs[0].type.dtype &&
          node.type.dims == operation.outputs[0].type.dims && node.operation->attributes == operation.attributes) {
        return Arg{static_cast<int>(i)};
      }
    }
    return std::nullopt;
  }

  // A branch that is known while tracing; the other ones would need both kernels.
  bool VisitBranch(const Operation& operation, const std::vector<Arg>& args) {
    if (args.empty() || !args[0].is_number()) {
      return Refuse("which branch is taken is not known while tracing", operation.spans);
    }
    const auto branch = static_cast<size_t>(std::max(0.0, args[0].number));
    if (branch >= operation.regions.size()) return Refuse("a branch is missing", operation.spans);
    return Inline(operation, operation.regions[branch], args, 1);
  }

  bool Inline(const Operation& operation, const Graph& body, const std::vector<Arg>& args, size_t skip) {
    if (body.inputs.size() + skip != args.size() || body.outputs.size() != operation.outputs.size()) {
      return Refuse(operation.name + " is not called with what its body takes", operation.spans);
    }
    for (size_t i = 0; i < body.inputs.size(); ++i) values_[body.inputs[i].id] = args[i + skip];
    if (!Visit(body, ++calls_)) return false;
    for (size_t i = 0; i < body.outputs.size(); ++i) {
      const auto arg = Resolve(body.outputs[i], operation.spans);
      if (!arg) return false;
      if (operation.outputs[i].id != 0) values_[operation.outputs[i].id] = *arg;
    }
    return true;
  }

  FlatProgram flat_;
  Obstacle obstacle_;
  std::map<uint32_t, Arg> values_;
  std::map<uint32_t, uint64_t> constants_;
  int calls_ = 0;
};

const Attribute* Find(const Node& node, const std::string& name) {
  if (node.operation == nullptr) return nullptr;
  const auto found = node.operation->attributes.find(name);
  return found == node.operation->attributes.end() ? nullptr : &found->second;
}

}  // namespace

FlatResult Flatten(const Program& program) { return Flattener().Run(program); }

std::vector<int64_t> Integers(const Node& node, const std::string& name) {
  const Attribute* attribute = Find(node, name);
  if (attribute == nullptr) return {};
  if (const auto* list = std::get_if<std::vector<int64_t>>(attribute)) return *list;
  if (const auto* one = std::get_if<int64_t>(attribute)) return {*one};
  return {};
}

std::string Text(const Node& node, const std::string& name) {
  const Attribute* attribute = Find(node, name);
  const auto* text = attribute != nullptr ? std::get_if<std::string>(attribute) : nullptr;
  return text != nullptr ? *text : "";
}

std::optional<int64_t> Integer(const Node& node, const std::string& name) {
  const Attribute* attribute = Find(node, name);
  const auto* one = attribute != nullptr ? std::get_if<int64_t>(attribute) : nullptr;
  return one != nullptr ? std::optional(*one) : std::nullopt;
}

LineRange PlaceOf(const std::vector<SourceSpan>& spans, const std::vector<std::unique_ptr<SourceFile>>& files) {
  for (const SourceSpan& span : spans) {
    const bool known =
        std::any_of(files.begin(), files.end(), [&](const auto& file) { return file->path() == span.file; });
    if (known) return {span.file, span.line, std::max(span.line, span.end_line)};
  }
  return {};
}

}  // namespace kernelwright::kernels::lift
