// See units.h.
#include "daemon/base/units.h"

#include <array>
#include <charconv>
#include <cmath>

#include "daemon/base/text.h"
#include "fmt/format.h"

namespace kernelwright {
namespace {

// Takes a decimal number off the front of `text`; negative when there is none. No sign, exponent or "inf".
double TakeNumber(std::string_view& text) {
  size_t end = 0;
  while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') || text[end] == '.')) ++end;
  double value = -1;
  const std::string digits(text.substr(0, end));
  const char* last = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), last, value, std::chars_format::fixed);
  if (result.ec != std::errc() || result.ptr != last) return -1;
  text.remove_prefix(end);
  return value;
}

std::string_view TakeLetters(std::string_view& text) {
  size_t end = 0;
  while (end < text.size() && ((text[end] >= 'a' && text[end] <= 'z') || (text[end] >= 'A' && text[end] <= 'Z'))) ++end;
  const std::string_view letters = text.substr(0, end);
  text.remove_prefix(end);
  return letters;
}

double MillisecondsPer(std::string_view unit) {
  if (unit == "ms") return 1;
  if (unit == "s" || unit == "sec" || unit.empty()) return 1000;
  if (unit == "m" || unit == "min") return 60e3;
  if (unit == "h") return 3600e3;
  if (unit == "d") return 86400e3;
  return -1;
}

// One decimal, without ".0".
std::string Short(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

}  // namespace

std::string FormatDuration(std::chrono::milliseconds duration) {
  const int64_t ms = duration.count();
  if (ms < 0) return "-" + FormatDuration(-duration);
  if (ms < 1000) return fmt::format("{} ms", ms);
  if (ms < 59950) return Short(static_cast<double>(ms) / 1000) + " s";
  const int64_t seconds = (ms + 500) / 1000;
  if (seconds < 3600) {
    return seconds % 60 == 0 ? fmt::format("{} min", seconds / 60)
                             : fmt::format("{} min {} s", seconds / 60, seconds % 60);
  }
  const int64_t minutes = (seconds + 30) / 60;
  return minutes % 60 == 0 ? fmt::format("{} h", minutes / 60) : fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

std::string FormatBytes(uint64_t bytes) {
  static constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  // 1023.95 would print as "1024".
  while (value >= (unit == 0 ? 1024 : 1023.95) && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return Short(value) + " " + std::string(kUnits[unit]);
}

Expected<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  const auto bad = [&] {
    return Fail(ErrorKind::kUsage, "`" + std::string(text) + "` is not a duration", {},
                "Write for example 90s, 10m or 1h30m.");
  };
  std::string_view rest = Trim(text);
  if (rest.empty()) return bad();
  double total = 0;
  double previous_unit = INFINITY;
  while (!rest.empty()) {
    const double value = TakeNumber(rest);
    const std::string_view letters = TakeLetters(rest);
    const double unit = MillisecondsPer(letters);
    // Units must fall (1h30m), and a number without a unit may only stand alone.
    if (value < 0 || unit < 0 || unit >= previous_unit ||
        (letters.empty() && (previous_unit != INFINITY || !rest.empty()))) {
      return bad();
    }
    total += value * unit;
    previous_unit = unit;
    rest = Trim(rest);
  }
  if (total > 3.2e13) return bad();  // a thousand years: beyond any use, and far from overflow
  return std::chrono::milliseconds(std::llround(total));
}

Expected<uint64_t> ParseBytes(std::string_view text) {
  const auto bad = [&] {
    return Fail(ErrorKind::kUsage, "`" + std::string(text) + "` is not a size", {}, "Write for example 512MiB or 2G.");
  };
  std::string_view rest = Trim(text);
  const double value = TakeNumber(rest);
  if (value < 0) return bad();
  rest = Trim(rest);
  std::string unit = ToLowerAscii(TakeLetters(rest));
  if (!rest.empty()) return bad();
  double factor = 1;
  if (!unit.empty() && unit != "b") {
    static constexpr std::string_view kPrefixes = "kmgt";
    const size_t prefix = kPrefixes.find(unit[0]);
    if (prefix == std::string_view::npos) return bad();
    const std::string_view tail = std::string_view(unit).substr(1);
    if (!tail.empty() && tail != "ib" && tail != "b" && tail != "i") return bad();
    factor = std::pow(tail == "b" ? 1000.0 : 1024.0, static_cast<double>(prefix + 1));
  }
  if (value * factor > 9e18) return bad();
  return static_cast<uint64_t>(std::llround(value * factor));
}

}  // namespace kernelwright
