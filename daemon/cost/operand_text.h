// How operands of the scalar unit are written in a bundle dump: names, numbers, labels, lists. Views into the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelwright::cost {

inline constexpr uint32_t kMaxRegister = 256;  // of each of the two physical files

// Without spaces and line breaks at both ends.
std::string_view Trim(std::string_view s);

// Decimal or 0x number, negative ones as a pattern of 32 bits; nothing for other text.
std::optional<uint64_t> ParseNumber(std::string_view s);

// Text without its comments.
std::string StripComments(std::string_view text);

// Splits at commas outside of brackets.
std::vector<std::string_view> SplitOperands(std::string_view text);

struct Name {
  uint32_t reg = 0;  // physical, predicates behind the scalars
  uint64_t virtual_id = 0;
};

// "%s129_s4", "%p34_p0"; an optional "!" is the caller's business.
std::optional<Name> ParseName(std::string_view s);

// "/*size_in_granules=*/4096" -> "4096"; the labels are the same on every chip, the order is not. Empty when the label
// is not there. `label` is written without "/*" where it is the tail of one.
std::string_view Labelled(std::string_view text, std::string_view label);

}  // namespace kernelwright::cost
