// What every candidate of a run is judged by: reference text, inputs, check shapes, seeds and tolerances. Made once at
// the run's start, hashed, stored, and never changed after it (invariant FrozenReference).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/agents/toolchain.h"
#include "daemon/base/status.h"

namespace kernelwright::agents {

struct FrozenReference {
  Source original;                         // what candidates are edits of, with the texts of all user files it used
  Source reference;                        // the oracle: --reference, else the original
  std::vector<kernels::InputSpec> inputs;  // at the size that matters
  std::string inputs_origin;               // "--inputs", "comment", or the function that supplied them
  std::vector<CheckShape> ladder;          // reduced shapes, smallest first; a candidate is judged on the first that
                                           // gives it two blocks on each grid axis
  std::vector<uint64_t> seeds;             // for inputs and for the interpreter's schedules
  Tolerance tolerance;

  bool operator==(const FrozenReference&) const = default;
};

// Canonical JSON; FrozenFromJson(FrozenToJson(x)) == x.
std::string FrozenToJson(const FrozenReference& frozen);
Expected<FrozenReference> FrozenFromJson(std::string_view json);

// SHA-256 of the canonical JSON.
std::string FrozenHash(const FrozenReference& frozen);

}  // namespace kernelwright::agents
