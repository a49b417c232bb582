// See check_view.h.
#include "daemon/cli/check_view.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "daemon/base/text.h"
#include "daemon/base/units.h"
#include "daemon/cli/check_json.h"
#include "fmt/core.h"

namespace kernelwright::cli {
namespace {

using diagnose::Diagnostic;
using diagnose::Severity;

constexpr size_t kMaxMarked = 200;  // columns that a caret line may take

const char* Color(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "1;31";
    case Severity::kWarning:
      return "1;35";
    case Severity::kInformation:
    case Severity::kHint:
      break;
  }
  return "1;36";
}

std::string Shown(const std::string& file, const std::string& folder) {
  const std::filesystem::path relative = std::filesystem::path(file).lexically_relative(folder);
  if (!folder.empty() && !relative.empty() && *relative.begin() != "..") return relative.string();
  return file;
}

std::string PlaceText(const diagnose::Place& place, const std::string& folder) {
  std::string text = Shown(place.file, folder);
  if (place.cell > 0) text += ":cell " + std::to_string(place.cell);
  if (place.line > 0) text += ":" + std::to_string(place.line);
  if (place.line > 0 && place.column > 0) text += ":" + std::to_string(place.column);
  return text;
}

// The text's line and a line of carets under the range.
std::string CodeLines(const diagnose::Place& place, const std::map<std::string, std::string>& texts,
                      const CheckViewOptions& options, const Style& style) {
  const auto found = texts.find(place.file);
  if (found == texts.end() || place.line <= 0) return {};
  const std::vector<std::string_view> lines = SplitLines(found->second);
  int row = place.line;
  if (place.cell > 0) {
    const auto notebook = options.notebooks.find(place.file);
    if (notebook == options.notebooks.end()) return {};
    row = notebook->second.ModuleLine({place.cell, place.line});
  }
  if (row <= 0 || static_cast<size_t>(row) > lines.size()) return {};
  const std::string line = SanitizeUtf8(lines[static_cast<size_t>(row) - 1]);
  const std::string number = std::to_string(place.line);
  std::string text = fmt::format(" {} | {}\n", number, line);
  if (place.column <= 0) return text;
  const size_t width = DisplayWidth(line);
  const size_t from = std::min(static_cast<size_t>(place.column) - 1, width);
  size_t until = place.end_line == place.line && place.end_column > place.column
                     ? static_cast<size_t>(place.end_column) - 1
                 : place.end_line > place.line ? width
                                               : from + 1;
  until = std::clamp(until, from + 1, std::max(width, from + 1));
  // Tabs stay tabs, so that the carets stand under what they mark.
  std::string blanks;
  size_t column = 0;
  for (const char byte : line) {
    if ((static_cast<unsigned char>(byte) & 0xC0) == 0x80) continue;
    if (column++ == from) break;
    blanks += byte == '\t' ? '\t' : ' ';
  }
  blanks.resize(std::max(blanks.size(), from), ' ');
  const std::string marks = "^" + std::string(std::min(until - from - 1, kMaxMarked), '~');
  return text + fmt::format(" {} | {}{}\n", std::string(number.size(), ' '), blanks, Paint(style, "1;32", marks));
}

void AddNote(std::string_view label, std::string_view note, std::string* text) {
  if (note.empty()) return;
  const std::vector<std::string_view> lines = SplitLines(note);
  for (size_t i = 0; i < lines.size(); ++i) {
    *text += i == 0 ? fmt::format("  {}: {}\n", label, lines[i]) : fmt::format("    {}\n", lines[i]);
  }
}

std::string RenderOne(const Diagnostic& diagnostic, const std::map<std::string, std::string>& texts,
                      const CheckViewOptions& options, const Style& style) {
  std::string text = Paint(style, "1", PlaceText(diagnostic.place, options.folder) + ":") + " " +
                     Paint(style, Color(diagnostic.severity), std::string(SeverityName(diagnostic.severity)) + ":") +
                     " " + Paint(style, "1", SanitizeUtf8(diagnostic.message)) + " [" + diagnostic.id + "]";
  if (!diagnostic.chips.empty()) text += " (" + Join(diagnostic.chips, ", ") + ")";
  text += "\n" + CodeLines(diagnostic.place, texts, options, style);
  for (const diagnose::Related& related : diagnostic.related) {
    text += "  " + PlaceText(related.place, options.folder) + ": " + SanitizeUtf8(related.message) + "\n";
  }
  AddNote("cause", diagnostic.cause, &text);
  AddNote("fix", diagnostic.advice, &text);
  for (const diagnose::Fix& fix : diagnostic.fixes) {
    AddNote("--fix", fix.title + " (compiles on " + Join(fix.verified, ", ") + ")", &text);
  }
  AddNote("see", diagnostic.page, &text);
  if (options.raw) AddNote("raw", SanitizeUtf8(diagnostic.raw), &text);
  return text;
}

}  // namespace

std::string RenderStage(const agents::CheckStageReport& stage, const Style& style) {
  std::string name(diagnose::StageName(stage.stage));
  if (!stage.function.empty()) name += " " + stage.function;
  if (!stage.chip.empty()) name += " " + stage.chip;
  std::string text = "  " + PadWidth(name, 36) + " ";
  if (stage.status == "skipped") {
    text += "skipped";
  } else {
    text += stage.milliseconds < 1000 ? fmt::format("{:.1f} ms", stage.milliseconds)
                                      : fmt::format("{:.1f} s", stage.milliseconds / 1000);
  }
  if (stage.cached) text += ", known";
  const auto errors = std::count_if(stage.diagnostics.begin(), stage.diagnostics.end(),
                                    [](const Diagnostic& each) { return each.severity == Severity::kError; });
  if (errors > 0) text += Paint(style, "31", fmt::format(", {} error{}", errors, errors == 1 ? "" : "s"));
  if (!stage.note.empty()) text += ": " + SanitizeUtf8(stage.note);
  return text;
}

std::string RenderCheck(const agents::CheckResult& result, const std::map<std::string, std::string>& texts,
                        const CheckViewOptions& options, const Style& style) {
  std::string text;
  bool folded = false;
  for (const Diagnostic& diagnostic : result.diagnostics) {
    text += RenderOne(diagnostic, texts, options, style) + "\n";
    folded = folded || (!options.raw && !diagnostic.raw.empty());
  }
  std::string checked;
  for (const agents::CheckedFunction& function : result.functions) {
    checked += (checked.empty() ? "" : ", ") + function.function;
  }
  text += Shown(result.file, options.folder) + ": " + CheckSummary(result);
  if (!checked.empty()) text += " (checked: " + checked + ")";
  text += "\n";
  if (folded) text += "--raw shows the compiler's own texts.\n";
  return text;
}

}  // namespace kernelwright::cli
