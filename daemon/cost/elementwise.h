// Integer instructions that work on one element at a time, with the wrapping and the corner cases of HLO.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "daemon/cost/int_array.h"

namespace kernelwright::cost {

// `opcode` as in HLO text; `direction` of a compare, else empty. Operands have the result's shape. Nothing for an
// instruction that is not known here.
std::optional<IntArray> Elementwise(const ArrayType& type, std::string_view opcode, std::string_view direction,
                                    const std::vector<IntArray>& operands);

}  // namespace kernelwright::cost
