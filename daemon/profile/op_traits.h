// What a vector instruction does beside its unit, by its opcode.
#pragma once

#include <string_view>

#include "daemon/compiler/bundles.h"

namespace kernelwright::profile {

// Changes the type of a vector's elements, or how many of them share a word: vunpack, vpack, vcvt.
bool IsCast(std::string_view opcode);

// Moves data across lanes or sublanes without computing: transposes, rotations, permutations, broadcasts. Reductions
// over lanes and the operations that only fetch a result are not counted.
bool IsRelayout(std::string_view opcode);

bool IsProduct(std::string_view opcode);     // vmatmul
bool IsF32Product(std::string_view opcode);  // vmatmul with 32-bit float operands

}  // namespace kernelwright::profile
