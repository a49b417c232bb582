// `x @ w.T` with something between the transposition and the product (a cast): the compiler moves the block through the
// cross-lane unit first. Contracting the last axes of both instead needs no transposition. Where the transposed block
// goes straight into the product the compiler does this itself, and on the left side it transposes either way.
#include "daemon/kernels/rewrite/product.h"
#include "daemon/kernels/rewrite/rule.h"

namespace kernelwright::rewrite {
namespace {

// X of `X.T`, `X.transpose()`, `jnp.transpose(X)`, `jnp.swapaxes(X, 0, 1)`, for values of rank 2; null otherwise.
Node TransposedBase(const Node& expression) {
  const Node node = diagnose::StripParentheses(expression);
  if (node.Is("attribute") && node.Field("attribute").text() == "T") return node.Field("object");
  if (!node.Is("call")) return {};
  const Node function = node.Field("function");
  const auto arguments = diagnose::PositionalArguments(node);
  if (diagnose::CalleeName(node) == "transpose") {
    if (arguments.empty() && function.Is("attribute")) return function.Field("object");
    if (arguments.size() == 1 && function.Is("attribute") && !diagnose::Keyword(node, "axes") &&
        arguments.front().text().find(',') == std::string_view::npos) {
      return arguments.front();
    }
  }
  return {};
}

}  // namespace

void TransposedOperand(const KernelView& view, Answer& answer) {
  for (const Product& product : ProductsIn(view)) {
    if (product.general || product.left_type.dims.size() != 2 || product.right_type.dims.size() != 2) continue;
    const OperandSource left = SourceOf(view, product.left);
    if (TransposedBase(left.value)) {
      answer.Refuse("a left operand is transposed for the matrix unit either way", product.node);
    }
    const OperandSource right = SourceOf(view, product.right);
    if (TransposedBase(right.value)) {
      answer.Refuse("the compiler folds a transposed block into a product that follows directly", product.node);
      continue;
    }
    std::string dtype;
    const Node cast = CastBase(right.value, &dtype);
    Node inner = cast ? diagnose::StripParentheses(cast) : Node();
    // `w.T` may have a name too.
    bool named_inner = false;
    if (inner.Is("identifier")) {
      const OperandSource behind = SourceOf(view, inner);
      named_inner = static_cast<bool>(behind.name);
      if (named_inner && !behind.only_use) inner = Node();
      if (named_inner && behind.only_use) inner = behind.value;
    }
    const Node base = inner ? TransposedBase(inner) : Node();
    if (!base) continue;
    if (right.name && !right.only_use) {
      answer.Refuse("the transposed block is used elsewhere too", product.node);
      continue;
    }
    Rewriter builder(view);
    const std::string dims = "(((1,), (1,)), ((), ()))";
    builder.Replace(inner, diagnose::AsPrimary(diagnose::StripParentheses(base)));  // the transposition goes
    if (product.node.Is("binary_operator")) {
      if (right.name) {
        builder.Replace(product.node, builder.Lax() + ".dot_general(" + std::string(product.left.text()) + ", " +
                                          std::string(right.name.text()) + ", " + dims + ")");
      } else {
        answer.Refuse("the product is an operator and its operand is written in it", product.node);
        continue;
      }
    } else {
      builder.Replace(product.node.Field("function"), builder.Lax() + ".dot_general");
      builder.Insert(product.right.end(), ", " + dims);
    }
    answer.Propose(product.node,
                   {"contract the last axes instead of transposing the block",
                    "The block goes through the cross-lane unit before each product; the matrix unit takes it as it is "
                    "when the product contracts the last axis of both operands.",
                    "graph: a right operand of " + ShapeText(product.right_type.dims) +
                        " is transposed and then cast in each step",
                    1.1, kernels::Exactness::kReassociation},
                   builder.edits());
  }
}

}  // namespace kernelwright::rewrite
