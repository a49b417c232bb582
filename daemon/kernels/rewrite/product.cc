// Finds products; see product.h.
#include "daemon/kernels/rewrite/product.h"

#include <algorithm>

namespace kernelwright::rewrite {

std::vector<Product> ProductsIn(const KernelView& view) {
  std::vector<Product> products;
  kernels::Walk(view.body(), [&](const Node& node) {
    Product product;
    product.node = node;
    if (node.Is("binary_operator") && node.Field("operator").text() == "@") {
      product.left = node.Field("left");
      product.right = node.Field("right");
    } else if (diagnose::IsCallOf(node, {"dot", "matmul", "dot_general"})) {
      const auto arguments = diagnose::PositionalArguments(node);
      product.general = diagnose::CalleeName(node) == "dot_general";
      // The kernel's own helpers may have such names.
      if (arguments.size() < 2 || !node.Field("function").Is("attribute")) return true;
      product.left = arguments[0];
      product.right = arguments[1];
    } else {
      return true;
    }
    const auto traced = OperationsAt(view, node, "dot_general");
    if (traced.empty() || traced.front().operands.size() != 2) return true;
    const bool alike = std::all_of(traced.begin(), traced.end(), [&](const TracedOperation& other) {
      return other.operands.size() == 2 && other.operands[0].dtype == traced.front().operands[0].dtype &&
             other.operands[1].dtype == traced.front().operands[1].dtype;
    });
    if (!alike || traced.front().operation->outputs.size() != 1) return true;
    product.left_type = traced.front().operands[0];
    product.right_type = traced.front().operands[1];
    product.result_type = traced.front().operation->outputs.front().type;
    products.push_back(std::move(product));
    return true;
  });
  return products;
}

OperandSource SourceOf(const KernelView& view, const Node& operand) {
  OperandSource found;
  found.value = diagnose::StripParentheses(operand);
  if (!found.value.Is("identifier")) return found;
  const Node value = view.source.Resolve(found.value);
  if (!value || !diagnose::Contains(view.kernel(), value)) return found;
  found.name = found.value;
  int uses = 0;
  for (const Node& variable : Variables(view.body())) {
    if (variable.text() == found.name.text()) ++uses;
  }
  found.only_use = uses == 2;  // where it is bound, and here
  found.value = diagnose::StripParentheses(value);
  return found;
}

Node CastBase(const Node& expression, std::string* dtype) {
  const Node node = diagnose::StripParentheses(expression);
  if (diagnose::CalleeName(node) != "astype" || !node.Field("function").Is("attribute")) return {};
  const Node argument = diagnose::Argument(node, 0, "dtype");
  if (!argument) return {};
  if (dtype != nullptr) *dtype = std::string(argument.text());
  return node.Field("function").Field("object");
}

std::string KeywordText(const Product& product, std::string_view name) {
  return std::string(diagnose::Keyword(product.node, name).text());
}

}  // namespace kernelwright::rewrite
