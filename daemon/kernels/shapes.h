// Reduced input shapes for checks in the interpreter, which is far too slow at full size: a ladder, from small to
// large, that keeps what can go wrong (several blocks on each grid axis, the same tails). It is proposed once per run
// and then frozen, so that all candidates are judged on the same shapes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/kernels/inputs.h"
#include "daemon/kernels/program.h"

namespace kernelwright::kernels {

// Dimensions of inputs that must keep one common size.
struct DimClass {
  int64_t size = 0;
  std::vector<std::pair<size_t, size_t>> dims;  // (input, dimension)
  std::vector<size_t> statics;                  // static inputs whose integer is the size, and shrinks with it
  std::set<int64_t> blocks;                     // blocks that cut it in the traced calls; empty: it is never cut
};

// All dimensions of equal size are one class. Always right when the function has no other tie between its inputs than
// equality of sizes.
std::vector<DimClass> DimClassesBySize(const std::vector<InputSpec>& inputs, const Program& program);

// Finer: dimensions of inputs that reach a kernel unchanged are tied by the grid axis that cuts them, so that the three
// 4096s of a square product shrink one by one. Falls back to sizes where an operand is not an input. The result has to
// be traced: code outside the kernels may tie dimensions too (x + x @ w), and then DimClassesBySize is the answer.
std::vector<DimClass> DimClassesByAxis(const std::vector<InputSpec>& inputs, const Program& program);

struct ReducedShape {
  std::vector<InputSpec> inputs;
  std::map<int64_t, int64_t> sizes;  // full size -> reduced size, for messages; the largest where classes differ
  int64_t elements = 0;              // of all tensor inputs
  bool full = false;                 // nothing was reduced
  bool tails = false;                // made to have a partial last block in every dimension that is cut
};

struct ShapeOptions {
  int64_t max_elements = int64_t{1} << 23;  // of all inputs together; the smallest shape is kept even above it
  int64_t min_blocks = 2;                   // per grid axis
  int64_t largest_block = 0;                // largest block of any candidate; 0: of the original
};

struct ShapeLadder {
  std::vector<ReducedShape> shapes;        // ascending, same remainders as the full shape; never empty
  std::optional<ReducedShape> with_tails;  // for code that supports tails; nothing when no dimension is cut
};

// One entry per doubling of the original's blocks up to `largest_block`, each with `min_blocks` such blocks in every
// dimension that is cut and long enough.
ShapeLadder ProposeShapes(const std::vector<InputSpec>& inputs, const std::vector<DimClass>& classes,
                          const ShapeOptions& options);

// Whether the calls traced at a reduced shape check what the full shape needs: `min_blocks` steps on each grid axis
// that has as many at full size, and a partial last block exactly where the full shape has one.
bool CoversFullShape(const std::vector<PallasCall>& reduced, const std::vector<PallasCall>& full, int64_t min_blocks);

}  // namespace kernelwright::kernels
