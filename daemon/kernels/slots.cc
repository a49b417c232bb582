// Comparison of traced kernels; see slots.h.
#include "daemon/kernels/slots.h"

#include <algorithm>
#include <set>

#include "daemon/kernels/index_map.h"

namespace kernelwright::kernels {
namespace {

bool SameStructure(const PallasCall& a, const PallasCall& b) {
  if (a.grid.size() != b.grid.size() || a.blocks.size() != b.blocks.size() || a.scratch.size() != b.scratch.size()) {
    return false;
  }
  for (size_t i = 0; i < a.blocks.size(); ++i) {
    const BlockMapping& x = a.blocks[i];
    const BlockMapping& y = b.blocks[i];
    if (x.block.size() != y.block.size() || x.array.dims.size() != y.array.dims.size() ||
        x.array.dtype != y.array.dtype || x.is_output != y.is_output || x.has_index_map != y.has_index_map) {
      return false;
    }
    for (size_t d = 0; d < x.block.size(); ++d) {
      if (x.block[d].kind != y.block[d].kind) return false;
    }
  }
  for (size_t i = 0; i < a.scratch.size(); ++i) {
    if (a.scratch[i].dims.size() != b.scratch[i].dims.size() || a.scratch[i].dtype != b.scratch[i].dtype) return false;
  }
  return true;
}

std::vector<Slot> AllSlots(const PallasCall& call, int index) {
  std::vector<Slot> slots;
  slots.reserve(call.grid.size() + 4 * call.blocks.size() + 2 * call.scratch.size() + 1);
  for (size_t a = 0; a < call.grid.size(); ++a) slots.push_back({Slot::Kind::kGrid, index, static_cast<int>(a), 0});
  for (size_t b = 0; b < call.blocks.size(); ++b) {
    const int block = static_cast<int>(b);
    for (size_t d = 0; d < call.blocks[b].block.size(); ++d) {
      slots.push_back({Slot::Kind::kBlock, index, block, static_cast<int>(d)});
    }
    for (size_t d = 0; d < call.blocks[b].array.dims.size(); ++d) {
      slots.push_back({Slot::Kind::kArray, index, block, static_cast<int>(d)});
    }
  }
  for (size_t s = 0; s < call.scratch.size(); ++s) {
    for (size_t d = 0; d < call.scratch[s].dims.size(); ++d) {
      slots.push_back({Slot::Kind::kScratch, index, static_cast<int>(s), static_cast<int>(d)});
    }
  }
  slots.push_back({Slot::Kind::kVmemLimit, index, 0, 0});
  return slots;
}

bool SameType(const TensorType& a, const TensorType& b) { return a.dtype == b.dtype && a.dims == b.dims; }

bool SameGraph(const Graph& a, const Graph& b) {
  if (a.inputs.size() != b.inputs.size() || a.operations.size() != b.operations.size() ||
      a.outputs.size() != b.outputs.size()) {
    return false;
  }
  for (size_t i = 0; i < a.operations.size(); ++i) {
    const Operation& x = a.operations[i];
    const Operation& y = b.operations[i];
    if (x.name != y.name || x.inputs.size() != y.inputs.size() || x.outputs.size() != y.outputs.size() ||
        x.attributes != y.attributes || x.regions.size() != y.regions.size()) {
      return false;
    }
    for (size_t j = 0; j < x.inputs.size(); ++j) {
      if (x.inputs[j].value.has_value() != y.inputs[j].value.has_value() ||
          x.inputs[j].literal != y.inputs[j].literal) {
        return false;
      }
    }
    for (size_t j = 0; j < x.outputs.size(); ++j) {
      if (!SameType(x.outputs[j].type, y.outputs[j].type)) return false;
    }
    for (size_t j = 0; j < x.regions.size(); ++j) {
      if (!SameGraph(x.regions[j], y.regions[j])) return false;
    }
  }
  return true;
}

// Elements of one dimension that the grid reaches, and whether some block starts outside the operand.
struct Reach {
  int64_t begin = 0;
  int64_t end = 0;  // not clipped to the operand
  bool outside = false;
};

Reach ReachOf(const BlockMapping& block, size_t d, const DimUse& use) {
  const BlockDim& dim = block.block[d];
  const int64_t extent = block.array.dims[d];
  Reach reach;
  if (dim.kind == BlockDim::Kind::kElement || dim.kind == BlockDim::Kind::kBoundedSlice) {
    reach.begin = use.first;
    reach.end = use.last + dim.size;
    reach.outside = use.last >= extent;
  } else {
    reach.begin = use.first * dim.size;
    reach.end = (use.last + 1) * dim.size;
    reach.outside = use.last * dim.size >= extent;
  }
  reach.outside = reach.outside || reach.begin < 0;
  return reach;
}

std::optional<std::string> WhyCallInconsistent(const PallasCall& base, const PallasCall& observed) {
  std::set<int> moved_axes;  // grid axes whose number of steps changed
  for (size_t a = 0; a < base.grid.size(); ++a) {
    if (base.grid[a] != observed.grid[a]) moved_axes.insert(static_cast<int>(a));
    if (observed.grid[a] == 0) return "grid axis " + std::to_string(a) + " has no steps";
  }
  std::set<int> used_axes;
  bool all_known = true;
  for (size_t b = 0; b < base.blocks.size(); ++b) {
    const BlockMapping& before = base.blocks[b];
    const BlockMapping& after = observed.blocks[b];
    if (!before.has_index_map) {
      // An operand left in place is read by the kernel's own copies, whose extents are not visible here.
      if (before.memory_space != "smem") all_known = false;
      continue;
    }
    const auto uses_before = AnalyzeBlock(base, before);
    const auto uses_after = AnalyzeBlock(observed, after);
    for (size_t d = 0; d < before.block.size() && d < before.array.dims.size(); ++d) {
      if (uses_before[d].known != uses_after[d].known) return "the index map of " + before.origin + " changed its form";
      if (!uses_before[d].known) {
        all_known = false;
        continue;
      }
      used_axes.insert(uses_before[d].axes.begin(), uses_before[d].axes.end());
      used_axes.insert(uses_after[d].axes.begin(), uses_after[d].axes.end());
      const Reach x = ReachOf(before, d, uses_before[d]);
      const Reach y = ReachOf(after, d, uses_after[d]);
      const int64_t extent_before = before.array.dims[d];
      const int64_t extent_after = after.array.dims[d];
      const std::string where = "dimension " + std::to_string(d) + " of " + before.origin;
      if (y.outside && !x.outside) return "a block lies outside " + where;
      const int64_t end_before = std::min(x.end, extent_before);
      const int64_t end_after = std::min(y.end, extent_after);
      // Operands padded to the block size change their extent; then the whole of it has to be covered as before.
      const bool same = extent_before == extent_after
                            ? (x.begin == y.begin && end_before == end_after)
                            : ((end_before == extent_before) == (end_after == extent_after) && x.begin == y.begin);
      if (!same) {
        return where + ": elements " + std::to_string(y.begin) + " to " + std::to_string(end_after) +
               " are covered instead of " + std::to_string(x.begin) + " to " + std::to_string(end_before);
      }
    }
  }
  if (all_known) {
    for (const int axis : moved_axes) {
      if (!used_axes.contains(axis)) {
        return "grid axis " + std::to_string(axis) + " selects no block, so its number of steps must not change";
      }
    }
  }
  const auto single_step = [](int64_t steps) { return steps == 1; };
  if (std::none_of(base.grid.begin(), base.grid.end(), single_step) &&
      std::none_of(observed.grid.begin(), observed.grid.end(), single_step)) {
    const auto revisits_before = RevisitingAxes(base);
    const auto revisits_after = RevisitingAxes(observed);
    if (revisits_before && revisits_after && *revisits_before != *revisits_after) {
      return "other grid axes revisit the blocks of the output";
    }
  }
  return std::nullopt;
}

}  // namespace

std::string SlotText(const Slot& slot, const std::vector<PallasCall>& calls) {
  const PallasCall& call = calls[slot.call];
  const std::string dim = "[" + std::to_string(slot.dim) + "]";
  switch (slot.kind) {
    case Slot::Kind::kGrid:
      return "grid[" + std::to_string(slot.index) + "]";
    case Slot::Kind::kBlock:
      return "block of " + call.blocks[slot.index].origin + dim;
    case Slot::Kind::kScratch:
      return "scratch " + std::to_string(slot.index) + dim;
    case Slot::Kind::kArray:
      return "shape of " + call.blocks[slot.index].origin + dim;
    case Slot::Kind::kVmemLimit:
      break;
  }
  return "vmem_limit_bytes";
}

int64_t SlotValue(const Slot& slot, const std::vector<PallasCall>& calls) {
  const PallasCall& call = calls[slot.call];
  switch (slot.kind) {
    case Slot::Kind::kGrid:
      return call.grid[slot.index];
    case Slot::Kind::kBlock:
      return call.blocks[slot.index].block[slot.dim].size;
    case Slot::Kind::kScratch:
      return call.scratch[slot.index].dims[slot.dim];
    case Slot::Kind::kArray:
      return call.blocks[slot.index].array.dims[slot.dim];
    case Slot::Kind::kVmemLimit:
      break;
  }
  return call.vmem_limit_bytes.value_or(0);
}

void SetSlot(const Slot& slot, int64_t value, std::vector<PallasCall>& calls) {
  PallasCall& call = calls[slot.call];
  switch (slot.kind) {
    case Slot::Kind::kGrid:
      call.grid[slot.index] = value;
      break;
    case Slot::Kind::kBlock:
      call.blocks[slot.index].block[slot.dim].size = value;
      break;
    case Slot::Kind::kScratch:
      call.scratch[slot.index].dims[slot.dim] = value;
      break;
    case Slot::Kind::kArray:
      call.blocks[slot.index].array.dims[slot.dim] = value;
      break;
    case Slot::Kind::kVmemLimit:
      call.vmem_limit_bytes = value == 0 ? std::nullopt : std::optional<int64_t>(value);
      break;
  }
}

std::optional<std::vector<SlotChange>> CompareCalls(const std::vector<PallasCall>& base,
                                                    const std::vector<PallasCall>& observed) {
  if (observed.size() > base.size()) return std::nullopt;
  std::vector<SlotChange> changes;
  for (size_t c = 0; c < observed.size(); ++c) {
    if (!SameStructure(base[c], observed[c])) return std::nullopt;
    for (const Slot& slot : AllSlots(base[c], static_cast<int>(c))) {
      const int64_t before = SlotValue(slot, base);
      const int64_t after = SlotValue(slot, observed);
      if (before != after) changes.push_back({slot, before, after});
    }
  }
  return changes;
}

bool KernelsDiffer(const std::vector<PallasCall>& base, const std::vector<PallasCall>& observed) {
  for (size_t c = 0; c < base.size() && c < observed.size(); ++c) {
    if (!SameGraph(base[c].kernel, observed[c].kernel)) return true;
  }
  return false;
}

std::optional<std::string> WhyInconsistent(const std::vector<PallasCall>& base,
                                           const std::vector<PallasCall>& observed) {
  if (base.size() != observed.size()) {
    return "the function makes " + std::to_string(observed.size()) + " kernels instead of " +
           std::to_string(base.size());
  }
  for (size_t c = 0; c < base.size(); ++c) {
    if (!SameStructure(base[c], observed[c])) return "kernel " + base[c].name + " has other operands or another rank";
    if (auto why = WhyCallInconsistent(base[c], observed[c])) return why;
  }
  return std::nullopt;
}

}  // namespace kernelwright::kernels
