// On-chip memory of a kernel before it is compiled: windows of the operands with their buffers, scratch, and what the
// compiler adds; the limit that applies; and which block shapes the compiler accepts at all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/cost/chips.h"
#include "daemon/kernels/program.h"

namespace kernelwright::cost {

struct VmemPart {
  std::string what;     // the operand's origin ("x_ref"), "scratch 0", "internal scratch"
  int64_t bytes = 0;    // all buffers
  int64_t padding = 0;  // part of it that tiles waste
  int buffers = 1;
};

struct VmemUse {
  std::vector<VmemPart> parts;
  int64_t total = 0;
  int64_t limit = 0;  // vmem_limit_bytes of the kernel, else the chip's default
  int64_t physical = 0;
  bool fits = false;                  // total <= limit and total <= physical
  bool limit_above_physical = false;  // accepted in silence by the compiler, fails only when used
  int64_t smem_total = 0;             // windows and scratch in SMEM, prefetched scalars not included
  std::vector<std::string>
      unknown;  // operands whose size is not known (dtype or dynamic shape): total is then a lower bound
};

VmemUse ComputeVmem(const PallasCall& call, const Chip& chip);

// Bytes of one buffer of a VMEM window with the given dimensions, padded to tiles.
int64_t PaddedWindowBytes(std::span<const int64_t> dims, int bits, const Chip& chip);

// Why the compiler refuses this block, in a sentence; nothing when it is legal. Rank >= 2: each of the last two
// dimensions is a multiple of 8 and 128 or the whole dimension; rank 1: the whole dimension, a multiple of 1024, or a
// power of two of at least 128 * 32 / bits. Only blocked windows in VMEM are checked.
std::optional<std::string> BlockIllegal(const BlockMapping& block, const Chip& chip);

// Error (kUserCode) for the first illegal block of a kernel: names the operand and what is allowed.
Status CheckBlocks(const PallasCall& call, const Chip& chip);

// Error (kUserCode) when the kernel does not fit: what is needed, what there is, and the largest parts.
Status CheckVmem(const VmemUse& use, const Chip& chip);

// True when a legal block wastes part of its packed tiles: fewer rows than a tile of the type holds (16 for 16-bit, 32
// for 8-bit types).
bool BlockWastesTiles(const BlockMapping& block, const Chip& chip);

}  // namespace kernelwright::cost
