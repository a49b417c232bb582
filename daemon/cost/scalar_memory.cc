// Allocations get numbers far apart, so that address arithmetic inside one of them never meets another. What a copy
// brought is kept as one image and becomes cells only where it is read: a table may have a million words.
#include "daemon/cost/scalar_memory.h"

namespace kernelwright::cost {
namespace {

constexpr uint64_t kWordBytes = 4;

uint64_t WordAt(std::string_view bytes, uint64_t index) {
  uint64_t word = 0;
  for (uint64_t i = 0; i < kWordBytes; ++i) {
    word |= uint64_t{static_cast<unsigned char>(bytes[index * kWordBytes + i])} << (8 * i);
  }
  return word;
}

}  // namespace

uint64_t ScalarMemory::AllocationBase(int program, std::string_view name) {
  std::string key = std::to_string(program) + ":";
  key += name;
  const auto [it, inserted] = names_.emplace(std::move(key), names_.size() + 1);
  return it->second << kOffsetBits;
}

Value ScalarMemory::Initial(uint64_t address) const {
  const auto it = allocations_.find(PointerBase(address));
  if (it == allocations_.end() || !it->second.data) return {0, all_data_ ? Known::kNothing : Known::kRuntime};
  if (const auto& image = it->second.image; image && address >= image->address) {
    const uint64_t index = address - image->address;
    if (index < image->bytes.size() / kWordBytes) return {WordAt(image->bytes, index), Known::kValue};
  }
  return {0, Known::kNothing};
}

uint32_t ScalarMemory::CellAt(uint64_t address, bool spill) {
  const auto [it, inserted] = index_.emplace(address, static_cast<uint32_t>(cells_.size()));
  if (inserted) {
    Cell cell;
    cell.address = address;
    cell.spill = spill;
    if (!spill) {
      cell.value = Initial(address);
      allocations_[PointerBase(address)].cells.push_back(it->second);
    }
    cells_.push_back(cell);
  }
  return it->second;
}

void ScalarMemory::ForgetAll() {
  all_data_ = true;
  for (auto& [base, allocation] : allocations_) allocation.image.reset();
  for (Cell& cell : cells_) {
    if (!cell.spill) cell.value = {0, Known::kNothing};
  }
}

void ScalarMemory::ForgetAllocation(uint64_t address) {
  Allocation& allocation = allocations_[PointerBase(address)];
  allocation.data = true;
  allocation.image.reset();
  for (const uint32_t cell : allocation.cells) cells_[cell].value = {0, Known::kNothing};
}

void ScalarMemory::LoadImage(uint64_t address, std::string_view bytes) {
  ForgetAllocation(address);
  Allocation& allocation = allocations_[PointerBase(address)];
  allocation.image = Image{address, std::string(bytes)};
  for (const uint32_t cell : allocation.cells) cells_[cell].value = Initial(cells_[cell].address);
}

std::optional<uint32_t> ScalarMemory::Find(uint64_t address) const {
  const auto it = index_.find(address);
  if (it == index_.end()) return std::nullopt;
  return it->second;
}

}  // namespace kernelwright::cost
