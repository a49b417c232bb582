// How a program is cut into kernels: one per product (or per products of the same rows that meet), with what comes
// before and after it fused into it as far as blocks allow; and kernels over whole rows for the rest.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "daemon/kernels/lift/axes.h"
#include "daemon/kernels/lift/flat.h"
#include "daemon/kernels/lift/sizes.h"

namespace kernelwright::kernels::lift {

// What a kernel reads: an input of the program or the result of an earlier kernel.
struct Source {
  int node = 0;
  bool in_epilogue = false;  // cut like the product's result, not like its left side
};

struct Stage {
  std::vector<Product> products;  // empty: a kernel over whole rows
  std::vector<Source> sources;    // weights left out
  std::vector<int> outputs;       // nodes
  bool has_prologue = false;      // the left side is computed, not only read
  bool whole_columns = false;     // what follows the product reduces its columns: a block has all of them
};

struct Plan {
  std::vector<Stage> stages;
  bool fused_rows = false;  // a reduction over the last product's columns was put into its kernel
};

struct PlanOptions {
  bool fuse_rows = false;  // put it there if there is one
};

using PlanResult = std::variant<Plan, Obstacle>;
PlanResult MakePlan(const FlatProgram& flat, const Axes& axes, const PlanOptions& options);

// The type in which a value between kernels is kept: the widest in which some later kernel reads it.
std::string KeptType(const FlatProgram& flat, int node);

}  // namespace kernelwright::kernels::lift
