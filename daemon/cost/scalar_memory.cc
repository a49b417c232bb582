// Scalar memory of a replay: allocations get numbers of their own, far apart, so that address arithmetic inside one
// allocation never meets another.
#include "daemon/cost/scalar_program.h"

namespace kernelwright::cost {
namespace {
constexpr int kOffsetBits = 32;
}

uint64_t ScalarMemory::AllocationBase(int program, std::string_view name) {
  std::string key = std::to_string(program) + ":";
  key += name;
  const auto [it, inserted] = allocations_.emplace(std::move(key), allocations_.size() + 1);
  return it->second << kOffsetBits;
}

uint32_t ScalarMemory::CellAt(uint64_t address, bool spill) {
  const auto [it, inserted] = index_.emplace(address, static_cast<uint32_t>(cells_.size()));
  if (inserted) {
    Cell cell;
    cell.address = address;
    cell.spill = spill;
    if (!spill && HoldsData(address)) cell.value = {0, Known::kNothing};
    cells_.push_back(cell);
  }
  return it->second;
}

bool ScalarMemory::HoldsData(uint64_t address) const {
  return all_data_ || data_allocations_.contains(address >> kOffsetBits);
}

void ScalarMemory::ForgetAll() {
  all_data_ = true;
  for (Cell& cell : cells_) {
    if (!cell.spill) cell.value = {0, Known::kNothing};
  }
}

void ScalarMemory::ForgetAllocation(uint64_t address) {
  data_allocations_[address >> kOffsetBits] = true;
  for (Cell& cell : cells_) {
    if (!cell.spill && (cell.address >> kOffsetBits) == (address >> kOffsetBits)) cell.value = {0, Known::kNothing};
  }
}

std::optional<uint32_t> ScalarMemory::Find(uint64_t address) const {
  const auto it = index_.find(address);
  if (it == index_.end()) return std::nullopt;
  return it->second;
}

}  // namespace kernelwright::cost
