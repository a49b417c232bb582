// The padding rule was read off the compiler's own allocations: rows go to a multiple of 8 whatever the type; below 8
// rows to the next power of two, but never below the number of rows that one 32-bit register word packs.
#include "daemon/cost/vmem.h"

#include <algorithm>
#include <bit>

#include "daemon/cost/dtype.h"
#include "daemon/cost/index_map.h"

namespace kernelwright::cost {
namespace {

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Dimensions of a window: squeezed ones are dropped.
std::vector<int64_t> WindowDims(const BlockMapping& block) {
  std::vector<int64_t> dims;
  for (const BlockDim& dim : block.block) {
    if (dim.kind != BlockDim::Kind::kSqueezed) dims.push_back(dim.size);
  }
  return dims;
}

std::string Mebibytes(int64_t bytes) {
  const int64_t hundredths = (bytes * 100 + (1 << 19)) >> 20;
  const std::string fraction = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + (fraction.size() < 2 ? ".0" : ".") + fraction + " MiB";
}

bool InVmem(const std::string& space) { return space.empty() || space == "vmem"; }

bool HasConstantMap(const BlockMapping& block, size_t grid_rank) {
  const auto map = IndexMap::Compile(block.index_map, grid_rank);
  return map && map->affine() != nullptr && map->affine()->is_constant();
}

}  // namespace

int64_t PaddedWindowBytes(std::span<const int64_t> dims, int bits, const Chip& chip) {
  const int64_t packing = std::max(1, 32 / bits);
  if (dims.empty()) return int64_t{chip.lanes} * 4;
  int64_t elements = RoundUp(std::max<int64_t>(dims.back(), 1), chip.lanes);
  if (dims.size() == 1) {
    elements = RoundUp(std::max<int64_t>(dims[0], 1), chip.lanes * packing);
    return elements * bits / 8;
  }
  const int64_t rows = std::max<int64_t>(dims[dims.size() - 2], 1);
  int64_t padded = 0;
  if (rows < chip.sublanes) {
    const auto power = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
    padded = std::max(power, std::min<int64_t>(packing, chip.sublanes));
  } else {
    padded = RoundUp(rows, chip.sublanes);
  }
  elements *= padded;
  for (size_t i = 0; i + 2 < dims.size(); ++i) elements *= std::max<int64_t>(dims[i], 1);
  return elements * bits / 8;
}

VmemUse ComputeVmem(const PallasCall& call, const Chip& chip) {
  VmemUse use;
  const auto add = [&](std::string what, const std::vector<int64_t>& dims, const TensorType& type, int buffers,
                       bool smem) {
    const auto bits = DtypeBits(type.dtype);
    if (!bits || std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; })) {
      use.unknown.push_back(std::move(what));
      return;
    }
    int64_t plain = *bits;
    for (const int64_t dim : dims) plain *= dim;
    plain /= 8;
    if (smem) {
      use.smem_total += plain * buffers;
      return;
    }
    const int64_t padded = PaddedWindowBytes(dims, *bits, chip);
    use.parts.push_back({std::move(what), padded * buffers, (padded - plain) * buffers, buffers});
    use.total += padded * buffers;
  };
  for (const BlockMapping& block : call.blocks) {
    const bool smem = block.memory_space == "smem";
    if (!InVmem(block.memory_space) && !smem) continue;
    // Without an index map the whole operand is brought in once.
    if (!block.has_index_map) {
      if (InVmem(block.memory_space)) add(block.origin, block.array.dims, block.array, 1, smem);
      continue;
    }
    int buffers = std::max(block.buffers, 1);
    if (call.grid.empty() || HasConstantMap(block, call.grid.size())) buffers = 1;
    add(block.origin, WindowDims(block), block.array, buffers, smem);
  }
  for (size_t i = 0; i < call.scratch.size(); ++i) {
    const TensorType& type = call.scratch[i];
    const bool smem = type.memory_space == "smem";
    if (!InVmem(type.memory_space) && !smem) continue;
    add("scratch " + std::to_string(i), type.dims, type, 1, smem);
  }
  const auto internal = static_cast<int64_t>(chip.internal_scratch_bytes.value);
  use.parts.push_back({"internal scratch", internal, 0, 1});
  use.total += internal;
  use.physical = static_cast<int64_t>(chip.vmem_bytes.value);
  use.limit = call.vmem_limit_bytes.value_or(static_cast<int64_t>(chip.vmem_default_limit_bytes.value));
  use.limit_above_physical = use.limit > use.physical;
  use.fits = use.total <= use.limit && use.total <= use.physical;
  return use;
}

std::optional<std::string> BlockIllegal(const BlockMapping& block, const Chip& chip) {
  if (!block.has_index_map || !InVmem(block.memory_space)) return std::nullopt;
  const size_t rank = block.block.size();
  if (rank == 0) return std::nullopt;
  if (rank != block.array.dims.size()) {
    return "the block has " + std::to_string(rank) + " dimensions, the operand " +
           std::to_string(block.array.dims.size());
  }
  for (size_t i = 0; i < rank; ++i) {
    if (block.block[i].size <= 0) return "block dimension " + std::to_string(i) + " is not positive";
  }
  const auto bits = DtypeBits(block.array.dtype);
  if (rank == 1) {
    const BlockDim& dim = block.block[0];
    if (dim.kind != BlockDim::Kind::kBlocked) return std::nullopt;
    const int64_t least = int64_t{chip.lanes} * 32 / bits.value_or(32);
    if (dim.size == block.array.dims[0] || dim.size % 1024 == 0) return std::nullopt;
    if (std::has_single_bit(static_cast<uint64_t>(dim.size)) && dim.size >= least) return std::nullopt;
    return "a one-dimensional block of " + std::to_string(dim.size) +
           " is neither the whole dimension, nor a multiple of 1024, nor a power of two of at least " +
           std::to_string(least);
  }
  for (const size_t back : {size_t{1}, size_t{2}}) {
    const size_t i = rank - back;
    const BlockDim& dim = block.block[i];
    if (dim.kind != BlockDim::Kind::kBlocked && dim.kind != BlockDim::Kind::kSqueezed) continue;
    const int multiple = back == 1 ? chip.lanes : chip.sublanes;
    if (dim.size % multiple == 0 || dim.size == block.array.dims[i]) continue;
    return "block dimension " + std::to_string(i) + " is " + std::to_string(dim.size) + ": not a multiple of " +
           std::to_string(multiple) + " and not the whole dimension of " + std::to_string(block.array.dims[i]);
  }
  return std::nullopt;
}

Status CheckBlocks(const PallasCall& call, const Chip& chip) {
  for (const BlockMapping& block : call.blocks) {
    if (const auto reason = BlockIllegal(block, chip)) {
      return {ErrorKind::kUserCode, *reason, call.name + ", " + block.origin,
              "Choose a multiple, or the whole dimension"};
    }
  }
  return {};
}

Status CheckVmem(const VmemUse& use, const Chip& chip) {
  if (use.fits) return {};
  const int64_t allowed = std::min(use.limit, use.physical);
  std::vector<VmemPart> parts = use.parts;
  std::sort(parts.begin(), parts.end(), [](const VmemPart& a, const VmemPart& b) { return a.bytes > b.bytes; });
  std::string text = "the kernel needs " + Mebibytes(use.total) + " of VMEM, " + chip.name + " allows " +
                     Mebibytes(allowed) + (use.limit <= use.physical ? " (limit)" : " (all there is)") + "; largest:";
  for (size_t i = 0; i < parts.size() && i < 3; ++i) {
    text += (i == 0 ? " " : ", ") + parts[i].what + " " + Mebibytes(parts[i].bytes);
  }
  return {ErrorKind::kUserCode, text, "VMEM",
          use.total <= use.physical ? "Use smaller blocks, or raise vmem_limit_bytes" : "Use smaller blocks"};
}

bool BlockWastesTiles(const BlockMapping& block, const Chip& chip) {
  const auto bits = DtypeBits(block.array.dtype);
  const std::vector<int64_t> dims = WindowDims(block);
  if (!bits || *bits >= 32 || dims.size() < 2 || !block.has_index_map || !InVmem(block.memory_space)) return false;
  return dims[dims.size() - 2] % (int64_t{chip.sublanes} * 32 / *bits) != 0;
}

}  // namespace kernelwright::cost
