// Products in a kernel's source: jnp.dot, jnp.matmul, lax.dot, pl.dot, lax.dot_general and `@`, with what the trace
// says about their operands.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/kernels/rewrite/kernel_view.h"

namespace kernelwright::rewrite {

struct Product {
  Node node;
  Node left;
  Node right;
  bool general = false;  // dot_general: has dimension numbers
  TensorType left_type;  // of the traced operands, in the order of the source
  TensorType right_type;
  TensorType result_type;
};

// Products whose traced operation was found and whose operands have one type in all of its traces.
std::vector<Product> ProductsIn(const KernelView& view);

// An operand as the user wrote it: the expression that it stands for when it is a name, and whether the name is used by
// nothing else.
struct OperandSource {
  Node value;            // the expression itself, parentheses removed
  Node name;             // identifier in the product; null when written in place
  bool only_use = true;  // of the name
};
OperandSource SourceOf(const KernelView& view, const Node& operand);

// `base.astype(dtype)`: the base; null for anything else. `dtype` receives the argument's text.
Node CastBase(const Node& expression, std::string* dtype);

// The text of a keyword argument of the product, or empty.
std::string KeywordText(const Product& product, std::string_view name);

}  // namespace kernelwright::rewrite
