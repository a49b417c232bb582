// Tags are sentences of the compiler: "input window allocation for operator input 0. The window shape is …".
#include "daemon/profile/vmem_map.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <string_view>

namespace kernelwright::profile {
namespace {

constexpr int64_t kRegisterBytes = 4096;  // a spill slot holds one vector register of 8 x 128 words

std::string Between(std::string_view text, std::string_view before, std::string_view after) {
  const size_t at = text.find(before);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + before.size());
  return std::string(rest.substr(0, rest.find(after)));
}

int Buffers(std::string_view tag) {
  const std::string number = Between(tag, "This allocation has ", " buffering levels");
  int value = 1;
  std::from_chars(number.data(), number.data() + number.size(), value);
  return std::max(value, 1);
}

VmemRegion RegionOf(const compiler::Allocation& allocation, int* scratch) {
  VmemRegion region;
  region.bytes = static_cast<int64_t>(allocation.size);
  region.shape = allocation.shape;
  const std::string_view tag = allocation.tag;
  if (tag.starts_with("input window") || tag.starts_with("output window")) {
    region.kind = tag.starts_with("input") ? "input window" : "output window";
    region.what = Between(tag, "for operator ", ".");
    if (const std::string shape = Between(tag, "The window shape is ", ", while"); !shape.empty()) region.shape = shape;
    region.buffers = Buffers(tag);
  } else if (tag == "scratch operand") {
    region.kind = "scratch";
    region.what = "scratch " + std::to_string((*scratch)++);
  } else if (tag == "internal scratch") {
    region.kind = region.what = "internal scratch";
  } else {
    region.kind = "other";
    region.what = tag.empty() ? "allocation " + allocation.name : std::string(tag.substr(0, tag.find(". ")));
  }
  return region;
}

int64_t SpillSlots(const compiler::BundleProgram& program) {
  std::set<std::string_view> slots;
  for (const compiler::BundleOp& op : program.ops()) {
    const compiler::Unit unit = program.opcode(op).unit;
    if (unit != compiler::Unit::kLoad && unit != compiler::Unit::kStore) continue;
    const std::string_view text = program.op_text(op);
    if (!compiler::IsVectorSpill(text)) continue;
    const size_t at = text.find("[#allocation");
    slots.insert(text.substr(at, text.find("_spill", at) - at));
  }
  return static_cast<int64_t>(slots.size());
}

}  // namespace

VmemMap MapVmem(const cost::UnitDetail& unit, const cost::Chip& chip, std::optional<int64_t> kernel_limit) {
  VmemMap map;
  map.limit = kernel_limit.value_or(static_cast<int64_t>(chip.vmem_default_limit_bytes.value));
  map.physical = static_cast<int64_t>(chip.vmem_bytes.value);
  int scratch = 0;
  for (const compiler::Allocation& allocation : unit.allocations) {
    if (allocation.space == "vmem" && allocation.size > 0) map.regions.push_back(RegionOf(allocation, &scratch));
  }
  if (const int64_t slots = SpillSlots(*unit.source); slots > 0) {
    map.regions.push_back(
        {"spill slots", "spill slots", std::to_string(slots) + " registers", slots * kRegisterBytes, 1});
  }
  for (const VmemRegion& region : map.regions) map.total += region.bytes;
  std::stable_sort(map.regions.begin(), map.regions.end(),
                   [](const VmemRegion& a, const VmemRegion& b) { return a.bytes > b.bytes; });
  return map;
}

}  // namespace kernelwright::profile
