// The headings are spelled as the compiler spells them ("CAPACTIY").
#include "daemon/compiler/utilization.h"

#include <algorithm>

namespace kernelwright::compiler {
namespace {

Status Error(std::string what, int line) {
  return {ErrorKind::kEnvironment, std::move(what), "per-bundle utilization line " + std::to_string(line),
          "Compile again; if it stays, this libtpu version writes another format"};
}

// Small numbers separated by blanks; false when anything else stands in the line.
bool ParseRow(std::string_view line, std::vector<uint8_t>* out) {
  size_t i = 0;
  while (i < line.size()) {
    if (line[i] == ' ' || line[i] == '\r') {
      ++i;
      continue;
    }
    int value = 0;
    const size_t start = i;
    for (; i < line.size() && line[i] >= '0' && line[i] <= '9' && value < 256; ++i)
      value = value * 10 + (line[i] - '0');
    if (i == start || value > 255) return false;
    out->push_back(static_cast<uint8_t>(value));
  }
  return true;
}

}  // namespace

int Utilization::Column(std::string_view unit) const {
  const auto it = std::find(units.begin(), units.end(), unit);
  return it == units.end() ? -1 : static_cast<int>(it - units.begin());
}

Expected<Utilization> ParseUtilization(std::string_view text) {
  Utilization out;
  enum class Part { kStart, kUnits, kCapacity, kHeading, kRows } part = Part::kStart;
  int number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    ++number;
    if (line.find_first_not_of(" \r") == std::string_view::npos) continue;
    switch (part) {
      case Part::kStart:
        if (!line.starts_with("== CAPAC")) return Fail(Error("expected the capacity heading", number));
        part = Part::kUnits;
        break;
      case Part::kUnits:
        while (!line.empty()) {
          const size_t comma = line.find(',');
          std::string_view unit = line.substr(0, comma);
          line = comma == std::string_view::npos ? std::string_view{} : line.substr(comma + 1);
          while (unit.starts_with(' ')) unit.remove_prefix(1);
          while (unit.ends_with(' ') || unit.ends_with('\r')) unit.remove_suffix(1);
          if (unit.empty()) return Fail(Error("a unit has no name", number));
          out.units.emplace_back(unit);
        }
        part = Part::kCapacity;
        break;
      case Part::kCapacity:
        if (!ParseRow(line, &out.capacity) || out.capacity.size() != out.units.size()) {
          return Fail(Error("expected one capacity per unit", number));
        }
        part = Part::kHeading;
        break;
      case Part::kHeading:
        if (!line.starts_with("== UTIL")) return Fail(Error("expected the utilization heading", number));
        part = Part::kRows;
        break;
      case Part::kRows: {
        const size_t before = out.busy.size();
        if (!ParseRow(line, &out.busy) || out.busy.size() - before != out.units.size()) {
          return Fail(Error("expected one number per unit", number));
        }
        break;
      }
    }
  }
  if (part != Part::kRows) return Fail(Error("the text ends before the utilization table", number));
  return out;
}

}  // namespace kernelwright::compiler
