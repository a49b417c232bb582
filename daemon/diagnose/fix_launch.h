// The call that launches a kernel, as written: grid, specs, scratch, kernel function; and the traced kernel that it
// belongs to. Shared by the families of fixes and the rewrite
// rules (kernels/rewrite).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/diagnose/fix_source.h"
#include "daemon/diagnose/fixes.h"

namespace kernelwright::diagnose {

// The literals that make up a grid axis or a block dimension, and how to write another number there.
struct Launch {
  Node call;                   // pallas_call(…), or a helper of the user's that takes the same keywords
  Node spec_call;              // where grid and specs stand: the call itself or its grid spec
  std::vector<Node> grid;      // one expression per axis; empty when there is none or it is not written here
  std::vector<Node> in_specs;  // per operand: the BlockSpec call, null where it cannot be followed
  std::vector<Node> out_specs;
  std::vector<Node> scratch;  // elements of scratch_shapes
  Node out_shape;
  Node kernel;  // function_definition in this file
  int num_scalar_prefetch = 0;
};

// All launches of the file in source order.
std::vector<Launch> FindLaunches(const FixSource& source);

// The launch that a place belongs to: around it, in its specs, or of the kernel that it lies in; the only one of its
// outermost function otherwise.
std::optional<Launch> LaunchOf(const FixSource& source, const Node& place);

// The traced kernel of a launch; null when it is not in the trace or not certain.
const PallasCall* TracedCall(const FixSource& source, const Launch& launch, const FixContext& context);

// Shape and index map of a BlockSpec call.
Node BlockShape(const Node& spec);
// The lambda or function_definition; null when it is not in this file.
Node IndexMap(const FixSource& source, const Node& spec);

// Traced operations of a primitive on the lines of a node of this file, kernels and main graph: the type of the first
// operand of each.
std::vector<TensorType> OperandTypes(const FixSource& source, const Node& node, std::string_view primitive,
                                     const FixContext& context);

}  // namespace kernelwright::diagnose
