// Units and labels both contain dashes, so the number between them is looked for from the right: the labels are known.
#include "daemon/compiler/dump_name.h"

#include <algorithm>
#include <array>

namespace kernelwright::compiler {
namespace {

constexpr std::array kLabels = {kScheduleAnalysis,
                                kFinalBundles,
                                kUtilization,
                                kAllocations,
                                std::string_view("final-top-level-llo"),
                                std::string_view("vmem_report")};

bool IsDigits(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::optional<DumpName> ParseDumpName(std::string_view name) {
  if (const size_t slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  name = name.substr(0, dot);
  const size_t first = name.find('-');
  if (first == std::string_view::npos || !IsDigits(name.substr(0, first))) return std::nullopt;
  name.remove_prefix(first + 1);
  if (name == "TLP-hlo") return DumpName{"TLP", std::string(kHlo)};
  for (const std::string_view label : kLabels) {
    if (!name.ends_with(label) || name.size() < label.size() + 4) continue;
    std::string_view head = name.substr(0, name.size() - label.size());
    if (!head.ends_with('-')) continue;
    head.remove_suffix(1);
    const size_t dash = head.rfind('-');
    if (dash == std::string_view::npos || dash == 0 || !IsDigits(head.substr(dash + 1))) continue;
    return DumpName{std::string(head.substr(0, dash)), std::string(label)};
  }
  return std::nullopt;
}

}  // namespace kernelwright::compiler
