// What one step of a kernel does, counted from its traced body, for block shapes that may differ from the traced ones:
// sizes are followed from the windows through the operations. Also the work of whole functions, for the floor.
#pragma once

#include <string>
#include <vector>

#include "daemon/cost/estimate.h"
#include "daemon/kernels/program.h"

namespace kernelwright::cost {

// One matrix product of a step: batch times [m, k] x [k, n], `times` a step (loops and conditions weighted).
struct Product {
  double batch = 1, m = 1, k = 1, n = 1;
  double times = 1;
  std::string dtype;  // of the left operand
};

// Amounts are elements per step, weighted by loop trips and by how often a condition on the grid position holds.
struct StepWork {
  std::vector<Product> products;
  double vector_elements = 0;  // element-wise operations
  double transcendental = 0;   // exp, tanh, log, rsqrt, …
  double lane_elements = 0;    // reductions over the last axis, transposes, lane moves
  double loaded_bytes = 0;     // from windows and scratch
  double stored_bytes = 0;
  bool has_unknown_loops = false;               // a loop without a fixed count was counted once
  std::vector<std::string> unknown_operations;  // counted as element-wise

  double flops() const;  // of the products, multiply and add counted as two
};

// `call.blocks` and `call.scratch` give the sizes; `call.kernel` may have been traced with other ones.
StepWork CountStep(const PallasCall& call);

// Least work of a function: flops of its products (kernels included, with their grids), bytes of its arguments and
// results. flops is unset when a loop count or a grid is not fixed, or there is no product.
Work WorkOfProgram(const Graph& main);

}  // namespace kernelwright::cost
