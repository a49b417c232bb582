// Parser of the allocation lines of `pre-finalize-registers-and-allocations`: memory of a unit by space, with the tags
// that say what each piece is for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernelwright::compiler {

struct Allocation {
  std::string name;   // what stands behind "#allocation": "4", "13_spill"
  std::string shape;  // "u8[1048576]{0}"
  std::string space;  // "vmem", "smem", "sflag", "hbm"
  uint64_t size = 0;  // bytes
  std::string tag;    // "input window allocation for operator input 0. …"
};

// All allocations in the order of the text. Lines of another form are skipped: the file is mostly a listing of code.
std::vector<Allocation> ParseAllocations(std::string_view text);

}  // namespace kernelwright::compiler
