// Runs a kernel's graph step by step with program ids as numbers and everything else unknown, and follows where memory
// that nobody wrote, sums carried from other steps and the padding of tails flow. Only what is certain is reported.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "daemon/diagnose/kernel_lint_refs.h"
#include "daemon/kernels/program.h"

namespace kernelwright::diagnose {

struct StepFinding {
  enum class Kind {
    kUninitialised,  // `operation` reads `ref` before anything wrote it, and the value is stored
    kRevisited,      // the same, in a block of an output that was left and is visited again
    kCarried,        // `operation` reads what another step of parallel axis `axis` left in `ref`, and adds to it
    kOverrun,  // `operation` reads or writes `size` elements of `ref` from `start` on in dimension `dim`, past its end
    kTail,     // `operation` reduces over the padding of the last block of `ref` in dimension `dim`
    kNarrowSum,       // `operation` stores a running sum in 16 bits, `count` times
    kNarrowedAddend,  // `operation` rounds what is added to a 32-bit sum to 16 bits
  };
  Kind kind = Kind::kUninitialised;
  const Operation* operation = nullptr;
  int ref = -1;
  int other_ref = -1;  // kTail: the other operand of a product, when it has padding too
  int axis = -1;
  int dim = -1;
  int64_t count = 0;
  int64_t start = 0;
  int64_t size = 0;
  std::vector<int64_t> position;  // grid ids of the step
};

// What is known about a `cond` over all steps.
struct BranchUse {
  uint32_t axes = 0;     // grid axes (bits) that its predicate depends on
  bool unknown = false;  // depends on data
  std::set<size_t> taken;
};

struct StepResult {
  std::vector<StepFinding> findings;  // one per kind and reference
  std::map<const Operation*, BranchUse> branches;
  bool complete = false;   // every step was run
  bool all_lines = false;  // every value of each axis was run, the others at their first and last
};

// `refs`: of KernelRefs.
StepResult RunSteps(const PallasCall& call, const std::vector<KernelRef>& refs);

}  // namespace kernelwright::diagnose
