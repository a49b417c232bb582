// See sizes.h.
#include "daemon/kernels/lift/sizes.h"

#include <algorithm>

namespace kernelwright::kernels::lift {
namespace {

// The sum over columns that a node is behind views, and its length at the program's sizes; 0 when it is none.
int64_t SummedLength(const FlatProgram& flat, const Arg& arg) {
  const Arg behind = Behind(flat, arg);
  if (behind.is_number()) return 0;
  const Node& sum = flat.nodes[static_cast<size_t>(behind.node)];
  if (sum.op != "reduce_sum") return 0;
  int64_t length = 1;
  const auto& dims = flat.nodes[static_cast<size_t>(sum.args[0].node)].type.dims;
  for (int64_t axis : Integers(sum, "axes")) length *= dims[static_cast<size_t>(axis)];
  return length;
}

bool SameOperation(const Node& a, const Node& b) {
  if (a.op != b.op || a.args.size() != b.args.size() || a.type.dtype != b.type.dtype ||
      a.type.dims.size() != b.type.dims.size()) {
    return false;
  }
  for (size_t d = 0; d < a.type.dims.size(); ++d) {
    if ((a.type.dims[d] == 1) != (b.type.dims[d] == 1)) return false;
  }
  for (const char* name : {"axes", "broadcast_dimensions", "permutation"}) {
    if (Integers(a, name) != Integers(b, name)) return false;
  }
  return Integer(a, "y") == Integer(b, "y");
}

}  // namespace

Sizes CompareSizes(const FlatProgram& flat, const Axes& axes, const FlatProgram* other) {
  (void)axes;
  Sizes sizes;
  sizes.free = other != nullptr;
  if (other == nullptr) sizes.why_fixed = "it could not be traced at other sizes";
  if (other != nullptr && (other->nodes.size() != flat.nodes.size() || other->outputs.size() != flat.outputs.size())) {
    sizes.free = false;
    sizes.why_fixed = "it is another program at other sizes";
    other = nullptr;
  }
  for (size_t i = 0; i < flat.nodes.size(); ++i) {
    const Node& node = flat.nodes[i];
    if (other != nullptr && !SameOperation(node, other->nodes[i])) {
      sizes.free = false;
      sizes.why_fixed = "it is another program at other sizes";
      other = nullptr;
    }
    for (size_t a = 0; a < node.args.size(); ++a) {
      const Arg& arg = node.args[a];
      const int64_t length = a == 1 && node.op == "div" ? SummedLength(flat, node.args[0]) : 0;
      const bool is_length = arg.is_number() && length > 0 && arg.number == static_cast<double>(length);
      if (is_length && other == nullptr) sizes.means.insert(static_cast<int>(i));
      if (other == nullptr) continue;
      const Arg& there = other->nodes[i].args[a];
      const bool is_length_there = is_length && there.is_number() &&
                                   there.number == static_cast<double>(SummedLength(*other, other->nodes[i].args[0]));
      if (is_length_there) sizes.means.insert(static_cast<int>(i));
      if (arg == there || is_length_there) continue;
      sizes.free = false;
      sizes.why_fixed = "a number in it depends on the sizes";
    }
  }
  return sizes;
}

}  // namespace kernelwright::kernels::lift
