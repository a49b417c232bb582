// Constant folding and re-writing of integer expressions; see literals.h.
#include "daemon/kernels/literals.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace kernelwright::kernels {
namespace {

constexpr int64_t kLargest = int64_t{1} << 62;

std::optional<int64_t> ParseLiteral(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != '_') digits += c;
  }
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0') {
    const char kind = static_cast<char>(digits[1] | 0x20);
    base = kind == 'x' ? 16 : kind == 'b' ? 2 : kind == 'o' ? 8 : 10;
    if (base != 10) digits.erase(0, 2);
  }
  int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (code != std::errc() || end != digits.data() + digits.size() || value > kLargest) return std::nullopt;
  return value;
}

std::optional<int64_t> Checked(__int128 value) {
  if (value < 0 || value > kLargest) return std::nullopt;
  return static_cast<int64_t>(value);
}

std::optional<int64_t> Combine(std::string_view op, int64_t a, int64_t b) {
  if (op == "+") return Checked(static_cast<__int128>(a) + b);
  if (op == "-") return Checked(static_cast<__int128>(a) - b);
  if (op == "*") return Checked(static_cast<__int128>(a) * b);
  if (op == "//" && b > 0) return a / b;
  if (op == "%" && b > 0) return a % b;
  if (op == "<<" && b < 62) return Checked(static_cast<__int128>(a) << b);
  if (op == "**" && b < 63) {
    __int128 power = 1;
    for (int64_t i = 0; i < b; ++i) {
      power *= a;
      if (power > kLargest) return std::nullopt;
    }
    return Checked(power);
  }
  return std::nullopt;
}

Node StripParentheses(Node node) {
  while (node.Is("parenthesized_expression")) {
    const auto children = node.NamedChildren();
    if (children.size() != 1) return node;
    node = children.front();
  }
  return node;
}

// Leaves of a product, left to right.
void Factors(const Node& node, std::vector<Node>& factors) {
  if (node.Is("binary_operator") && node.Field("operator").text() == "*") {
    Factors(node.Field("left"), factors);
    Factors(node.Field("right"), factors);
  } else {
    factors.push_back(node);
  }
}

// Sizes of hardware tiles read as units, not as the quantity that was chosen.
bool IsUnit(int64_t value) { return value == 8 || value == 128 || value == 1024; }

std::string Replace(std::string_view text, const Node& node, int64_t value) {
  return std::string(text.substr(0, node.begin())) + std::to_string(value) + std::string(text.substr(node.end()));
}

std::string FormatExpression(std::string_view text, const Node& expression, int64_t value) {
  if (!expression.Is("binary_operator")) return std::to_string(value);
  const std::string_view op = expression.Field("operator").text();
  if (op == "<<") {
    const auto shift = EvaluateInteger(expression.Field("right"));
    if (shift && *shift < 62 && value % (int64_t{1} << *shift) == 0 && expression.Field("left").Is("integer")) {
      return Replace(text, expression.Field("left"), value >> *shift);
    }
  } else if (op == "*") {
    std::vector<Node> factors;
    Factors(expression, factors);
    const auto all = EvaluateInteger(expression);
    // A tile size gives way only when the product has nothing else: `4 * 128` never becomes `4 * 50`.
    const bool only_units = std::all_of(factors.begin(), factors.end(), [](const Node& factor) {
      const auto own = EvaluateInteger(factor);
      return own && IsUnit(*own);
    });
    for (const Node& factor : factors) {
      const auto own = EvaluateInteger(factor);
      if (!factor.Is("integer") || !own || *own == 0 || !all || (IsUnit(*own) && !only_units)) continue;
      const int64_t rest = *all / *own;
      if (rest > 0 && value % rest == 0) return Replace(text, factor, value / rest);
    }
  } else if (op == "**") {
    const auto base = EvaluateInteger(expression.Field("left"));
    int64_t exponent = 0;
    int64_t left = value;
    while (base && *base > 1 && left % *base == 0) {
      left /= *base;
      ++exponent;
    }
    if (left == 1 && expression.Field("right").Is("integer")) {
      return Replace(text, expression.Field("right"), exponent);
    }
  }
  return std::to_string(value);
}

}  // namespace

std::optional<int64_t> EvaluateInteger(const Node& expression) {
  const Node node = StripParentheses(expression);
  if (node.Is("integer")) return ParseLiteral(node.text());
  if (!node.Is("binary_operator")) return std::nullopt;
  const auto left = EvaluateInteger(node.Field("left"));
  const auto right = left ? EvaluateInteger(node.Field("right")) : std::nullopt;
  if (!right) return std::nullopt;
  return Combine(node.Field("operator").text(), *left, *right);
}

std::optional<int64_t> EvaluateInteger(std::string_view expression) {
  const Tree tree{std::string(expression)};
  const auto statements = tree.root().NamedChildren();
  if (statements.size() != 1 || statements[0].NamedChildren().size() != 1) return std::nullopt;
  return EvaluateInteger(statements[0].NamedChildren().front());
}

std::string FormatInteger(std::string_view old_text, int64_t value) {
  const Tree tree{std::string(old_text)};
  const auto statements = tree.root().NamedChildren();
  if (statements.size() != 1 || statements[0].NamedChildren().size() != 1) return std::to_string(value);
  return FormatExpression(old_text, statements[0].NamedChildren().front(), value);
}

}  // namespace kernelwright::kernels
