// Sizes of element types by their NumPy / ml_dtypes names.
#pragma once

#include <optional>
#include <string_view>

namespace kernelwright::cost {

// Bits of one element ("bfloat16" -> 16, "int4" -> 4, "bool" -> 8); nothing for a type without a storage size (keys,
// …).
std::optional<int> DtypeBits(std::string_view dtype);

}  // namespace kernelwright::cost
