// A pallas_call as it stands in the user's file: its keyword arguments wherever they were written (in the call, in a
// grid spec, in compiler parameters, in a variable, behind **), and the BlockSpec of an operand by number. The
// compiler's texts name operands only by number; this finds what the user wrote for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/kernels/syntax.h"
#include "daemon/kernels/tree.h"

namespace kernelwright::diagnose {

// Last part of a dotted name: "pallas_call" of `pl.pallas_call`.
std::string_view LastName(const kernels::Node& expression);

// The positional and keyword values of a call's argument list, in order.
struct CallArguments {
  std::vector<kernels::Node> positional;
  std::vector<std::pair<std::string, kernels::Node>> keywords;
  std::vector<kernels::Node> splats;  // expressions behind **
  kernels::Node Keyword(std::string_view name) const;
};
CallArguments ArgumentsOf(const kernels::Node& call);

// The expression that a name was last bound to before `use`, in the function around it or outside of that, or null.
// Other expressions come back as they are, without parentheses around them.
kernels::Node Resolve(const kernels::Node& expression);

// The function definition that a name refers to, as seen from the name; through functools.partial. Null when unknown.
kernels::Node ResolveFunction(const kernels::Node& expression);

// Where a text says an operand is: "args[0]", "outputs", "args[1]['w']" → output or not, and the path of numbers.
struct OperandPath {
  bool output = false;
  std::vector<size_t> path;  // empty: the only one
};
std::optional<OperandPath> ParseOperandPath(std::string_view text);

class PallasCallSite {
 public:
  // `call` is the call node of pallas_call itself, or of functools.partial around it.
  explicit PallasCallSite(kernels::Node call) : call_(call) {}

  // The same call with what tracing knows: the kernel's definition (may be null), and the name of the user's function
  // that is being traced (may be empty). They tell apart the callers of a helper that hands its arguments on.
  PallasCallSite Traced(kernels::Node kernel, std::string function) const;

  const kernels::Node& call() const { return call_; }
  // Calls the kernel: `pallas_call(...)(x, y)`, or null.
  kernels::Node Invocation() const;

  // A keyword argument of the call; of its grid_spec; of its compiler_params. Null when it was not written.
  kernels::Node Argument(std::string_view name) const;
  kernels::Node Kernel() const;  // definition of the kernel function, a lambda, or null
  bool HasScalarPrefetch() const;

  // The BlockSpec expression of an operand, or the argument that holds it when the list is computed, or null.
  // `operand` counts inputs behind the scalar-prefetch operands, or outputs.
  kernels::Node BlockSpec(const OperandPath& operand) const;
  // Its index map: a lambda or a function definition; null when it has none.
  static kernels::Node IndexMap(const kernels::Node& block_spec);
  // All specs that can be told apart, inputs first.
  std::vector<kernels::Node> BlockSpecs() const;
  // Element of scratch_shapes, or the argument.
  kernels::Node Scratch(size_t index) const;
  // Number of scalar-prefetch operands, when it is written as a number.
  size_t PrefetchCount() const;

 private:
  kernels::Node ArgumentIn(const kernels::Node& call, std::string_view name, int depth) const;
  // What the callers of a function hand over for `name`: as a keyword, or as the positional argument `position`. Null
  // when they differ and nothing says which caller it was.
  kernels::Node FromCallers(const kernels::Node& function, std::string_view name, std::optional<size_t> position,
                            int depth) const;
  kernels::Node call_;
  kernels::Node kernel_;  // as traced
  std::string function_;  // as traced
};

// All pallas_calls of a file in source order.
std::vector<PallasCallSite> FindPallasCallSites(const kernels::Tree& tree);

// Elements of a list or tuple expression (through names, `[x] * n` and `a + b`), or nothing when it is computed.
std::optional<std::vector<kernels::Node>> ElementsOf(const kernels::Node& list);

}  // namespace kernelwright::diagnose
