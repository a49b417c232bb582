// The hardware computes powers of two: exp(x) is exp2(x * log2(e)), a multiplication per value. Where the argument has
// a constant factor already, log2(e) is folded into it while tracing and the multiplication disappears.
#include <algorithm>

#include "daemon/kernels/rewrite/rule.h"
#include "daemon/profile/report.h"

namespace kernelwright::rewrite {
namespace {

// The constant factor of a product, or the sign of a negation.
struct Factor {
  Node constant;
  Node negated;  // operand of the minus, when there is no constant
};

std::optional<Factor> FactorOf(const KernelView& view, Node expression) {
  for (int depth = 0; depth < 8; ++depth) {
    expression = diagnose::StripParentheses(expression);
    if (expression.Is("unary_operator") && expression.text().starts_with("-")) {
      const Node argument = expression.Field("argument");
      const auto inner = FactorOf(view, argument);
      return inner && inner->constant ? inner : std::optional(Factor{{}, argument});
    }
    if (!expression.Is("binary_operator") || expression.Field("operator").text() != "*") return std::nullopt;
    const Node left = expression.Field("left");
    const Node right = expression.Field("right");
    if (IsConstantNumber(view, left)) return Factor{left, {}};
    if (IsConstantNumber(view, right)) return Factor{right, {}};
    expression = left;
  }
  return std::nullopt;
}

// The module's name for log2(e), added behind the imports when there is none.
std::string Log2eName(const KernelView& view, Rewriter& builder, bool& added) {
  for (const kernels::ModuleConstant& constant : view.source.file().constants()) {
    if (constant.value_text.starts_with("1.44269")) return constant.name;
  }
  const std::string name = FreshName(view, "LOG2E");
  if (added) return name;
  added = true;
  uint32_t at = 0;
  for (const kernels::Import& entry : view.source.file().imports()) {
    if (entry.top_level && entry.range.begin < view.source.OutermostFunction(view.kernel()).begin()) {
      at = std::max(at, entry.range.end);
    }
  }
  const std::string newline = view.source.Newline();
  const std::string line = name + " = 1.4426950408889634  # log2(e)";
  if (at > 0) {
    builder.Insert(at, newline + newline + line);
  } else {
    builder.Insert(0, line + newline);
  }
  return name;
}

}  // namespace

void ExpToExp2(const KernelView& view, Answer& answer) {
  Rewriter builder(view);
  bool added = false;
  Node place;
  int count = 0;
  int64_t values = 0;
  for (const Node& call :
       diagnose::FindAll(view.body(), [](const Node& n) { return diagnose::IsCallOf(n, {"exp"}); })) {
    const Node function = call.Field("function");
    const auto arguments = diagnose::PositionalArguments(call);
    if (!function.Is("attribute") || arguments.size() != 1) continue;
    const auto factor = FactorOf(view, arguments.front());
    if (!factor) continue;
    const auto type = TypeOf(view, call);
    if (!type || type->dtype != "float32") {
      answer.Refuse("the exponential is not of float32", call);
      continue;
    }
    const std::string log2e = Log2eName(view, builder, added);
    builder.Replace(function.Field("attribute"), "exp2");
    if (factor->constant) {
      builder.Replace(factor->constant, "(" + std::string(factor->constant.text()) + " * " + log2e + ")");
    } else {
      builder.Insert(factor->negated.begin(), log2e + " * ");
    }
    if (!place) place = call;
    ++count;
    int64_t size = 1;
    for (const int64_t dim : type->dims) size *= dim;
    values += size;
  }
  if (count == 0) return;
  if (view.profile != nullptr && view.profile->bound == cost::Bound::kMemory) {
    answer.Refuse("the kernel is bound by memory: a multiplication less changes nothing", place);
    return;
  }
  answer.Propose(place,
                 {"exp2 with log2(e) folded into the factor",
                  "The hardware raises two to a power; exp multiplies each value by log2(e) first, which the constant "
                  "factor can take over.",
                  "graph: " + std::to_string(count) + " exponential(s) of " + Count(values) +
                      " values have a constant factor or sign",
                  1.05, kernels::Exactness::kReassociation},
                 builder.edits());
}

}  // namespace kernelwright::rewrite
