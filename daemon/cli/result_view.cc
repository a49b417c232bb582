// Rendering of result objects; see result_view.h.
#include "daemon/cli/result_view.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "daemon/base/text.h"
#include "daemon/base/units.h"
#include "daemon/cli/json_read.h"
#include "fmt/core.h"

namespace kernelwright::cli {
namespace {

using nlohmann::json;

std::string OneLine(const std::string& text) {
  std::string line = SanitizeUtf8(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::string Versions(const json& evidence) {
  std::string text;
  const json& versions = Member(evidence, "versions");
  if (!versions.is_object()) return text;
  for (const auto& [name, version] : versions.items()) {
    if (!version.is_string()) continue;
    text += (text.empty() ? "" : ", ") + name + " " + version.get<std::string>();
  }
  return text;
}

// "estimated by replay for v5e, medium confidence; jax 0.10.2, libtpu 0.0.52"
std::string EvidenceText(const json& evidence) {
  std::string text = Text(evidence, "class");
  if (text.empty()) return "";
  if (const std::string method = Text(evidence, "method"); !method.empty()) text += " by " + method;
  if (const std::string chip = Text(evidence, "chip"); !chip.empty()) text += " for " + chip;
  if (const std::string confidence = Text(evidence, "confidence"); !confidence.empty()) {
    text += ", " + confidence + " confidence";
  }
  if (const std::string versions = Versions(evidence); !versions.empty()) text += "; " + versions;
  return text;
}

std::string Interval(const json& evidence) {
  const json& interval = List(evidence, "interval");
  if (interval.size() != 2 || !interval[0].is_number() || !interval[1].is_number()) return "";
  return FormatMilliseconds(interval[0].get<double>()) + " … " + FormatMilliseconds(interval[1].get<double>());
}

std::string Percent(double fraction) { return fmt::format("{:.0f} %", fraction * 100); }

// What the verdict may be called; the class of evidence is part of the word.
std::string VerdictText(const json& chip) {
  std::string verdict = Text(chip, "verdict");
  const std::string evidence = Text(Member(chip, "evidence"), "class");
  const std::string suffix = evidence.empty() ? "" : " (" + evidence + ")";
  const std::string ratio = fmt::format("{:.2f}x", Number(chip, "speedup"));
  if (verdict == "faster") return ratio + " faster" + suffix;
  if (verdict == "probably") return ratio + " probably faster" + suffix;
  return verdict;
}

std::string Headline(const json& chip, const Style& style) {
  const std::string status = Text(chip, "status");
  std::string text;
  const char* color = nullptr;
  if (status == "improved") {
    text = VerdictText(chip);
    color = "32;1";
  } else if (status == "no_improvement") {
    text = "no improvement: the original stays";
    color = "33;1";
  } else {
    text = status;
    color = "31;1";
  }
  std::string line = Paint(style, "1", Text(chip, "chip") + ":") + " " + Paint(style, color, text);
  if (const std::string message = OneLine(Text(chip, "message")); !message.empty()) line += "\n  " + message;
  return line + "\n";
}

// One row for the original or the best.
std::string CostRow(const std::string& name, const json& cost) {
  const json& refusal = Member(cost, "refusal");
  if (refusal.is_object()) return "  " + PadWidth(name, 12) + "no time: " + OneLine(Text(refusal, "reason")) + "\n";
  const double milliseconds = Number(cost, "estimate_ms");
  if (milliseconds <= 0) return "";
  std::string row = "  " + PadWidth(name, 12) + PadWidth(FormatMilliseconds(milliseconds), 10);
  if (const std::string interval = Interval(Member(cost, "evidence")); !interval.empty()) row += " (" + interval + ")";
  if (const std::string bound = Text(cost, "bound"); !bound.empty() && bound != "unknown") row += "  bound by " + bound;
  if (const double fraction = Number(cost, "roofline_fraction"); fraction > 0) {
    row += ", " + Percent(fraction) + " of the roofline";
  }
  if (const std::string what = OneLine(Text(cost, "what")); !what.empty()) row += "  " + what;
  return row + "\n";
}

// Gates of the original or the best that did not pass, with their reasons.
std::string OpenGates(const json& cost) {
  std::string text;
  for (const json& gate : List(cost, "gates")) {
    const std::string status = Text(gate, "status");
    if (status == "pass" || status == "passed" || status == "not_required") continue;
    const std::string reason = OneLine(Text(gate, "reason"));
    text +=
        "    " + Text(gate, "gate") + " " + ReplaceAll(status, "_", " ") + (reason.empty() ? "" : ": " + reason) + "\n";
  }
  return text;
}

std::string Failure(const json& chip) {
  const json& error = Member(chip, "error");
  if (!error.is_object()) return "";
  std::string text;
  if (const std::string file = Text(error, "file"); !file.empty()) {
    text += "  " + file;
    if (const double line = Number(error, "line"); line > 0) text += fmt::format(":{:.0f}", line);
    text += "\n";
  }
  std::string type = Text(error, "type");
  const std::string words = SanitizeUtf8(Text(error, "text"));
  if (!type.empty() || !words.empty()) {
    text += "  " + type + (type.empty() || words.empty() ? "" : ": ") + ReplaceAll(words, "\n", "\n  ") + "\n";
  }
  if (const std::string remedy = OneLine(Text(error, "remedy")); !remedy.empty()) text += "  " + remedy + "\n";
  return text;
}

std::string PlanTable(const json& chip) {
  std::string text;
  for (const json& step : List(chip, "plan")) {
    text += "  " + PadWidth(Text(step, "id"), 4) + OneLine(Text(step, "title"));
    if (const double line = Number(step, "line"); line > 0) {
      text += fmt::format(" (lines {:.0f}-{:.0f})", line, std::max(line, Number(step, "end_line")));
    }
    if (const std::string gain = OneLine(Text(step, "expected_gain")); !gain.empty()) text += ", expected " + gain;
    text += "\n";
    if (const std::string reason = OneLine(Text(step, "reason")); !reason.empty()) text += "      " + reason + "\n";
  }
  return text.empty() ? text : "  plan\n" + text;
}

// Rules that looked and do not apply, with the reason: of interest when nothing else helped.
std::string RefusalTable(const json& chip) {
  if (Member(chip, "best").is_object()) return "";
  constexpr size_t kShown = 12;
  const json& refusals = List(chip, "not_recognised");
  std::string text;
  for (size_t i = 0; i < std::min(refusals.size(), kShown); ++i) {
    text += "    " + Text(refusals[i], "rule") + ": " + OneLine(Text(refusals[i], "reason"));
    const double line = Number(refusals[i], "line");
    text += line > 0 ? fmt::format(" (line {:.0f})\n", line) : std::string("\n");
  }
  if (refusals.size() > kShown) text += fmt::format("    and {} more\n", refusals.size() - kShown);
  return text.empty() ? text : "  not applied\n" + text;
}

std::string CandidateTable(const json& chip, const Style& style) {
  const json& candidates = List(chip, "candidates");
  if (candidates.empty()) return "";
  const std::string best = Text(Member(chip, "best"), "id");
  size_t what_width = 4;
  for (const json& row : candidates) {
    what_width = std::clamp(DisplayWidth(OneLine(Text(row, "what"))), what_width, size_t{44});
  }
  // The table's numbers are of the class that the chip's evidence line states.
  std::string text = "  " + PadWidth("tried", 8) + PadWidth("status", 15) + PadWidth("estimated", 11) +
                     PadWidth("what", what_width + 2) + "why\n";
  for (const json& row : candidates) {
    const std::string id = Text(row, "id");
    const std::string status = Text(row, "status");
    const double estimate = Number(row, "estimate_ms");
    std::string why = OneLine(Text(row, "why"));
    if (const std::string gate = Text(row, "gate"); !gate.empty()) why.insert(0, why.empty() ? gate : gate + ": ");
    if (id == best && !best.empty()) why.insert(0, why.empty() ? "best" : "best; ");
    std::string line = "  " + PadWidth(id, 8) + PadWidth(status, 15) + PadWidth(FormatMilliseconds(estimate), 11) +
                       PadWidth(FitWidth(OneLine(Text(row, "what")), what_width), what_width + 2) + why;
    if (style.live) line = FitWidth(line, static_cast<size_t>(style.columns));
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += (id == best && !best.empty() ? Paint(style, "32", line) : line) + "\n";
  }
  return text;
}

std::string Counts(const json& chip) {
  const double compiles = Number(chip, "compiles");
  if (compiles <= 0) return "";
  std::string text = fmt::format("  {:.0f} compiles", compiles);
  if (const double cached = Number(chip, "compiles_cached"); cached > 0)
    text += fmt::format(", {:.0f} from the cache", cached);
  if (const double seconds = Number(chip, "seconds"); seconds > 0) {
    text += ", " + FormatDuration(std::chrono::milliseconds(std::llround(seconds * 1000)));
  }
  return text + "\n";
}

std::string RenderChip(const json& chip, const Style& style) {
  std::string text = Headline(chip, style);
  text += Failure(chip);
  const json& original = Member(chip, "original");
  const json& best = Member(chip, "best");
  text += CostRow("original", original);
  if (Text(chip, "status") != "improved") text += OpenGates(original);
  if (best.is_object()) text += CostRow("best " + Text(best, "id"), best) + OpenGates(best);
  if (const std::string evidence = EvidenceText(Member(chip, "evidence")); !evidence.empty()) {
    text += "  " + PadWidth("evidence", 12) + evidence + "\n";
  }
  for (const json& warning : List(best.is_object() ? best : original, "warnings")) {
    if (warning.is_string()) text += "  note: " + OneLine(warning.get<std::string>()) + "\n";
  }
  text += Counts(chip) + PlanTable(chip) + RefusalTable(chip) + CandidateTable(chip, style);
  return text;
}

std::string PaintDiff(const std::string& diff, const Style& style) {
  if (!style.color) return diff;
  std::string text;
  for (const std::string& line : Split(diff, '\n')) {
    if (line.empty()) {
      text += "\n";
      continue;
    }
    const char* color = nullptr;
    if (line.starts_with("---") || line.starts_with("+++")) {
      color = "1";
    } else if (line.starts_with("@@")) {
      color = "36";
    } else if (line.starts_with("+")) {
      color = "32";
    } else if (line.starts_with("-")) {
      color = "31";
    }
    text += (color == nullptr ? line : Paint(style, color, line)) + "\n";
  }
  // Split gives an empty part after the last line end.
  if (!text.empty() && !diff.empty() && diff.back() == '\n') text.pop_back();
  return text;
}

// Chips of the result, or the named one.
std::vector<const json*> Chips(const json& result, const std::string& chip) {
  std::vector<const json*> chips;
  for (const json& entry : List(result, "results")) {
    if (chip.empty() || Text(entry, "chip") == chip) chips.push_back(&entry);
  }
  return chips;
}

}  // namespace

std::string FormatMilliseconds(double milliseconds) {
  if (!(milliseconds > 0)) return "-";
  const double magnitude = milliseconds >= 0.1 ? milliseconds : milliseconds * 1000;
  const char* unit = milliseconds >= 0.1 ? "ms" : "µs";
  const int before = magnitude >= 1 ? static_cast<int>(std::floor(std::log10(magnitude))) + 1 : 0;
  return fmt::format("{:.{}f} {}", magnitude, std::max(0, 3 - before), unit);
}

std::string DescribeCost(const json& cost) {
  if (const json& refusal = Member(cost, "refusal"); refusal.is_object()) {
    return "no time: " + OneLine(Text(refusal, "reason"));
  }
  const json& estimate = Member(cost, "estimate");
  const double milliseconds = Number(estimate, "milliseconds");
  if (milliseconds <= 0) return "no time";
  const json& evidence = Member(estimate, "evidence");
  std::string text = FormatMilliseconds(milliseconds) + " (" +
                     FormatMilliseconds(Number(estimate, "low_milliseconds")) + " … " +
                     FormatMilliseconds(Number(estimate, "high_milliseconds"));
  if (const std::string confidence = Text(estimate, "confidence"); !confidence.empty()) {
    text += ", " + confidence + " confidence";
  }
  text += "), " + ToLowerAscii(Text(evidence, "evidence_class"));
  if (const std::string chip = Text(evidence, "chip"); !chip.empty()) text += " for " + chip;
  if (const std::string versions = Versions(evidence); !versions.empty()) text += " with " + versions;
  return text;
}

std::string RenderResult(const json& result, const Style& style, bool with_diff) {
  std::string text = Paint(style, "1", Text(result, "command") + " " + Text(result, "function")) + " in " +
                     Text(result, "file") + "  (run " + Text(result, "run") + ")\n";
  const json& chips = List(result, "results");
  if (chips.empty()) {
    text += Text(result, "status");
    if (const std::string message = OneLine(Text(result, "message")); !message.empty()) text += ": " + message;
    text += "\n" + Failure(result);
  }
  for (const json& chip : chips) text += "\n" + RenderChip(chip, style);
  if (with_diff) {
    if (const std::string diff = RenderDiff(result, "", style); !diff.empty()) text += "\n" + diff;
  }
  return text;
}

std::string RenderDiff(const json& result, const std::string& chip, const Style& style) {
  std::vector<std::string> diffs;
  std::vector<std::string> names;
  for (const json* entry : Chips(result, chip)) {
    const std::string diff = Text(Member(*entry, "best"), "diff");
    if (diff.empty()) continue;
    const auto same = std::find(diffs.begin(), diffs.end(), diff);
    if (same != diffs.end()) {
      names[static_cast<size_t>(same - diffs.begin())] += ", " + Text(*entry, "chip");
      continue;
    }
    diffs.push_back(diff);
    names.push_back(Text(*entry, "chip"));
  }
  std::string text;
  for (size_t i = 0; i < diffs.size(); ++i) {
    // Text before the headers is skipped by patch and git apply.
    if (diffs.size() > 1) text += Paint(style, "1", "for " + names[i]) + "\n";
    text += PaintDiff(diffs[i], style);
    if (text.back() != '\n') text += "\n";
  }
  return text;
}

Expected<json> ChooseEdits(const json& result, const std::string& chip) {
  if (!chip.empty() && Chips(result, chip).empty()) {
    return Fail(ErrorKind::kUsage, "the run has no result for " + chip, "--chip");
  }
  json chosen = json::array();
  std::string names;
  bool differ = false;
  for (const json* entry : Chips(result, chip)) {
    const json& edits = List(Member(*entry, "best"), "edits");
    if (edits.empty() || Text(*entry, "status") != "improved") continue;
    names += (names.empty() ? "" : ", ") + Text(*entry, "chip");
    differ |= !chosen.empty() && chosen != edits;
    chosen = edits;
  }
  if (differ) {
    return Fail(ErrorKind::kUsage, "nothing was applied: the best candidates of " + names + " differ", "--apply",
                "Name one: 'kernelwright runs show " + Text(result, "run") + " --apply --chip CHIP'.");
  }
  return chosen;
}

}  // namespace kernelwright::cli
