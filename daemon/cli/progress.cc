// Events to lines; see progress.h.
#include "daemon/cli/progress.h"

#include <algorithm>
#include <cmath>

#include "daemon/base/text.h"
#include "daemon/base/units.h"
#include "daemon/cli/json_read.h"
#include "daemon/cli/result_view.h"
#include "fmt/core.h"

namespace kernelwright::cli {
namespace {

using nlohmann::json;

// More changing lines than this say less, not more.
constexpr size_t kMaxActiveLines = 8;

std::string Line(const json& object, const char* key) {
  std::string text = SanitizeUtf8(Text(object, key));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

bool IsDone(const std::string& status) { return status == "passed" || status == "failed" || status == "skipped"; }

std::string Eta(double milliseconds) {
  if (milliseconds < 0) return "";
  return ", about " + FormatDuration(std::chrono::milliseconds(std::llround(milliseconds / 1000) * 1000)) + " left";
}

}  // namespace

std::string Progress::Apply(const agents::RunEvent& event) {
  last_sequence_ = std::max(last_sequence_, event.sequence);
  const json payload = json::parse(event.payload_json, nullptr, /*allow_exceptions=*/false);
  if (!payload.is_object()) return "";
  const std::string chip = Text(payload, "chip");
  const std::string prefix = several_chips_ && !chip.empty() ? chip + ": " : "";
  std::string fixed;
  if (event.kind == "run_started") {
    const json& chips = List(payload, "chips");
    several_chips_ = chips.size() > 1;
    std::string names;
    for (const json& name : chips) {
      if (name.is_string()) names += (names.empty() ? "" : ", ") + name.get<std::string>();
    }
    fixed =
        Paint(style_, "1", Line(payload, "kind") + " " + Line(payload, "function")) + " in " + Line(payload, "file");
    if (!names.empty()) fixed += " for " + names;
    fixed += "  (run " + event.run + ")\n";
  } else if (event.kind == "plan_made") {
    for (const json& step : List(payload, "steps")) {
      fixed += prefix + "plan " + Line(step, "id") + ": " + Line(step, "title");
      if (const double line = Number(step, "line"); line > 0) {
        fixed += fmt::format(" (lines {:.0f}-{:.0f})", line, std::max(line, Number(step, "end_line")));
      }
      if (const std::string gain = Line(step, "expected_gain"); !gain.empty()) fixed += ", expected " + gain;
      fixed += "\n";
    }
  } else if (event.kind == "baseline_ready") {
    fixed = prefix + "original: " + DescribeCost(Member(payload, "cost")) + "\n";
    if (const std::string note = Line(payload, "note"); !note.empty()) fixed += prefix + "  " + note + "\n";
  } else if (event.kind == "candidate_changed") {
    Candidate(payload, &fixed);
  } else if (event.kind == "best_changed") {
    best_ = fmt::format("{} {:.2f}x", Line(payload, "candidate"), Number(payload, "speedup"));
    fixed = prefix +
            Paint(style_, "32",
                  fmt::format("best so far: {}, {:.2f}x (estimated)", Line(payload, "candidate"),
                              Number(payload, "speedup"))) +
            "\n";
  } else if (event.kind == "progress") {
    const std::string stage = Line(payload, "stage");
    const bool new_stage = stage != stage_ || chip != chip_;
    stage_ = stage;
    chip_ = chip;
    done_ = Number(payload, "finished");
    total_ = Number(payload, "total");
    compiles_ = Number(payload, "compiles");
    eta_ms_ = Member(payload, "eta_milliseconds").is_null() ? -1 : Number(payload, "eta_milliseconds");
    if (!style_.live && new_stage && stage != "done") fixed = prefix + stage + "\n";
  } else if (event.kind == "log_line") {
    const std::string level = Line(payload, "level");
    const std::string text = Line(payload, "text");
    fixed = level == "error"     ? Paint(style_, "31", "error: ") + text + "\n"
            : level == "warning" ? Paint(style_, "33", "warning: ") + text + "\n"
                                 : text + "\n";
  } else if (event.kind == "run_resumed") {
    active_.clear();
    finished_ = false;
    fixed = fmt::format("resumed: {:.0f} evaluations are kept\n", Number(payload, "kept_evaluations"));
  } else if (event.kind == "run_finished") {
    finished_ = true;
    active_.clear();
    return Redraw("");
  } else {
    return "";
  }
  return Redraw(fixed);
}

void Progress::Candidate(const json& payload, std::string* fixed) {
  const json& candidate = Member(payload, "candidate");
  Row row{Text(payload, "chip"), Line(candidate, "id"), Line(candidate, "status"), Line(candidate, "what")};
  const auto same = std::find_if(active_.begin(), active_.end(),
                                 [&](const Row& other) { return other.id == row.id && other.chip == row.chip; });
  if (!IsDone(row.status)) {
    if (row.status == "pending") return;
    if (same == active_.end()) {
      active_.push_back(row);
    } else {
      *same = row;
    }
    return;
  }
  if (same != active_.end()) active_.erase(same);
  std::string why = Line(candidate, "why");
  // A candidate passes its checks and then becomes the best: one line for both.
  std::string& said = said_[row.chip + " " + row.id];
  if (said == row.status + why) return;
  said = row.status + why;
  if (const std::string gate = Line(candidate, "gate"); !gate.empty()) why = why.empty() ? gate : gate + ": " + why;
  std::string line = (several_chips_ ? PadWidth(row.chip, 7) : "") + PadWidth(row.id, 5) + PadWidth(row.status, 9) +
                     PadWidth(FormatMilliseconds(Number(candidate, "estimate_ms")), 10) + " " + row.what;
  if (!why.empty()) line += "  " + why;
  if (Flag(candidate, "compile_cached")) line += "  (cached)";
  if (!style_.live && total_ > 0) line += fmt::format("  [{:.0f}/{:.0f}{}]", done_, total_, Eta(eta_ms_));
  if (style_.live) line = FitWidth(line, static_cast<size_t>(style_.columns) - 1);
  *fixed = (row.status == "failed" ? Paint(style_, "31", line) : line) + "\n";
}

std::string Progress::ActiveLine(const Row& row) const {
  return (several_chips_ ? PadWidth(row.chip, 7) : "") + PadWidth(row.id, 5) + PadWidth(row.status + "…", 20) +
         row.what;
}

std::string Progress::StatusLine() const {
  std::string text = stage_.empty() ? "starting" : stage_;
  if (several_chips_ && !chip_.empty()) text = chip_ + " " + text;
  if (total_ > 0) text += fmt::format("  {:.0f} of {:.0f} candidates", done_, total_);
  if (compiles_ > 0) text += fmt::format(", {:.0f} compiles", compiles_);
  if (!best_.empty()) text += ", best " + best_ + " (estimated)";
  return text + Eta(eta_ms_) + "   Ctrl-C keeps what was found";
}

std::string Progress::Redraw(const std::string& fixed) {
  if (!style_.live) return fixed;
  std::string text;
  // Up over what was drawn last, then clear from there to the end of the screen.
  if (drawn_ > 0) text += fmt::format("\x1b[{}A\r\x1b[J", drawn_);
  text += fixed;
  drawn_ = 0;
  if (finished_) return text;
  const size_t width = static_cast<size_t>(style_.columns) - 1;
  const size_t shown = std::min(active_.size(), kMaxActiveLines);
  for (size_t i = 0; i < shown; ++i) text += Paint(style_, "36", FitWidth(ActiveLine(active_[i]), width)) + "\n";
  text += Paint(style_, "2", FitWidth(StatusLine(), width)) + "\n";
  drawn_ = shown + 1;
  return text;
}

std::string Progress::Say(const std::string& line) {
  if (finished_) return line + "\n";
  return Redraw(line + "\n");
}

std::string Progress::Close() {
  const std::string text = drawn_ > 0 ? fmt::format("\x1b[{}A\r\x1b[J", drawn_) : "";
  drawn_ = 0;
  finished_ = true;
  return text;
}

}  // namespace kernelwright::cli
