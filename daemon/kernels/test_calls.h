// Builds Pallas calls for tests in a line or two.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon/kernels/program.h"

namespace kernelwright::kernels {

// One dimension of an index map: a grid axis (≥ 0) or the constant 0 (kConstant).
constexpr int kConstant = -1;

inline BlockMapping MakeBlock(std::string origin, std::string dtype, std::vector<int64_t> dims,
                              const std::vector<int64_t>& block, const std::vector<int>& axes, size_t grid_rank,
                              bool is_output = false) {
  BlockMapping mapping;
  mapping.origin = std::move(origin);
  mapping.is_output = is_output;
  mapping.array.dtype = std::move(dtype);
  mapping.array.dims = std::move(dims);
  mapping.memory_space = "vmem";
  for (const int64_t size : block) mapping.block.push_back({BlockDim::Kind::kBlocked, size});
  for (size_t a = 0; a < grid_rank; ++a) mapping.index_map.inputs.push_back({static_cast<uint32_t>(a + 1), {}, ""});
  for (const int axis : axes) {
    Operand operand;
    if (axis == kConstant)
      operand.literal = int64_t{0};
    else
      operand.value = static_cast<uint32_t>(axis + 1);
    mapping.index_map.outputs.push_back(operand);
  }
  return mapping;
}

// (m, k) · (k, n) with blocks (bm, bn, bk) over the grid (i, j, s), f32 scratch of the output's block.
inline PallasCall MakeMatmul(int64_t m, int64_t n, int64_t k, int64_t bm, int64_t bn, int64_t bk,
                             const std::string& dtype = "bfloat16") {
  PallasCall call;
  call.name = "matmul";
  call.grid = {(m + bm - 1) / bm, (n + bn - 1) / bn, (k + bk - 1) / bk};
  call.blocks.push_back(MakeBlock("x_ref", dtype, {m, k}, {bm, bk}, {0, 2}, 3));
  call.blocks.push_back(MakeBlock("y_ref", dtype, {k, n}, {bk, bn}, {2, 1}, 3));
  call.blocks.push_back(MakeBlock("o_ref", dtype, {m, n}, {bm, bn}, {0, 1}, 3, true));
  TensorType scratch;
  scratch.dtype = "float32";
  scratch.dims = {bm, bn};
  call.scratch.push_back(scratch);
  return call;
}

}  // namespace kernelwright::kernels
