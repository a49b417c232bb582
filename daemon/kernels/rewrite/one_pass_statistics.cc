// A variance from differences to the mean has to wait for the mean and go over the values again. The mean of squares
// less the square of the mean needs one pass. It loses digits where the mean is much larger than the spread, which the
// check of the values decides; it is never below zero.
#include "daemon/kernels/rewrite/rule.h"
#include "daemon/profile/report.h"

namespace kernelwright::rewrite {
namespace {

// X of `(X - mean) ** 2`, `jnp.square(X - mean)`, `(X - mean) * (X - mean)`, and of a name for `X - mean` squared.
struct Difference {
  Node value;
  Node mean;
};

std::optional<Difference> DifferenceOf(const KernelView& view, const Node& expression) {
  Node node = diagnose::StripParentheses(expression);
  if (node.Is("identifier")) node = diagnose::StripParentheses(view.source.Resolve(node));
  if (!node.Is("binary_operator") || node.Field("operator").text() != "-") return std::nullopt;
  const Node value = diagnose::StripParentheses(node.Field("left"));
  const Node mean = diagnose::StripParentheses(node.Field("right"));
  if (!value.Is("identifier") || !mean.Is("identifier")) return std::nullopt;
  return Difference{value, mean};
}

std::optional<Difference> SquaredDifference(const KernelView& view, const Node& expression) {
  const Node node = diagnose::StripParentheses(expression);
  if (diagnose::IsCallOf(node, {"square"})) return DifferenceOf(view, diagnose::Argument(node, 0, "x"));
  if (!node.Is("binary_operator")) return std::nullopt;
  const std::string_view sign = node.Field("operator").text();
  if (sign == "**" && node.Field("right").text() == "2") return DifferenceOf(view, node.Field("left"));
  if (sign == "*" && node.Field("left").text() == node.Field("right").text()) {
    return DifferenceOf(view, node.Field("left"));
  }
  return std::nullopt;
}

// The arguments of a reduction behind the first, as text: both must reduce the same way.
std::string OtherArguments(const Node& call) {
  std::string text;
  bool first = true;
  for (const Node& child : call.Field("arguments").NamedChildren()) {
    if (!first) text += ", " + std::string(child.text());
    first = false;
  }
  return text;
}

}  // namespace

void OnePassStatistics(const KernelView& view, Answer& answer) {
  const auto reductions =
      diagnose::FindAll(view.body(), [](const Node& node) { return diagnose::IsCallOf(node, {"mean", "var"}); });
  for (const Node& call : reductions) {
    const auto arguments = diagnose::PositionalArguments(call);
    if (arguments.empty() || !call.Field("function").Is("attribute")) continue;
    const bool is_variance = diagnose::CalleeName(call) == "var";
    std::optional<Difference> difference;
    if (is_variance) {
      // The mean that the kernel has anyway.
      if (diagnose::Keyword(call, "ddof") || diagnose::Keyword(call, "where")) {
        answer.Refuse("the variance has a correction or a mask", call);
        continue;
      }
      for (const Node& other : reductions) {
        const auto theirs = diagnose::PositionalArguments(other);
        const Node assignment = other.parent();
        if (diagnose::CalleeName(other) != "mean" || theirs.empty() || !assignment.Is("assignment") ||
            !(assignment.Field("right") == other) || other.begin() > call.begin()) {
          continue;
        }
        if (theirs.front().text() == arguments.front().text() && arguments.front().Is("identifier")) {
          difference = Difference{arguments.front(), assignment.Field("left")};
        }
      }
      if (!difference) {
        answer.Refuse("the kernel has no mean of the same values", call);
        continue;
      }
    } else {
      difference = SquaredDifference(view, arguments.front());
      if (!difference) continue;
    }
    Node mean = is_variance ? Node() : diagnose::StripParentheses(view.source.Resolve(difference->mean));
    if (is_variance) {
      for (const Node& other : reductions) {
        if (other.parent().Is("assignment") && other.parent().Field("left") == difference->mean) mean = other;
      }
    }
    if (!diagnose::IsCallOf(mean, {"mean"}) || diagnose::PositionalArguments(mean).empty() ||
        diagnose::PositionalArguments(mean).front().text() != difference->value.text() ||
        OtherArguments(mean) != OtherArguments(call)) {
      answer.Refuse("the mean and the variance are not of the same values and axes", call);
      continue;
    }
    const auto type = TypeOf(view, mean);
    if (!type || type->dtype != "float32") {
      answer.Refuse("the statistics are not computed in float32", call);
      continue;
    }
    if (view.profile != nullptr && view.profile->bound == cost::Bound::kMemory) {
      answer.Refuse("the kernel is bound by memory: a pass over values in VMEM less changes nothing", call);
      continue;
    }
    Rewriter builder(view);
    const std::string value(difference->value.text());
    const std::string mean_name(difference->mean.text());
    const std::string function(mean.Field("function").text());
    builder.Replace(call, builder.Jnp() + ".maximum(" + function + "(" + value + " * " + value + OtherArguments(call) +
                              ") - " + mean_name + " * " + mean_name + ", 0.0)");
    answer.Propose(call,
                   {"variance as mean of squares less square of the mean",
                    "The squares can be summed together with the values, without waiting for the mean.",
                    "graph: mean and variance of the same " + ShapeText(type->dims) + " statistics in float32", 1.1,
                    kernels::Exactness::kReassociation},
                   builder.edits());
  }
}

}  // namespace kernelwright::rewrite
