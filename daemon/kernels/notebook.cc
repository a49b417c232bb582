// See notebook.h.
#include "daemon/kernels/notebook.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "daemon/base/text.h"

namespace kernelwright::kernels {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kParting = "# %%\n";

Status Malformed(std::string_view path, const std::string& what) {
  return Status(ErrorKind::kUserCode, "the notebook cannot be read: " + what, std::string(path),
                "Open it in Jupyter or VS Code and save it again.");
}

// `source` is a text or a list of lines.
std::optional<std::string> SourceText(const Json& cell) {
  const auto source = cell.find("source");
  if (source == cell.end()) return std::nullopt;
  if (source->is_string()) return source->get<std::string>();
  if (!source->is_array()) return std::nullopt;
  std::string text;
  for (const Json& line : *source) {
    if (!line.is_string()) return std::nullopt;
    text += line.get_ref<const std::string&>();
  }
  return text;
}

// IPython's own lines as comments; every line keeps its length.
std::string AsPython(std::string text) {
  const bool whole = text.starts_with("%%");
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const size_t first = text.find_first_not_of(" \t", begin);
    const auto starts = [&](const char* signs) {
      return std::string_view(signs).find(text[first]) != std::string_view::npos;
    };
    const bool named = first + 1 < end && std::isalpha(static_cast<unsigned char>(text[first + 1])) != 0;
    // A `%` before a blank is an operator that starts a continuation line.
    if (first < end && (whole || starts("!?") || (starts("%") && named))) {
      text[whole ? begin : first] = '#';
    }
    begin = end + 1;
  }
  return text;
}

}  // namespace

Expected<Notebook> Notebook::Parse(std::string_view path, std::string_view json) {
  const Json document = Json::parse(json, nullptr, false);
  if (document.is_discarded()) return Fail(Malformed(path, "it is not JSON"));
  const auto cells = document.is_object() ? document.find("cells") : document.end();
  if (!document.is_object() || cells == document.end() || !cells->is_array()) {
    return Fail(Malformed(path, "it has no list of cells (format 4)"));
  }
  Notebook notebook;
  notebook.path_ = path;
  notebook.json_ = json;
  int line = 1;
  for (size_t i = 0; i < cells->size(); ++i) {
    const Json& cell = (*cells)[i];
    if (!cell.is_object() || cell.value("cell_type", "") != "code") continue;
    auto source = SourceText(cell);
    if (!source) return Fail(Malformed(path, "cell " + std::to_string(i + 1) + " has no source"));
    if (!notebook.cells_.empty()) {
      notebook.module_ += kParting;
      ++line;
    }
    Cell entry{i, line, *source, AsPython(*source)};
    notebook.module_ += entry.shown;
    if (!entry.shown.empty() && !entry.shown.ends_with('\n')) notebook.module_ += '\n';
    line = 1 + static_cast<int>(std::count(notebook.module_.begin(), notebook.module_.end(), '\n'));
    notebook.cells_.push_back(std::move(entry));
  }
  return notebook;
}

CellLine Notebook::Locate(int line) const {
  const auto after = std::upper_bound(cells_.begin(), cells_.end(), line,
                                      [](int value, const Cell& cell) { return value < cell.first_line; });
  if (cells_.empty()) return {};
  const Cell& cell = after == cells_.begin() ? cells_.front() : *std::prev(after);
  return {static_cast<int>(cell.index) + 1, std::max(1, line - cell.first_line + 1)};
}

int Notebook::ModuleLine(CellLine place) const {
  const auto found = std::find_if(cells_.begin(), cells_.end(),
                                  [&](const Cell& cell) { return cell.index + 1 == static_cast<size_t>(place.cell); });
  return found == cells_.end() ? 0 : found->first_line + place.line - 1;
}

Expected<std::string> Notebook::WithModule(std::string_view module) const {
  Json document = Json::parse(json_, nullptr, false);
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    size_t end = module.find(kParting, begin);
    while (end != std::string_view::npos && end > 0 && module[end - 1] != '\n') end = module.find(kParting, end + 1);
    parts.emplace_back(module.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) break;
    begin = end + kParting.size();
  }
  if (document.is_discarded() || parts.size() != cells_.size()) {
    return Fail(ErrorKind::kConflict, "nothing was applied: the change goes over the border of a cell", path_,
                "Make it by hand.");
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const Cell& cell = cells_[i];
    std::string& text = parts[i];
    if (!cell.shown.ends_with('\n') && text.ends_with('\n')) text.pop_back();
    if (text == cell.shown) continue;
    if (cell.shown != cell.source) {
      return Fail(ErrorKind::kConflict,
                  "nothing was applied: cell " + std::to_string(cell.index + 1) + " holds lines that are not Python",
                  path_, "Make the change by hand.");
    }
    Json& source = document["cells"][cell.index]["source"];
    source = source.is_string() ? Json(text) : Json(SplitLinesWithEnds(text));
  }
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace kernelwright::kernels
