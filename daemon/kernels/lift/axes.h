// Which dimensions of which values are the same axis, and which axes are rows (independent of each other, cut by the
// grid) or columns (reduced, contracted, one per lane). This is what decides whether a program is a chain of row
// operations and products, and what may be any size.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <variant>
#include <vector>

#include "daemon/kernels/lift/flat.h"

namespace kernelwright::kernels::lift {

inline constexpr int kUnit = -1;  // a dimension of size 1 belongs to no axis

struct Axes {
  std::vector<std::vector<int>> dims;  // per node and dimension: its axis, or kUnit
  std::map<int, int64_t> size;         // of each axis that is no row
  std::set<int> rows;
  std::set<int> columns;
  int64_t row_count = 1;

  // What a value is in a block of rows: (rows, columns), (rows, 1), (1, columns) or (1, 1).
  struct Layout {
    bool rows = false;
    int column = kUnit;  // axis
  };
  std::vector<Layout> layout;  // per node; that of a weight means nothing
  std::set<int> weights;       // nodes that are right-hand sides of products, views included
};

// A product of rows with a weight that is an input.
struct Product {
  int node = 0;
  int left = 0;             // node, before views are looked through
  int weight = 0;           // input
  bool transposed = false;  // the weight is (n, k)
  std::string left_dtype;   // types of the operands as they are multiplied
  std::string right_dtype;
  int k = kUnit;  // axes
  int n = kUnit;
};

using AxesResult = std::variant<Axes, Obstacle>;
AxesResult AnalyzeAxes(const FlatProgram& flat);

// `node` must be a dot_general that AnalyzeAxes accepted.
std::variant<Product, Obstacle> ReadProduct(const FlatProgram& flat, const Axes& axes, int node);

// Whether the operation only looks at its operand in another way, within a block of rows.
bool IsAlias(const FlatProgram& flat, int node);
// The value behind views and conversions between floating types (everything is computed in float32).
Arg Behind(const FlatProgram& flat, Arg arg);

bool IsFloat(const std::string& dtype);
bool IsReduction(const std::string& op);

}  // namespace kernelwright::kernels::lift
