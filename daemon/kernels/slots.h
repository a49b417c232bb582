// The numbers of Pallas calls that a tuner may move: grid bounds, block, scratch and array sizes. Compares what two
// traces of a function say about them, and tells whether a change of blocks still does the same work.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/kernels/program.h"

namespace kernelwright::kernels {

struct Slot {
  enum class Kind { kGrid, kBlock, kScratch, kArray, kVmemLimit };
  Kind kind = Kind::kGrid;
  int call = 0;   // index into the list of calls
  int index = 0;  // grid axis, block, scratch buffer or operand; 0 for the limit
  int dim = 0;    // dimension of the block, scratch buffer or operand
  auto operator<=>(const Slot&) const = default;
};
std::string SlotText(const Slot& slot, const std::vector<PallasCall>& calls);  // "grid[0]", "block of x_ref[1]"

// Present value; 0 for a limit that is not set, 1 for a squeezed dimension.
int64_t SlotValue(const Slot& slot, const std::vector<PallasCall>& calls);
void SetSlot(const Slot& slot, int64_t value, std::vector<PallasCall>& calls);

struct SlotChange {
  Slot slot;
  int64_t before = 0;
  int64_t after = 0;
};

// What differs between two traces. The second may hold fewer calls (a trace that failed on the way): the calls it has
// are compared. Nothing when a call differs in more than sizes (ranks, operands, number of grid axes).
std::optional<std::vector<SlotChange>> CompareCalls(const std::vector<PallasCall>& base,
                                                    const std::vector<PallasCall>& observed);

// Whether the kernel bodies of calls with the same sizes differ (another literal, another shape inside).
bool KernelsDiffer(const std::vector<PallasCall>& base, const std::vector<PallasCall>& observed);

// Why `observed` would not do the same work as `base`, or nothing: the same extents of every operand are covered by
// grid and blocks, no block lies outside its operand, and the same grid axes revisit output blocks. Index maps that
// depend on prefetched data are not checked.
std::optional<std::string> WhyInconsistent(const std::vector<PallasCall>& base,
                                           const std::vector<PallasCall>& observed);
inline bool Consistent(const std::vector<PallasCall>& base, const std::vector<PallasCall>& observed) {
  return !WhyInconsistent(base, observed);
}

}  // namespace kernelwright::kernels
