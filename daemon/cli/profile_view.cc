// See profile_view.h.
#include "daemon/cli/profile_view.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "daemon/base/text.h"
#include "daemon/cli/json_read.h"
#include "daemon/cli/result_view.h"
#include "fmt/core.h"

namespace kernelwright::cli {
namespace {

using nlohmann::json;

constexpr size_t kMostLines = 14;  // source lines shown, those with most cycles, in the order of the file
constexpr size_t kMostDifferences = 8;
constexpr int kBar = 20;  // columns

std::string Percent(double share) { return fmt::format("{:.{}f} %", share * 100, share < 0.0995 ? 1 : 0); }

std::string Count(double value) {
  if (value >= 1e6) return fmt::format("{:.3g} M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.3g} k", value / 1e3);
  return fmt::format("{:.0f}", value);
}

std::string Mebibytes(double bytes) {
  if (bytes >= 1024.0 * 1024 * 1024) return fmt::format("{:.2f} GiB", bytes / (1024.0 * 1024 * 1024));
  if (bytes >= 1024.0 * 1024) return fmt::format("{:.1f} MiB", bytes / (1024.0 * 1024));
  return fmt::format("{:.1f} KiB", bytes / 1024);
}

// Eighths of a column, so that small shares still differ.
std::string Bar(double share, double most) {
  static const char* const kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = most > 0 ? static_cast<int>(std::lround(share / most * kBar * 8)) : 0;
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kParts[eighths % 8];
  return PadWidth(bar, kBar);
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string Versions(const json& evidence) {
  std::string text;
  const json& versions = Member(evidence, "versions");
  if (!versions.is_object()) return text;
  for (const auto& [name, version] : versions.items()) {
    if (version.is_string()) text += (text.empty() ? "" : ", ") + name + " " + version.get<std::string>();
  }
  return text;
}

std::string Headline(const json& chip, const Style& style) {
  std::string text = Paint(style, "1", Text(chip, "chip") + ":") + " ";
  const json& refusal = Member(chip, "refusal");
  const json& evidence = Member(chip, "evidence");
  if (const json& error = Member(chip, "error"); error.is_object()) {
    text += Paint(style, "31;1", "failed") + ": " + Text(error, "message") + "\n";
    if (const std::string where = Text(error, "where"); !where.empty()) text += "  " + where + "\n";
    if (const std::string remedy = Text(error, "remedy"); !remedy.empty()) text += "  " + remedy + "\n";
    return text;
  }
  if (refusal.is_object()) {
    text += Paint(style, "33;1", "no time") + ": " + Text(refusal, "reason") + "\n";
    if (const std::string instruction = Text(refusal, "instruction"); !instruction.empty()) {
      text += "  " + FitWidth(ReplaceAll(instruction, "\n", " "), 160) + "\n";
    }
    text += "  Below, each bundle of the schedule counts once: loop trips, waits and traffic are not known.\n";
  } else {
    text += Paint(style, "1", FormatMilliseconds(Number(chip, "estimate_ms"))) + " " + Text(evidence, "class");
    const json& interval = List(chip, "interval");
    if (interval.size() == 2) {
      text += fmt::format(" ({} … {}, {} confidence)", FormatMilliseconds(interval[0].get<double>()),
                          FormatMilliseconds(interval[1].get<double>()), Text(chip, "confidence"));
    }
    text += ", bound by " + Text(chip, "bound");
    if (const double fraction = Number(chip, "roofline_fraction"); fraction > 0) {
      text += ", " + Percent(fraction) + " of the roofline";
    }
    text += "\n";
    for (const json& warning : List(chip, "warnings")) {
      if (warning.is_string()) text += "  note: " + warning.get<std::string>() + "\n";
    }
  }
  return text + "  " + Text(evidence, "class") + " by " + Text(evidence, "method") + " of the compiler's schedule; " +
         Versions(evidence) + "\n";
}

// What is special about a line, after its text.
std::string Marks(const json& line) {
  std::vector<std::string> marks;
  if (const double n = Number(line, "spills"); n > 0) marks.push_back(Count(n) + " spills");
  if (const double n = Number(line, "casts"); n > 0) {
    marks.push_back(Count(n) + " casts" + (Flag(line, "casts_inserted") ? " by the compiler" : ""));
  }
  if (const double n = Number(line, "relayouts"); n > 0) {
    marks.push_back(Count(n) + " moves" + (Flag(line, "relayouts_inserted") ? " by the compiler" : ""));
  }
  if (const double n = Number(line, "dma_wait_cycles"); n > 0) marks.push_back(Count(n) + " cycles waiting");
  return Join(marks, ", ");
}

std::string LinesTable(const json& chip, const Style& style) {
  std::vector<const json*> lines;
  double most = 0;
  for (const json& line : List(chip, "lines")) {
    lines.push_back(&line);
    most = std::max(most, Number(line, "share"));
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const json* a, const json* b) { return Number(*a, "cycles") > Number(*b, "cycles"); });
  double hidden = 0;
  for (size_t i = kMostLines; i < lines.size(); ++i) hidden += Number(*lines[i], "share");
  const size_t left_out = lines.size() > kMostLines ? lines.size() - kMostLines : 0;
  if (left_out > 0) lines.resize(kMostLines);
  std::stable_sort(lines.begin(), lines.end(), [](const json* a, const json* b) {
    const std::string file_a = Text(*a, "file");
    const std::string file_b = Text(*b, "file");
    return file_a != file_b ? file_a < file_b : Number(*a, "line") < Number(*b, "line");
  });
  std::string text;
  std::string file = "\n";
  for (const json* line : lines) {
    const bool none = Number(*line, "line") == 0;
    if (!none && Text(*line, "file") != file) {
      file = Text(*line, "file");
      text += "  " + Paint(style, "1", FileName(file)) + "\n";
    }
    const double share = Number(*line, "share");
    const std::string where = none ? "" : fmt::format("{:.0f}", Number(*line, "line"));
    const std::string source =
        none ? "(no line: the pipeline's own work and waits)" : SanitizeUtf8(Text(*line, "source"));
    std::string row = fmt::format("  {:>7} ", Percent(share)) + Paint(style, "36", Bar(share, most)) +
                      fmt::format(" {:>5}  ", where) + FitWidth(source, 72);
    if (const std::string marks = Marks(*line); !marks.empty()) row += "  " + Paint(style, "33", "← " + marks);
    text += row + "\n";
  }
  if (left_out > 0) text += fmt::format("  {:>7} on {} more lines\n", Percent(hidden), left_out);
  return text;
}

std::string KernelTable(const json& chip, const Style& style) {
  const bool timed = Text(chip, "counts") == "executed";
  std::string text = "\n  " + Paint(style, "1", "kernels") + "\n";
  for (const json& kernel : List(chip, "kernels")) {
    const double share = Number(kernel, "share");
    if (timed && share < 0.005) continue;
    text += "  " + PadWidth(Text(kernel, "name"), 16) + " " + fmt::format("{:>7}", Percent(share));
    if (!timed) {
      text += "  " + Count(Number(kernel, "bundles")) + " bundles\n";
      continue;
    }
    text += "  " + FormatMilliseconds(Number(kernel, "milliseconds")) + ", bound by " + Text(kernel, "bound");
    if (const double steps = Number(kernel, "grid_steps"); steps > 0) text += ", " + Count(steps) + " steps";
    const double cycles = Number(kernel, "cycles");
    if (cycles > 0) text += ", waits " + Percent(Number(kernel, "dma_wait_cycles") / cycles);
    text += ", " + Mebibytes(Number(kernel, "dma_bytes")) + " moved";
    if (const double headroom = Number(kernel, "headroom"); headroom > 0) {
      text += fmt::format(", {:.2f}x its floor", headroom);
    }
    text += "\n";
    if (const json& step = Member(kernel, "step"); step.is_object()) {
      text += fmt::format("    a step: {} cycles = {} busy + {} waiting; {} moved ({} cycles)",
                          Count(Number(step, "cycles")), Count(Number(step, "busy_cycles")),
                          Count(Number(step, "wait_cycles")), Mebibytes(Number(step, "dma_bytes")),
                          Count(Number(step, "dma_cycles")));
      if (const double mxu = Number(step, "mxu_cycles"); mxu > 0) text += ", products " + Count(mxu) + " cycles";
      text += "\n";
    }
    const json& vmem = Member(kernel, "vmem");
    if (Number(vmem, "total") > 0) {
      text += "    VMEM " + Mebibytes(Number(vmem, "total")) + " of " + Mebibytes(Number(vmem, "limit")) + ":";
      for (const json& region : List(vmem, "regions")) {
        text += " " + Text(region, "what") + " " + Mebibytes(Number(region, "bytes"));
        if (const double buffers = Number(region, "buffers"); buffers > 1) text += fmt::format(" ({:.0f}x)", buffers);
        text += ",";
      }
      text.back() = '\n';
    }
  }
  return text;
}

std::string Against(const json& chip, const Style& style) {
  const json& against = Member(chip, "against");
  if (!against.is_object()) return "";
  if (const json& error = Member(against, "error"); error.is_object()) {
    return "\n  no comparison: " + Text(error, "message") + "\n";
  }
  std::string text = "\n  " + Paint(style, "1",
                                    "against " + Text(against, "function") + " in " + FileName(Text(against, "file")) +
                                        " on " + Text(against, "chip"));
  if (const double ratio = Number(against, "ratio"); ratio > 0) {
    text += fmt::format(": {} against {}, {:.2f}x, {}", FormatMilliseconds(Number(against, "estimate_ms")),
                        FormatMilliseconds(Number(against, "against_estimate_ms")), ratio, Text(against, "verdict")) +
            " (estimated; values were not compared)";
  } else {
    text += ": at least one has no time";
  }
  text += "\n";
  for (const json& kernel : List(against, "kernels")) {
    const double now = Number(kernel, "milliseconds");
    const double then = Number(kernel, "against_milliseconds");
    // The parts around the kernels take next to nothing.
    if (std::max(now, then) <
        0.005 * std::max(Number(against, "estimate_ms"), Number(against, "against_estimate_ms"))) {
      continue;
    }
    const std::string name = Text(kernel, "name");
    text += "  " + PadWidth(name.empty() ? Text(kernel, "against_name") : name, 16) + " " +
            fmt::format("{:>8} against {:>8}\n", FormatMilliseconds(now), FormatMilliseconds(then));
  }
  size_t rows = 0;
  for (const json& line : List(against, "lines")) {
    const double now = Number(line, "milliseconds");
    const double then = Number(line, "against_milliseconds");
    if (++rows > kMostDifferences || now == then) break;
    const double number = Number(line, "line");
    const double other = Number(line, "against_line");
    const auto shown = [](double n) { return n > 0 ? fmt::format("{:.0f}", n) : std::string("–"); };
    text += fmt::format("  {:>8} against {:>8}  line {:>4} {:>4}  ", FormatMilliseconds(now), FormatMilliseconds(then),
                        shown(number), shown(other)) +
            (number == 0 && other == 0 ? "(no line)" : FitWidth(SanitizeUtf8(Text(line, "source")), 64)) + "\n";
  }
  return text;
}

// Broken at blanks.
std::string Wrap(const std::string& text, size_t width, const std::string& indent) {
  std::string out = indent;
  size_t column = 0;
  for (const std::string& word : Split(text, ' ')) {
    const size_t length = DisplayWidth(word);
    if (column > 0 && column + 1 + length > width) {
      out += "\n" + indent;
      column = 0;
    }
    out += (column > 0 ? " " : "") + word;
    column += (column > 0 ? 1 : 0) + length;
  }
  return out + "\n";
}

std::string AdviceList(const json& chip, const Style& style) {
  const json& list = List(chip, "advice");
  if (list.empty()) return "";
  std::string text = "\n  " + Paint(style, "1", "advice") + "\n";
  for (const json& advice : list) {
    std::string where;
    for (const json& line : List(advice, "lines")) {
      where += where.empty() ? FileName(Text(advice, "file")) + ":" : ",";
      where += fmt::format("{:.0f}", line.get<double>());
    }
    text += "  " + Paint(style, "33;1", Text(advice, "title")) + " (" + Text(advice, "kernel") +
            (where.empty() ? "" : ", " + where) + "; about " + Percent(Number(advice, "share")) + " of the time)\n" +
            Wrap(Text(advice, "text"), 100, "    ");
  }
  return text;
}

}  // namespace

std::string RenderProfile(const json& result, const Style& style) {
  std::string text = Paint(style, "1", "profile " + Text(result, "function")) + " in " + Text(result, "file") + "  (" +
                     Text(result, "inputs") + ")\n";
  for (const json& chip : List(result, "results")) {
    text += "\n" + Headline(chip, style);
    if (Member(chip, "error").is_object()) continue;
    text += "\n" + LinesTable(chip, style) + KernelTable(chip, style) + Against(chip, style) + AdviceList(chip, style);
  }
  return text;
}

}  // namespace kernelwright::cli
