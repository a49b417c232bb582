// See catalogue_text.h.
#include "daemon/diagnose/catalogue_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "daemon/base/text.h"

namespace kernelwright::diagnose {
namespace {

constexpr std::array<std::string_view, 4> kFilters = {"", "size", "block", "code"};

std::optional<int64_t> ParseInt(std::string_view text) {
  text = Trim(text);
  if (text.empty() || text.size() > 18) return std::nullopt;
  int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

// Parts of a bracketed list between commas that no inner bracket holds.
std::vector<std::string_view> TopLevelParts(std::string_view inner) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= inner.size(); ++i) {
    if (i == inner.size() || (inner[i] == ',' && depth == 0)) {
      if (const std::string_view part = Trim(inner.substr(start, i - start)); !part.empty()) parts.push_back(part);
      start = i + 1;
      continue;
    }
    if (inner[i] == '(' || inner[i] == '[') ++depth;
    if (inner[i] == ')' || inner[i] == ']') --depth;
  }
  return parts;
}

int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

}  // namespace

std::optional<double> ParseBytes(std::string_view text) {
  const std::string copy(Trim(text));
  if (copy.empty() || copy[0] < '0' || copy[0] > '9') return std::nullopt;
  char* end = nullptr;
  double value = std::strtod(copy.c_str(), &end);
  const std::string_view unit(end);
  if (unit.empty() || unit == "B") return value;
  const size_t power = std::string_view("KMGT").find(unit[0]);
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = unit.substr(1);
  if (!rest.empty() && rest != "B" && rest != "iB") return std::nullopt;
  for (size_t i = 0; i <= power; ++i) value *= 1024;
  return value;
}

std::string KibText(double bytes) {
  const double kib = bytes / 1024;
  std::array<char, 64> buffer{};
  if (kib < 10 && std::abs(kib - std::round(kib)) > 0.05) {
    std::snprintf(buffer.data(), buffer.size(), "%.1f KiB", kib);
    return buffer.data();
  }
  std::snprintf(buffer.data(), buffer.size(), "%.0f", kib);
  std::string digits = buffer.data();
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits + " KiB";
}

std::optional<BlockSizes> ParseBlock(std::string_view text) {
  text = Trim(text);
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return std::nullopt;
  BlockSizes block;
  for (std::string_view part : TopLevelParts(text.substr(1, text.size() - 2))) {
    if (part == "None" || part == "Squeezed()" || part == "squeezed") {
      block.emplace_back(std::nullopt);
      continue;
    }
    constexpr std::string_view kBlocked = "Blocked(block_size=";
    if (part.substr(0, kBlocked.size()) == kBlocked)
      part = part.substr(kBlocked.size(), part.size() - kBlocked.size() - 1);
    const std::optional<int64_t> size = ParseInt(part);
    if (!size) return std::nullopt;
    block.emplace_back(*size);
  }
  return block;
}

std::string BlockText(const BlockSizes& block) {
  std::vector<std::string> sizes;
  sizes.reserve(block.size());
  for (const std::optional<int64_t>& size : block) sizes.push_back(size ? std::to_string(*size) : "None");
  std::string text = "(";
  text += Join(sizes, ", ");
  text += block.size() == 1 ? ",)" : ")";
  return text;
}

std::optional<BlockSizes> RoundBlock(const BlockSizes& block, const BlockSizes& array) {
  if (block.empty() || block.size() != array.size()) return std::nullopt;
  BlockSizes rounded = block;
  const size_t rank = block.size();
  for (size_t back = 1; back <= std::min<size_t>(2, rank); ++back) {
    const size_t i = rank - back;
    if (!block[i] || !array[i]) return std::nullopt;
    const int64_t tile = rank == 1 ? 1024 : back == 1 ? 128 : 8;
    const int64_t up = RoundUp(*block[i], tile);
    rounded[i] = up < *array[i] ? up : *array[i];
  }
  return rounded;
}

bool IsTextFilter(std::string_view filter) {
  return std::find(kFilters.begin(), kFilters.end(), filter) != kFilters.end();
}

std::string TextFilterNames() { return "size, block or code"; }

std::optional<std::string> ApplyTextFilter(std::string_view filter, const std::string& value) {
  if (filter == "size") {
    const std::optional<double> bytes = ParseBytes(value);
    return bytes ? std::optional<std::string>(KibText(*bytes)) : std::nullopt;
  }
  if (filter == "block") {
    const std::optional<BlockSizes> block = ParseBlock(value);
    return block ? std::optional<std::string>(BlockText(*block)) : std::nullopt;
  }
  if (filter == "code") return "`" + value + "`";
  return value;
}

}  // namespace kernelwright::diagnose
