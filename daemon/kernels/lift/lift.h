// From plain JAX to Pallas: proposes kernels for a function whose traced program is made of row operations (norms,
// softmax, activations, residuals) and products of rows with weights. The generated source keeps the function's
// signature, decorators and docstring, calls kernels for the types and shapes that they were made for and the plain
// form for all others; derivatives are those of the plain form. See docs/lift.md.
#pragma once

#include <string>

#include "daemon/kernels/proposal.h"

namespace kernelwright::kernels::lift {

struct LiftRequest {
  const ProposalContext& context;
  std::string output_tree;         // of the trace: "PyTreeDef(*)", "PyTreeDef((*, *))"
  const Program* other = nullptr;  // the same function traced at other sizes; null: it takes the traced sizes only
  // Where the kernels go: empty: beside the function; else the path of a new file, to be imported from the function's.
  std::string module_path;
  bool in_package = false;  // the import of the new file must be relative
};

// Proposals differ in how the program is cut into kernels. With none, the refusals say what stands in the way.
Proposals ProposeLifts(const LiftRequest& request);

}  // namespace kernelwright::kernels::lift
