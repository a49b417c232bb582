// From the compiler's notation to the user's: sizes in KiB, block shapes as they are written in a BlockSpec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelwright::diagnose {

// Bytes of "48.00M", "1.5K", "134217728" (units of 1024); nothing for another text.
std::optional<double> ParseBytes(std::string_view text);

// "49,152 KiB"; with one decimal below 10 KiB where it matters.
std::string KibText(double bytes);

// One dimension of a block: its size, or nothing for a squeezed one (None).
using BlockSizes = std::vector<std::optional<int64_t>>;

// "(Blocked(block_size=4), Squeezed(), 128)" → {4, none, 128}. Nothing when a dimension is of another kind.
std::optional<BlockSizes> ParseBlock(std::string_view text);

// "(8, None, 128)"; a single one as "(8,)".
std::string BlockText(const BlockSizes& block);

// The smallest legal block around `block` of an array: the last two dimensions up to multiples of (8, 128), or the
// whole dimension; one dimension up to a multiple of 1024 or the whole. Nothing when it cannot be said (rank 0, ranks
// differ, a squeezed dimension among the last two).
std::optional<BlockSizes> RoundBlock(const BlockSizes& block, const BlockSizes& array);

// Filters of message templates; the empty name leaves the value as it is.
bool IsTextFilter(std::string_view filter);
std::string TextFilterNames();
// Nothing when the value is not of the filter's kind.
std::optional<std::string> ApplyTextFilter(std::string_view filter, const std::string& value);

}  // namespace kernelwright::diagnose
