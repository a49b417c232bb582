// Whether a program computes the same at any size, found by comparing its traces at two sets of sizes: a number that is
// the same in both does not depend on a size; one that is the length of the reduced axis in both makes a mean. Without
// a second trace, or with a difference that is neither, the lifted kernel takes the traced sizes only.
#pragma once

#include <set>
#include <string>

#include "daemon/kernels/lift/axes.h"
#include "daemon/kernels/lift/flat.h"

namespace kernelwright::kernels::lift {

struct Sizes {
  bool free = false;
  std::string why_fixed;
  std::set<int> means;  // divisions of a sum over the columns by their number
};

Sizes CompareSizes(const FlatProgram& flat, const Axes& axes, const FlatProgram* other);

}  // namespace kernelwright::kernels::lift
