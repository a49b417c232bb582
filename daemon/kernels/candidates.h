// Legal joint values of tunable parameters on a chip: tiling by type, divisibility or masked tails as the code
// supports, the VMEM limit; ranked by a cost that the caller supplies. Nothing is traced or compiled here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/kernels/params.h"
#include "daemon/kernels/program.h"

namespace kernelwright::kernels {

// Why the TPU lowering refuses a block, or nothing: for rank ≥ 2 the last two dimensions are multiples of (8, 128) or
// the whole dimension; rank 1 is the whole, a multiple of 1024, or a power of two from 128 · (32 / bits) up.
std::optional<std::string> IllegalBlock(const BlockMapping& block);
// The first illegal block of the calls, with its name.
std::optional<std::string> IllegalBlocks(const std::vector<PallasCall>& calls);

// Rows of a packed tile: 8 for 32-bit types, 16 for bf16, 32 for 8-bit ones, 64 for 4-bit ones.
int64_t PackedRows(const std::string& dtype);

struct CandidateOptions {
  // Second-last dimensions are multiples of the packed tile, not only of 8 (the present value stays allowed).
  bool prefer_packed = true;
  // Non-divisors of extents on reduction axes: only for code whose masks were checked, or whose original has a tail.
  bool masked_reductions = false;
  size_t max_values = 24;          // per parameter
  size_t max_assignments = 20000;  // joint ones looked at; value lists are thinned to stay below
  size_t max_results = 64;
};

// VMEM as the chip and the source allow it.
struct VmemPolicy {
  int64_t default_limit_bytes = 0;                       // without vmem_limit_bytes
  int64_t largest_limit_bytes = 0;                       // what may be asked for
  std::function<int64_t(const PallasCall&)> need_bytes;  // estimate, spills aside
  std::vector<bool> can_set_limit;  // per call: the source can take a vmem_limit_bytes; missing entries mean no
};

struct Candidate {
  std::vector<int64_t> values;                          // one per parameter
  std::vector<PallasCall> calls;                        // as Substitute gives them, with the new limits
  std::vector<std::optional<int64_t>> new_vmem_limits;  // per call; set where the limit has to be raised
  double cost = 0;
  bool is_original = false;
};

// Smaller is better; nothing when it cannot say (the candidate comes last).
using CostFunction = std::function<std::optional<double>(const std::vector<PallasCall>&)>;

// Values worth trying in one parameter, ascending, the present one included: tile multiples times powers of two and
// divisors of the extents, up to the whole extent.
std::vector<int64_t> LegalValues(const Parameter& parameter, const std::vector<PallasCall>& base,
                                 const CandidateOptions& options);

struct CandidateList {
  std::vector<Candidate> candidates;  // best first; the original is always among them
  size_t considered = 0;              // joint assignments looked at
  size_t illegal = 0;                 // refused by tiling
  size_t too_large = 0;               // refused by VMEM
};

CandidateList EnumerateCandidates(const std::vector<Parameter>& parameters, const std::vector<PallasCall>& base,
                                  const CandidateOptions& options, const VmemPolicy& vmem, const CostFunction& cost);

// "parallel" for grid axes whose steps write different blocks, "arbitrary" for the others; nothing when an output's
// index map cannot be computed, when the call has no grid, or when that is what it has. A claim that only the race gate
// can settle: scratch may carry state over an axis. Of use on chips with two cores only.
std::optional<std::vector<std::string>> ProposeSemantics(const PallasCall& call);

}  // namespace kernelwright::kernels
