// See operand_text.h.
#include "daemon/cost/operand_text.h"

#include <charconv>

namespace kernelwright::cost {

std::string_view Trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\n')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\n')) s.remove_suffix(1);
  return s;
}

std::optional<uint64_t> ParseNumber(std::string_view s) {
  bool negative = false;
  if (s.starts_with('-')) {
    negative = true;
    s.remove_prefix(1);
  }
  int base = 10;
  if (s.starts_with("0x")) {
    base = 16;
    s.remove_prefix(2);
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value, base);
  if (error != std::errc{} || end != s.data() + s.size()) return std::nullopt;
  return (negative ? 0 - value : value) & 0xffffffffULL;
}

std::string StripComments(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  int depth = 0;  // the comment of a copy quotes operations with comments of their own
  for (size_t i = 0; i < text.size(); ++i) {
    const bool opens = text[i] == '/' && i + 1 < text.size() && text[i + 1] == '*';
    const bool closes = depth > 0 && text[i] == '*' && i + 1 < text.size() && text[i + 1] == '/';
    if (opens || closes) {
      depth += opens ? 1 : -1;
      ++i;
    } else if (depth == 0) {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::string_view> SplitOperands(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == ',' && depth == 0) {
      out.push_back(Trim(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  if (const auto rest = Trim(text.substr(start)); !rest.empty()) out.push_back(rest);
  return out;
}

std::optional<Name> ParseName(std::string_view s) {
  if (s.size() < 5 || s[0] != '%' || (s[1] != 's' && s[1] != 'p')) return std::nullopt;
  const size_t underscore = s.find('_');
  if (underscore == std::string_view::npos || underscore + 2 >= s.size() || s[underscore + 1] != s[1]) {
    return std::nullopt;
  }
  const auto virtual_id = ParseNumber(s.substr(2, underscore - 2));
  const auto physical = ParseNumber(s.substr(underscore + 2));
  if (!virtual_id || !physical || *physical >= kMaxRegister) return std::nullopt;
  return Name{static_cast<uint32_t>(*physical) + (s[1] == 'p' ? kMaxRegister : 0),
              *virtual_id * 2 + (s[1] == 'p' ? 1 : 0)};
}

std::string_view Labelled(std::string_view text, std::string_view label) {
  const size_t at = text.find(label);
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + label.size());
  if (!rest.starts_with("=*/")) return {};
  rest.remove_prefix(3);
  int depth = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '[') ++depth;
    if (rest[i] == ']') --depth;
    if ((rest[i] == ',' && depth == 0) || (rest[i] == '/' && i + 1 < rest.size() && rest[i + 1] == '*')) {
      return Trim(rest.substr(0, i));
    }
  }
  return Trim(rest);
}

}  // namespace kernelwright::cost
