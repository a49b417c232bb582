// Evaluates BlockSpec index maps on given grid positions, to learn which blocks a grid visits. Only scalar integer
// arithmetic is understood; a map that reads prefetched scalars has no answer here.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "daemon/kernels/program.h"

namespace kernelwright::kernels {

// Block indices, one per dimension, at one grid position (one id per grid axis). Nothing for maps that need more than
// the ids or use an operation that is not known here. Single dimensions that cannot be computed are empty.
std::vector<std::optional<int64_t>> EvaluateIndexMap(const BlockMapping& block, const std::vector<int64_t>& position);

// How one dimension of a block depends on the grid.
struct DimUse {
  bool known = false;      // false: not computable here
  std::set<int> axes;      // grid axes that change the block index
  int identity_axis = -1;  // the block index is the id of this axis, and depends on nothing else
  int64_t first = 0;       // smallest and largest block index over the grid (sampled on large grids:
  int64_t last = 0;        // corners and lines along the axes)
};

// One entry per dimension of the block. A dimension with a dynamic grid bound (-1) counts as two steps.
std::vector<DimUse> AnalyzeBlock(const PallasCall& call, const BlockMapping& block);

// Grid axes that certainly give each step of theirs another block of every output: a computable dimension of the block
// index depends on them. Empty without outputs.
std::set<int> OutputAxes(const PallasCall& call);

// Grid axes on which the output's block index does not depend: several steps visit the same block (reductions). Nothing
// when a map of an output is not computable.
std::optional<std::set<int>> RevisitingAxes(const PallasCall& call);

}  // namespace kernelwright::kernels
