// See diagnostic.h.
#include "daemon/diagnose/diagnostic.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace kernelwright::diagnose {

std::string_view StageName(Stage stage) {
  constexpr std::array<std::string_view, 6> kNames = {"syntax", "api", "trace", "blocks", "compile", "semantics"};
  return kNames[static_cast<size_t>(stage)];
}

std::string_view SeverityName(Severity severity) {
  constexpr std::array<std::string_view, 4> kNames = {"error", "warning", "information", "hint"};
  return kNames[static_cast<size_t>(severity)];
}

std::vector<Diagnostic> MergeChips(std::vector<Diagnostic> diagnostics) {
  std::vector<Diagnostic> merged;
  for (Diagnostic& diagnostic : diagnostics) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const Diagnostic& other) {
      return other.id == diagnostic.id && other.place == diagnostic.place && other.message == diagnostic.message;
    });
    if (same == merged.end()) {
      merged.push_back(std::move(diagnostic));
      continue;
    }
    same->stage = std::min(same->stage, diagnostic.stage);
    for (std::string& chip : diagnostic.chips) {
      if (std::find(same->chips.begin(), same->chips.end(), chip) == same->chips.end()) {
        same->chips.push_back(std::move(chip));
      }
    }
  }
  return merged;
}

std::vector<Diagnostic> Settle(std::vector<Diagnostic> diagnostics) {
  diagnostics = MergeChips(std::move(diagnostics));
  const auto by_stage = [](const Diagnostic& a, const Diagnostic& b) { return a.stage < b.stage; };
  std::stable_sort(diagnostics.begin(), diagnostics.end(), by_stage);
  std::vector<Diagnostic> kept;
  for (Diagnostic& diagnostic : diagnostics) {
    const bool said = std::any_of(kept.begin(), kept.end(), [&](const Diagnostic& other) {
      return other.id == diagnostic.id && other.place == diagnostic.place && other.stage < diagnostic.stage;
    });
    if (!said) kept.push_back(std::move(diagnostic));
  }
  std::stable_sort(kept.begin(), kept.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.place.file, a.place.line, a.place.column) < std::tie(b.place.file, b.place.line, b.place.column);
  });
  return kept;
}

}  // namespace kernelwright::diagnose
