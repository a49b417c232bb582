// Parser of `final_hlo-static-per-bundle-utilization`: how many slots of each functional unit a bundle keeps busy.
// MATMUL is occupancy, not issue: a product counts in all bundles during which its unit is busy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::compiler {

struct Utilization {
  std::vector<std::string> units;  // "MATMUL", …, in the order of the columns
  std::vector<uint8_t> capacity;   // per unit
  std::vector<uint8_t> busy;       // row-major: bundle i, unit j at i * units.size() + j
  size_t bundles() const { return units.empty() ? 0 : busy.size() / units.size(); }
  // Column of a unit, or -1.
  int Column(std::string_view unit) const;
  uint8_t at(size_t bundle, int column) const { return busy[bundle * units.size() + static_cast<size_t>(column)]; }
};

// Errors name the line: a heading that is missing, a row of another width or with a number above the unit's capacity.
Expected<Utilization> ParseUtilization(std::string_view text);

}  // namespace kernelwright::compiler
