// Python text of one operation inside a kernel. Values are float32, int32 or bool there, two-dimensional, rows first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/kernels/lift/flat.h"

namespace kernelwright::kernels::lift {

// A piece of Python with the precedence of its outermost operator.
struct Code {
  std::string text;
  int precedence = kAtom;
  static constexpr int kAtom = 10;
};

// Names by which the generated code reaches jax.
struct Modules {
  std::string jax = "jax";
  std::string jnp = "jnp";
  std::string pl = "pl";
  std::string pltpu = "pltpu";
};

bool IsElementwise(const std::string& op);

// Why a kernel cannot compute this operation with these types; empty when it can.
std::string WhyNotInKernel(const FlatProgram& flat, const Node& node);

// The operation applied to `args`; `node` must be elementwise or a reduction over the columns.
Code Print(const Node& node, const std::vector<Code>& args, const Modules& modules);

Code PrintNumber(const Arg& number, const Modules& modules);

// `text` in parentheses where its operator binds weaker than `precedence`.
std::string Parenthesized(const Code& code, int precedence);

// gelu, whose parts are not worth reading: its operand, and whether it is the exact one. `node` is its last operation.
struct Gelu {
  Arg of;
  bool exact = false;
};
std::optional<Gelu> MatchGelu(const FlatProgram& flat, int node);

}  // namespace kernelwright::kernels::lift
