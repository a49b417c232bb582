// Allocations get numbers far apart, so that address arithmetic inside one of them never meets another. What a copy
// brought is kept as one image and becomes cells only where it is read: a table may have a million words.
#include "daemon/cost/scalar_memory.h"

#include <utility>

namespace kernelwright::cost {
namespace {

constexpr uint64_t kWordBytes = 4;
constexpr size_t kMaxImages = 16;

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
  const std::vector<Image>& images = it->second.images;
  for (auto image = images.rbegin(); image != images.rend(); ++image) {
    const uint64_t index = address - image->address;
    if (address < image->address || index >= image->words) continue;
    if (image->bytes.empty()) break;
    return {WordAt(image->bytes, index), Known::kValue};
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
  for (auto& [base, allocation] : allocations_) allocation.images.clear();
  for (Cell& cell : cells_) {
    if (!cell.spill) cell.value = {0, Known::kNothing};
  }
}

void ScalarMemory::Fill(uint64_t address, uint64_t words) {
  Replace(&allocations_[PointerBase(address)], Image{address, words, {}}, words);
}

void ScalarMemory::Fill(uint64_t address, std::string_view bytes) {
  const uint64_t words = bytes.size() / kWordBytes;
  Replace(&allocations_[PointerBase(address)], Image{address, words, std::string(bytes)}, words);
}

void ScalarMemory::Replace(Allocation* allocation, Image image, uint64_t words) {
  const uint64_t begin = image.address;
  const uint64_t end = begin + words;
  allocation->data = true;
  std::erase_if(allocation->images,
                [&](const Image& old) { return old.address >= begin && old.address + old.words <= end; });
  // Buffers that are filled in turn are few; what is dropped here becomes unknown.
  if (allocation->images.size() == kMaxImages) allocation->images.erase(allocation->images.begin());
  allocation->images.push_back(std::move(image));
  for (const uint32_t cell : allocation->cells) {
    if (cells_[cell].address >= begin && cells_[cell].address < end) cells_[cell].value = Initial(cells_[cell].address);
  }
}

std::optional<uint32_t> ScalarMemory::Find(uint64_t address) const {
  const auto it = index_.find(address);
  if (it == index_.end()) return std::nullopt;
  return it->second;
}

}  // namespace kernelwright::cost
