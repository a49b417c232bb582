// Integer constants in source text: their value, and how to write another value in the same form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/kernels/tree.h"

namespace kernelwright::kernels {

// Value of an expression made of integer literals only (+ - * // % << ** and parentheses); nothing for anything else,
// or when it leaves 0 … 2^62.
std::optional<int64_t> EvaluateInteger(const Node& expression);
std::optional<int64_t> EvaluateInteger(std::string_view expression);

// Text for `value` that keeps the form of `old_text` where it can: one factor of a product changes (`4 * 128` becomes
// `8 * 128`, `48 << 20` becomes `64 << 20`), else a plain decimal.
std::string FormatInteger(std::string_view old_text, int64_t value);

}  // namespace kernelwright::kernels
