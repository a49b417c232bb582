// See expression.h.
#include "daemon/kernels/lift/expression.h"

#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "daemon/kernels/lift/axes.h"

namespace kernelwright::kernels::lift {
namespace {

constexpr int kPower = 9;
constexpr int kUnary = 8;
constexpr int kMultiply = 7;
constexpr int kAdd = 6;
constexpr int kAnd = 5;
constexpr int kOr = 4;
constexpr int kCompare = 3;

struct Infix {
  const char* symbol;
  int precedence;
  bool associative;  // a + (b + c) needs no parentheses as text, but another order of rounding: kept
};

const std::map<std::string, Infix>& Infixes() {
  static const std::map<std::string, Infix> infixes = {
      {"add", {"+", kAdd, false}},      {"add_any", {"+", kAdd, false}},  {"sub", {"-", kAdd, false}},
      {"mul", {"*", kMultiply, false}}, {"div", {"/", kMultiply, false}}, {"pow", {"**", kPower, false}},
      {"and", {"&", kAnd, false}},      {"or", {"|", kOr, false}},        {"eq", {"==", kCompare, false}},
      {"ne", {"!=", kCompare, false}},  {"lt", {"<", kCompare, false}},   {"le", {"<=", kCompare, false}},
      {"gt", {">", kCompare, false}},   {"ge", {">=", kCompare, false}}};
  return infixes;
}

// Functions of one or two operands, after the name of their module.
const std::map<std::string, std::pair<char, const char*>>& Functions() {
  static const std::map<std::string, std::pair<char, const char*>> functions = {
      {"exp", {'n', "exp"}},         {"exp2", {'n', "exp2"}},   {"log", {'n', "log"}},
      {"log1p", {'n', "log1p"}},     {"sqrt", {'n', "sqrt"}},   {"tanh", {'n', "tanh"}},
      {"abs", {'n', "abs"}},         {"sign", {'n', "sign"}},   {"floor", {'n', "floor"}},
      {"ceil", {'n', "ceil"}},       {"sin", {'n', "sin"}},     {"cos", {'n', "cos"}},
      {"max", {'n', "maximum"}},     {"min", {'n', "minimum"}}, {"is_finite", {'n', "isfinite"}},
      {"rsqrt", {'l', "lax.rsqrt"}}, {"erf", {'l', "lax.erf"}}, {"logistic", {'l', "nn.sigmoid"}}};
  return functions;
}

std::string ModuleOf(char which, const Modules& modules) { return which == 'n' ? modules.jnp : modules.jax; }

bool Near(const Arg& arg, double value) { return arg.is_number() && std::abs(arg.number - value) < 0.003 * value; }

}  // namespace

bool IsElementwise(const std::string& op) {
  static const std::set<std::string> others = {"neg",  "not",      "integer_pow",          "square", "erfc",
                                               "copy", "select_n", "convert_element_type", "clamp",  "stop_gradient"};
  return Infixes().contains(op) || Functions().contains(op) || others.contains(op);
}

std::string WhyNotInKernel(const FlatProgram& flat, const Node& node) {
  static const std::set<std::string> types = {"float32", "bfloat16", "int32", "bool"};
  if (!types.contains(node.type.dtype)) return "values of type " + node.type.dtype;
  const bool is_float = IsFloat(node.type.dtype);
  for (const char* op : {"div", "pow", "erf", "erfc", "logistic", "sign", "integer_pow"}) {
    if (node.op == op && !is_float) return node.op + " of " + node.type.dtype;
  }
  if (IsReduction(node.op) && !is_float) return node.op + " of " + node.type.dtype;
  if (node.op == "select_n") {
    if (node.args.size() != 3) return "a choice among " + std::to_string(node.args.size() - 1) + " values";
    if (!node.args[0].is_number() && flat.nodes[static_cast<size_t>(node.args[0].node)].type.dtype != "bool") {
      return "a choice by a number";
    }
  }
  return "";
}

std::string Parenthesized(const Code& code, int precedence) {
  return code.precedence < precedence ? "(" + code.text + ")" : code.text;
}

Code PrintNumber(const Arg& number, const Modules& modules) {
  if (number.is_bool) return {number.number != 0 ? "True" : "False"};
  if (std::isnan(number.number)) return {modules.jnp + ".nan"};
  if (std::isinf(number.number)) {
    return number.number > 0 ? Code{modules.jnp + ".inf"} : Code{"-" + modules.jnp + ".inf", kUnary};
  }
  std::array<char, 64> buffer{};
  char* end = buffer.data() + buffer.size();
  const auto result = number.is_integer ? std::to_chars(buffer.data(), end, static_cast<int64_t>(number.number))
                                        : std::to_chars(buffer.data(), end, static_cast<float>(number.number));
  std::string text(buffer.data(), result.ptr);
  if (!number.is_integer && text.find_first_of(".en") == std::string::npos) text += ".0";
  return {text, number.number < 0 ? kUnary : Code::kAtom};
}

Code Print(const Node& node, const std::vector<Code>& args, const Modules& modules) {
  const std::string& op = node.op;
  const auto call = [&](const std::string& function) {
    std::string text = function + "(";
    for (size_t i = 0; i < args.size(); ++i) text += (i > 0 ? ", " : "") + args[i].text;
    return Code{text + ")"};
  };
  if (const auto infix = Infixes().find(op); infix != Infixes().end()) {
    const auto& [symbol, precedence, associative] = infix->second;
    const bool right = precedence == kPower;  // binds to the right
    const bool none = precedence == kCompare;
    std::string text = Parenthesized(args[0], right || none ? precedence + 1 : precedence);
    text += std::string(" ") + symbol + " ";
    return {text + Parenthesized(args[1], precedence + 1), precedence};
  }
  if (const auto function = Functions().find(op); function != Functions().end()) {
    return call(ModuleOf(function->second.first, modules) + "." + function->second.second);
  }
  if (op == "neg") return {"-" + Parenthesized(args[0], kUnary), kUnary};
  if (op == "not") return {"~" + Parenthesized(args[0], kUnary), kUnary};
  if (op == "square") {
    if (args[0].precedence == Code::kAtom && args[0].text.find('(') == std::string::npos) {
      return {args[0].text + " * " + args[0].text, kMultiply};
    }
    return call(modules.jnp + ".square");
  }
  if (op == "integer_pow") {
    const int64_t power = Integer(node, "y").value_or(1);
    if (power == -1) return {"1.0 / " + Parenthesized(args[0], kMultiply + 1), kMultiply};
    return {Parenthesized(args[0], kPower + 1) + "**" + std::to_string(power), kPower};
  }
  if (op == "erfc") return {"1.0 - " + modules.jax + ".lax.erf(" + args[0].text + ")", kAdd};
  if (op == "select_n") {
    return {modules.jnp + ".where(" + args[0].text + ", " + args[2].text + ", " + args[1].text + ")"};
  }
  if (op == "clamp") return {modules.jnp + ".clip(" + args[1].text + ", " + args[0].text + ", " + args[2].text + ")"};
  if (op == "convert_element_type") {
    if (node.type.dtype == "bool") return {Parenthesized(args[0], kCompare + 1) + " != 0", kCompare};
    return {Parenthesized(args[0], Code::kAtom) + ".astype(" + modules.jnp + "." +
            (IsFloat(node.type.dtype) ? "float32" : node.type.dtype) + ")"};
  }
  const std::string which = op == "reduce_sum" ? "sum" : op == "reduce_max" ? "max" : "min";
  return {modules.jnp + "." + which + "(" + args[0].text + ", axis=1, keepdims=True)"};
}

std::optional<Gelu> MatchGelu(const FlatProgram& flat, int at) {
  const auto node = [&](const Arg& arg, const char* op) -> const Node* {
    const Arg behind = Behind(flat, arg);
    if (behind.is_number()) return nullptr;
    const Node& found = flat.nodes[static_cast<size_t>(behind.node)];
    return found.op == op ? &found : nullptr;
  };
  // The other operand when one of two is (near) this number.
  const auto beside = [&](const Node* two, double number) -> std::optional<Arg> {
    if (two == nullptr || two->args.size() != 2) return std::nullopt;
    if (Near(Behind(flat, two->args[0]), number)) return Behind(flat, two->args[1]);
    if (Near(Behind(flat, two->args[1]), number)) return Behind(flat, two->args[0]);
    return std::nullopt;
  };
  const Node& last = flat.nodes[static_cast<size_t>(at)];
  if (last.op != "mul") return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    const Arg x = Behind(flat, last.args[static_cast<size_t>(side)]);
    const Arg other = Behind(flat, last.args[static_cast<size_t>(1 - side)]);
    if (x.is_number() || other.is_number()) continue;
    // x * (0.5 * (1 + tanh(0.7979 * (x + 0.0447 * x**3))))
    if (const auto half = beside(node(other, "mul"), 0.5)) {
      const auto tanh = beside(node(*half, "add"), 1.0);
      const Node* curve = tanh ? node(*tanh, "tanh") : nullptr;
      const auto inner = curve != nullptr ? beside(node(curve->args[0], "mul"), 0.7978845608) : std::nullopt;
      const Node* sum = inner ? node(*inner, "add") : nullptr;
      if (sum != nullptr) {
        for (int which = 0; which < 2; ++which) {
          if (Behind(flat, sum->args[static_cast<size_t>(which)]) != x) continue;
          const auto cubed = beside(node(sum->args[static_cast<size_t>(1 - which)], "mul"), 0.044715);
          const Node* power = cubed ? node(*cubed, "integer_pow") : nullptr;
          if (power != nullptr && Integer(*power, "y") == 3 && Behind(flat, power->args[0]) == x) return Gelu{x, false};
        }
      }
    }
    // (0.5 * x) * erfc(-x * 0.7071)
    if (const Node* erfc = node(other, "erfc")) {
      const auto half = beside(node(x, "mul"), 0.5);
      const auto scaled = beside(node(erfc->args[0], "mul"), 0.7071067811);
      const Node* negated = scaled ? node(*scaled, "neg") : nullptr;
      if (half && negated != nullptr && Behind(flat, negated->args[0]) == *half) return Gelu{*half, true};
    }
  }
  return std::nullopt;
}

}  // namespace kernelwright::kernels::lift
