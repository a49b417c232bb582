// Lines are matched by the longest common subsequence of their texts, file by file: unchanged lines keep their partner
// though numbers moved; a changed line shows on both sides.
#include "daemon/profile/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

namespace kernelwright::profile {
namespace {

constexpr size_t kMostLines = 4000;  // per file; longer ones are matched by number
constexpr double kFaster = 1.10;
constexpr double kTie = 1.02;

std::vector<std::string_view> LinesOf(const std::vector<SourceText>& sources, const std::string& path) {
  std::vector<std::string_view> lines;
  for (const SourceText& source : sources) {
    if (source.path != path) continue;
    std::string_view rest = source.text;
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      lines.push_back(rest.substr(0, end));
      rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    }
  }
  return lines;
}

// Line of `b` for each line of `a` (numbers from 1; index 0 is unused); 0 where there is none.
std::vector<int> MatchLines(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  std::vector<int> match(a.size() + 1, 0);
  if (a.size() > kMostLines || b.size() > kMostLines) {
    for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i)
      match[i] = a[i - 1] == b[i - 1] ? static_cast<int>(i) : 0;
    return match;
  }
  const size_t width = b.size() + 1;
  std::vector<uint16_t> longest((a.size() + 1) * width, 0);
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      longest[i * width + j] = a[i] == b[j] ? static_cast<uint16_t>(longest[(i + 1) * width + j + 1] + 1)
                                            : std::max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) {
      match[++i] = static_cast<int>(++j);
    } else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) {
      ++i;
    } else {
      ++j;
    }
  }
  return match;
}

class Comparer {
 public:
  Comparer(const ProfileReport& report, const ProfileReport& other) : report_(report), other_(other) {}

  Comparison Run() {
    Comparison out;
    out.file = other_.file;
    out.function = other_.function;
    out.chip = other_.chip;
    out.same_chip = report_.chip == other_.chip;
    if (report_.estimate() != nullptr) out.milliseconds = report_.estimate()->milliseconds;
    if (other_.estimate() != nullptr) out.other_milliseconds = other_.estimate()->milliseconds;
    if (out.milliseconds > 0 && out.other_milliseconds > 0) {
      out.ratio = out.other_milliseconds / out.milliseconds;
      out.verdict = Verdict(out.ratio);
    }
    // Counts of executed bundles and of schedules that were only read do not compare.
    if (report_.static_counts == other_.static_counts) CompareLines(&out);
    CompareKernels(&out);
    return out;
  }

 private:
  static std::string Verdict(double ratio) {
    const bool faster = ratio >= 1;
    const double gap = faster ? ratio : 1 / ratio;
    if (gap < kTie) return "tie";
    return std::string(gap < kFaster ? "probably " : "") + (faster ? "faster" : "slower");
  }

  double Ms(double cycles) const { return cycles / report_.cycles_per_ms; }
  double OtherMs(double cycles) const { return cycles / other_.cycles_per_ms; }

  // The other's file for one of this report's: the same path, but the files of the two functions correspond.
  std::string PartnerOf(const std::string& file) const {
    const bool same = std::any_of(other_.sources.begin(), other_.sources.end(),
                                  [&](const SourceText& source) { return source.path == file; });
    return !same && file == report_.file ? other_.file : file;
  }

  void CompareLines(Comparison* out) const {
    std::map<std::pair<std::string, int>, const LineProfile*> rest;
    for (const LineProfile& line : other_.lines) rest[{line.file, line.line}] = &line;
    std::map<std::string, std::vector<int>> matches;
    for (const LineProfile& line : report_.lines) {
      const std::string partner = line.line == 0 ? line.file : PartnerOf(line.file);
      int number = line.line;
      if (line.line > 0 && !partner.empty()) {
        auto match = matches.find(line.file);
        if (match == matches.end()) {
          match =
              matches
                  .emplace(line.file, MatchLines(LinesOf(report_.sources, line.file), LinesOf(other_.sources, partner)))
                  .first;
        }
        // A file whose text is not known (a library's) is the same on both sides.
        if (match->second.size() > 1) {
          number =
              static_cast<size_t>(line.line) < match->second.size() ? match->second[static_cast<size_t>(line.line)] : 0;
        }
      }
      LineDifference difference;
      difference.file = line.file;
      difference.line = line.line;
      difference.text = line.text;
      difference.cycles = line.cycles;
      difference.milliseconds = Ms(line.cycles);
      const auto found = rest.find({partner, number});
      if (found != rest.end() && (number > 0 || line.line == 0)) {
        difference.other_file = partner;
        difference.other_line = number;
        difference.other_cycles = found->second->cycles;
        difference.other_milliseconds = OtherMs(found->second->cycles);
        rest.erase(found);
      }
      out->lines.push_back(std::move(difference));
    }
    for (const auto& [key, line] : rest) {
      LineDifference difference;
      difference.other_file = line->file;
      difference.other_line = line->line;
      difference.text = line->text;
      difference.other_cycles = line->cycles;
      difference.other_milliseconds = OtherMs(line->cycles);
      out->lines.push_back(std::move(difference));
    }
    std::stable_sort(out->lines.begin(), out->lines.end(), [](const LineDifference& a, const LineDifference& b) {
      return std::abs(a.milliseconds - a.other_milliseconds) > std::abs(b.milliseconds - b.other_milliseconds);
    });
  }

  static void Take(const KernelProfile& kernel, double milliseconds, KernelDifference* out) {
    out->name = kernel.name;
    out->cycles = kernel.cycles;
    out->milliseconds = milliseconds;
    out->dma_bytes = kernel.dma_bytes;
    out->spills = kernel.spills;
    out->dma_wait_cycles = kernel.dma_wait_cycles;
  }
  static void TakeOther(const KernelProfile& kernel, double milliseconds, KernelDifference* out) {
    out->other_name = kernel.name;
    out->other_cycles = kernel.cycles;
    out->other_milliseconds = milliseconds;
    out->other_dma_bytes = kernel.dma_bytes;
    out->other_spills = kernel.spills;
    out->other_dma_wait_cycles = kernel.dma_wait_cycles;
  }

  void CompareKernels(Comparison* out) const {
    std::vector<bool> taken(other_.kernels.size(), false);
    const auto find = [&](const KernelProfile& kernel) {
      for (size_t i = 0; i < other_.kernels.size(); ++i) {
        if (!taken[i] && other_.kernels[i].name == kernel.name) return i;
      }
      // Another name, but the same place among kernels of its kind.
      for (size_t i = 0; i < other_.kernels.size(); ++i) {
        if (!taken[i] && kernel.is_pallas && other_.kernels[i].is_pallas) return i;
      }
      return other_.kernels.size();
    };
    for (const KernelProfile& kernel : report_.kernels) {
      KernelDifference difference;
      Take(kernel, Ms(kernel.cycles), &difference);
      if (const size_t i = find(kernel); i < other_.kernels.size()) {
        taken[i] = true;
        TakeOther(other_.kernels[i], OtherMs(other_.kernels[i].cycles), &difference);
      }
      out->kernels.push_back(std::move(difference));
    }
    for (size_t i = 0; i < other_.kernels.size(); ++i) {
      if (taken[i]) continue;
      KernelDifference difference;
      TakeOther(other_.kernels[i], OtherMs(other_.kernels[i].cycles), &difference);
      out->kernels.push_back(std::move(difference));
    }
  }

  const ProfileReport& report_;
  const ProfileReport& other_;
};

}  // namespace

Comparison Compare(const ProfileReport& report, const ProfileReport& other) { return Comparer(report, other).Run(); }

}  // namespace kernelwright::profile
