// Runs the rules; see advice.h.
#include "daemon/profile/advice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace kernelwright::profile {

double KernelView::steps() const {
  const auto calls = static_cast<double>(std::max<int64_t>(kernel.calls, 1));
  return std::max(1.0, static_cast<double>(kernel.grid_steps)) * calls;
}

std::vector<const LineProfile*> KernelView::LinesWith(const std::function<double(const LineProfile&)>& amount,
                                                      size_t most) const {
  std::vector<const LineProfile*> lines;
  double total = 0;
  for (const LineProfile& line : kernel.lines) {
    total += amount(line);
    if (line.line > 0 && amount(line) > 0) lines.push_back(&line);
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const LineProfile* a, const LineProfile* b) { return amount(*a) > amount(*b); });
  // A line with next to nothing of it would only distract.
  std::erase_if(lines, [&](const LineProfile* line) { return amount(*line) < 0.05 * total; });
  if (lines.size() > most) lines.resize(most);
  return lines;
}

Advice KernelView::Make(const std::string& id, double share, const std::vector<const LineProfile*>& lines) const {
  Advice advice;
  advice.id = id;
  advice.kernel = kernel.name;
  advice.share = std::clamp(share, 0.0, 1.0) * kernel.share;
  for (const LineProfile* line : lines) {
    if (advice.file.empty()) advice.file = line->file;
    if (line->file == advice.file) advice.lines.push_back(line->line);
  }
  if (lines.empty() && call != nullptr) {
    for (const SourceSpan& span : call->spans) {
      if (span.line <= 0 || span.file.find("site-packages") != std::string::npos) continue;
      advice.file = span.file;
      advice.lines.push_back(span.line);
      break;
    }
  }
  if (advice.file.empty() && kernel.line > 0) {
    advice.file = kernel.file;
    advice.lines.push_back(kernel.line);
  }
  return advice;
}

std::vector<Advice> Advise(const AdviceContext& context) {
  static constexpr std::array<Rule, 9> kRules = {AdviseDmaWait,      AdviseSmallSteps, AdviseSpills,
                                                 AdviseMxuFill,      AdviseCasts,      AdviseRelayout,
                                                 AdviseParallelAxis, AdviseNarrowDma,  AdviseF32Passes};
  std::vector<Advice> advice;
  // Without a time there is no telling what matters.
  if (context.report.static_counts) return advice;
  for (size_t i = 0; i < context.report.kernels.size(); ++i) {
    const KernelProfile& kernel = context.report.kernels[i];
    if (kernel.is_runtime || kernel.share < 0.01) continue;
    const KernelView view{context.report, context.chip, kernel, i < context.calls.size() ? context.calls[i] : nullptr};
    for (const Rule rule : kRules) {
      for (Advice& each : rule(view)) {
        while (each.text.ends_with(' ')) each.text.pop_back();
        advice.push_back(std::move(each));
      }
    }
  }
  std::stable_sort(advice.begin(), advice.end(), [](const Advice& a, const Advice& b) { return a.share > b.share; });
  return advice;
}

std::string Amount(double value) {
  char text[64];
  const double magnitude = std::abs(value);
  const int digits = magnitude >= 100 || magnitude == std::floor(magnitude) ? 0 : magnitude >= 10 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, share < 0.0995 ? "%.1f %%" : "%.0f %%", share * 100);
  return text;
}

std::string LineList(const std::vector<int>& lines) {
  if (lines.empty()) return "";
  std::string text = lines.size() == 1 ? "line " : "lines ";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += i + 1 == lines.size() ? " and " : ", ";
    text += std::to_string(lines[i]);
  }
  return text;
}

}  // namespace kernelwright::profile
