// Block index maps of a kernel: evaluated at a grid point, or analysed as affine functions of it. A map that reads a
// scalar-prefetch operand, or uses an operation that is not known here, is refused and never guessed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "daemon/base/status.h"
#include "daemon/kernels/program.h"

namespace kernelwright::cost {

class IndexMap {
 public:
  // `map`: inputs are the grid ids (int32) and then `num_refs` scalar-prefetch refs; outputs are one int per dimension.
  static Expected<IndexMap> Compile(const Graph& map, size_t grid_rank);

  size_t outputs() const { return outputs_.size(); }

  // Block indices at a grid point, in 32-bit arithmetic as on the device. `scratch` is reused between calls.
  // `out` holds outputs() values. Fails only on a division by zero.
  bool Evaluate(std::span<const int64_t> point, std::vector<int64_t>* scratch, std::span<int64_t> out) const;

  // Output d is coefficients[d][0]*id0 + … + constant[d].
  struct Affine {
    std::vector<std::vector<int64_t>> coefficients;
    std::vector<int64_t> constants;
    bool is_constant() const;
  };
  // Nothing when some output is not affine (with the 32-bit range never left; callers use grids far below it).
  const Affine* affine() const { return is_affine_ ? &affine_ : nullptr; }

  enum class Op : uint8_t {
    kAdd,
    kSub,
    kMul,
    kDiv,
    kRem,
    kMin,
    kMax,
    kNeg,
    kAbs,
    kSign,
    kAnd,
    kOr,
    kXor,
    kNot,
    kNotBool,
    kShiftLeft,
    kShiftRightLogical,
    kShiftRightArithmetic,
    kEq,
    kNe,
    kLt,
    kLe,
    kGt,
    kGe,
    kSelect,
    kClamp,
    kCopy,
    kPow,
  };
  struct Instruction {
    Op op = Op::kCopy;
    uint32_t destination = 0;
    std::vector<uint32_t> inputs;
    int64_t immediate = 0;  // exponent of kPow
  };

 private:
  friend class IndexMapCompiler;
  void Analyse(size_t grid_rank);

  std::vector<int64_t> initial_;  // slots: grid ids, then constants and results
  std::vector<Instruction> instructions_;
  std::vector<uint32_t> outputs_;
  bool is_affine_ = false;
  Affine affine_;
};

// How often the block that a map names changes while the grid is walked in order, last axis fastest; the first visit
// counts. Exact for affine maps without walking; other maps are walked up to `max_points`. Grid entries must be
// positive.
Expected<int64_t> CountBlockChanges(const IndexMap& map, std::span<const int64_t> grid, int64_t max_points = 4000000);

}  // namespace kernelwright::cost
