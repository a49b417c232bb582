// Totals first, then "<bundles> scheduled bundles (<percent>): %name = …" lines with kilobytes of configuration behind.
#include "daemon/compiler/schedule_analysis.h"

#include <charconv>
#include <optional>

namespace kernelwright::compiler {
namespace {

std::string_view Trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

std::optional<int64_t> Total(std::string_view line, std::string_view key) {
  if (!line.starts_with(key)) return std::nullopt;
  const std::string_view rest = Trim(line.substr(key.size()));
  int64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  return value;
}

}  // namespace

Expected<ScheduleAnalysis> ParseScheduleAnalysis(std::string_view text) {
  ScheduleAnalysis out;
  int totals = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = Trim(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (const auto total = Total(line, "total scheduled bundles:")) {
      out.total_bundles = *total;
      ++totals;
    } else if (const auto empty = Total(line, "empty scheduled bundles:")) {
      out.empty_bundles = *empty;
      ++totals;
    } else if (const auto non_empty = Total(line, "non empty scheduled bundles:")) {
      out.non_empty_bundles = *non_empty;
      ++totals;
    } else {
      const size_t at = line.find(" scheduled bundles (");
      const size_t colon = at == std::string_view::npos ? at : line.find("): ", at);
      if (colon == std::string_view::npos || line.starts_with("[opcode]")) continue;
      ScheduleShare share;
      const std::string_view number = line.substr(0, at);
      const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), share.bundles);
      if (error != std::errc{}) continue;
      std::string_view name = line.substr(colon + 3);
      if (name.starts_with("ROOT ")) name.remove_prefix(5);
      name = name.starts_with('<') ? name.substr(0, name.find('>') + 1) : name.substr(0, name.find(" ="));
      if (name.starts_with('%')) name.remove_prefix(1);
      share.instruction = std::string(name);
      out.instructions.push_back(std::move(share));
    }
  }
  if (totals != 3) {
    return Fail(ErrorKind::kEnvironment, "the three totals of the schedule analysis are not all there",
                "schedule analysis", "Compile again; if it stays, this libtpu version writes another format");
  }
  return out;
}

}  // namespace kernelwright::compiler
