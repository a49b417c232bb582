// Finds and edits compiler_params arguments; see compiler_params.h.
#include "daemon/kernels/compiler_params.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <tuple>

#include "daemon/base/hash.h"
#include "daemon/kernels/literals.h"
#include "daemon/kernels/tree.h"

namespace kernelwright::kernels {
namespace {

std::string LastPart(std::string_view dotted) {
  const size_t dot = dotted.rfind('.');
  return std::string(dot == std::string_view::npos ? dotted : dotted.substr(dot + 1));
}

Node KeywordValue(const Node& arguments, std::string_view name) {
  for (const Node& child : arguments.NamedChildren()) {
    if (child.Is("keyword_argument") && child.Field("name").text() == name) return child.Field("value");
  }
  return {};
}

bool HasSplat(const Node& arguments) {
  const auto children = arguments.NamedChildren();
  return std::any_of(children.begin(), children.end(), [](const Node& child) { return child.Is("dictionary_splat"); });
}

// "parallel" for "parallel", pltpu.PARALLEL and pltpu.GridDimensionSemantics.PARALLEL.
std::optional<std::string> SemanticsName(const Node& element) {
  std::string word;
  if (element.Is("string")) {
    word = element.text();
    std::erase_if(word, [](char c) { return c == '"' || c == '\''; });
  } else if (element.Is("attribute") || element.Is("identifier")) {
    word = LastPart(element.text());
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  }
  if (word == "parallel" || word == "arbitrary" || word == "core_parallel" || word == "subcore_parallel") return word;
  return std::nullopt;
}

// Where and how to add an argument at the end of a list.
void SetInsertion(const SourceFile& file, const Node& arguments, CompilerParamsSite& site) {
  const std::string& text = file.text();
  Node last;
  for (const Node& child : arguments.NamedChildren()) last = child;
  if (!last) {
    site.insert_at = arguments.begin() + 1;
    return;
  }
  site.insert_at = last.end();
  // An argument on a line of its own gets a line of its own after it, with the same indentation.
  const size_t newline = text.rfind('\n', last.begin());
  const size_t line_start = newline == std::string::npos ? 0 : newline + 1;
  const std::string_view before = std::string_view(text).substr(line_start, last.begin() - line_start);
  const bool own_line = before.find_first_not_of(" \t") == std::string_view::npos;
  if (!own_line) {
    site.insert_before = ", ";
    return;
  }
  const bool crlf = line_start >= 2 && text[line_start - 2] == '\r';
  // A comma that ended the list now follows the new argument.
  site.insert_before = std::string(",") + (crlf ? "\r\n" : "\n") + std::string(before);
}

// Names CompilerParams for this file; adds an import when nothing names it yet.
void SetParamsType(const SourceFile& file, CompilerParamsSite& site) {
  for (const Import& entry : file.imports()) {
    if (entry.name == "CompilerParams") {
      site.params_type = entry.alias;
      return;
    }
  }
  for (const Import& entry : file.imports()) {
    if (entry.module == "jax.experimental.pallas" && entry.name == "tpu") {
      site.params_type = entry.alias + ".CompilerParams";
      return;
    }
    if (entry.module == "jax.experimental.pallas.tpu" && entry.name.empty()) {
      site.params_type = (entry.alias == "jax" ? "jax.experimental.pallas.tpu" : entry.alias) + ".CompilerParams";
      return;
    }
  }
  site.params_type = "pltpu.CompilerParams";
  const Import* anchor = nullptr;
  for (const Import& entry : file.imports()) {
    if (!entry.top_level) continue;
    const bool pallas = entry.name == "pallas" || entry.module.starts_with("jax.experimental.pallas");
    if (pallas || anchor == nullptr) anchor = &entry;
  }
  const bool crlf = file.text().find("\r\n") != std::string::npos;
  const std::string newline = crlf ? "\r\n" : "\n";
  const std::string line = "from jax.experimental.pallas import tpu as pltpu";
  if (anchor != nullptr) {
    site.import_edit = TextEdit{file.path(), {anchor->range.end, anchor->range.end}, newline + line, site.base_hash};
  } else {
    site.import_edit = TextEdit{file.path(), {0, 0}, line + newline, site.base_hash};
  }
}

void ReadWritten(const Node& arguments, CompilerParamsSite& site) {
  if (const Node value = KeywordValue(arguments, "dimension_semantics")) {
    site.semantics_range = ByteRange{value.begin(), value.end()};
    if (value.Is("tuple") || value.Is("list")) {
      for (const Node& element : value.NamedChildren()) {
        const auto name = SemanticsName(element);
        if (!name) {
          site.semantics.clear();
          break;
        }
        site.semantics.push_back(*name);
      }
    }
  }
  if (const Node value = KeywordValue(arguments, "vmem_limit_bytes")) {
    site.limit_range = ByteRange{value.begin(), value.end()};
    site.limit = value.Is("none") ? std::optional<int64_t>(0) : EvaluateInteger(value);
    site.limit_text = value.text();
  }
}

CompilerParamsSite ReadCall(const SourceFile& file, const std::string& hash, const Node& call) {
  CompilerParamsSite site;
  site.file = file.path();
  site.base_hash = hash;
  site.position = file.Position(call.begin());
  site.call = {call.begin(), call.end()};
  site.line = call.row() + 1;
  site.end_line = call.end_row() + 1;
  const FunctionInfo* around = file.EnclosingFunction(call.begin());
  if (around != nullptr) site.function = around->qualified_name;
  const Node arguments = call.Field("arguments");
  const Node params = KeywordValue(arguments, "compiler_params");
  if (!params) {
    if (HasSplat(arguments)) {
      site.state = CompilerParamsSite::State::kFixed;
      return site;
    }
    SetInsertion(file, arguments, site);
    SetParamsType(file, site);
    return site;
  }
  const std::string type = params.Is("call") ? LastPart(params.Field("function").text()) : "";
  if (!type.ends_with("CompilerParams") || HasSplat(params.Field("arguments"))) {
    site.state = CompilerParamsSite::State::kFixed;
    return site;
  }
  site.state = CompilerParamsSite::State::kWritten;
  SetInsertion(file, params.Field("arguments"), site);
  ReadWritten(params.Field("arguments"), site);
  return site;
}

std::string SemanticsText(const std::vector<std::string>& semantics) {
  std::string text = "(";
  for (size_t i = 0; i < semantics.size(); ++i) text += (i == 0 ? "\"" : ", \"") + semantics[i] + "\"";
  return text + (semantics.size() == 1 ? ",)" : ")");
}

// 64 * 1024 * 1024 rather than 67108864.
std::string BytesText(int64_t bytes) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  return bytes % kMiB == 0 ? std::to_string(bytes / kMiB) + " * 1024 * 1024" : std::to_string(bytes);
}

}  // namespace

std::vector<CompilerParamsSite> FindCompilerParams(const Reached& reached) {
  std::vector<CompilerParamsSite> sites;
  std::set<std::pair<const SourceFile*, uint32_t>> seen;
  for (const ReachedFunction& entry : reached.functions) {
    const SourceFile& file = *entry.file;
    const std::string hash = Sha256Hex(file.text());
    const ByteRange range = entry.function->range_with_decorators;
    Walk(file.tree().root(), [&](const Node& node) {
      if (node.end() <= range.begin || node.begin() >= range.end) return false;
      if (node.Is("call") && node.begin() >= range.begin && node.end() <= range.end) {
        std::string callee = LastPart(node.Field("function").text());
        // functools.partial(pl.pallas_call, kernel, …) takes the same arguments.
        if (callee == "partial") {
          const auto arguments = node.Field("arguments").NamedChildren();
          if (!arguments.empty()) callee = LastPart(arguments.front().text());
        }
        if (callee == "pallas_call" && seen.insert({&file, node.begin()}).second) {
          sites.push_back(ReadCall(file, hash, node));
        }
      }
      return true;
    });
  }
  std::stable_sort(sites.begin(), sites.end(), [](const CompilerParamsSite& a, const CompilerParamsSite& b) {
    return std::tie(a.file, a.call.begin) < std::tie(b.file, b.call.begin);
  });
  return sites;
}

int MatchCompilerParams(const std::vector<CompilerParamsSite>& sites, const std::vector<SourceSpan>& spans) {
  for (const SourceSpan& span : spans) {
    int best = -1;
    for (size_t i = 0; i < sites.size(); ++i) {
      const CompilerParamsSite& site = sites[i];
      // The traced line is that of the whole call `pallas_call(…)(x, y)`, which starts where ours does; a call whose
      // result is called elsewhere (`f = pallas_call(…)`, later `f(x)`) matches by its function alone.
      if (site.file != span.file || span.line < site.line || span.line > site.end_line + 1) continue;
      if (best < 0 || site.line > sites[best].line) best = static_cast<int>(i);
    }
    if (best >= 0) return best;
  }
  for (const SourceSpan& span : spans) {
    int only = -1;
    int count = 0;
    for (size_t i = 0; i < sites.size(); ++i) {
      if (sites[i].file != span.file || LastPart(sites[i].function) != LastPart(span.function)) continue;
      only = static_cast<int>(i);
      ++count;
    }
    if (count == 1) return only;
  }
  return -1;
}

std::vector<TextEdit> CompilerParamsEdits(const CompilerParamsSite& site, const CompilerParamsChange& change) {
  std::vector<TextEdit> edits;
  std::string added;
  const auto add = [&](const std::string& argument) { added += (added.empty() ? "" : ", ") + argument; };
  if (site.state == CompilerParamsSite::State::kFixed) return {};
  if (change.semantics) {
    if (site.semantics_range) {
      if (site.semantics.empty()) return {};
      edits.push_back({site.file, *site.semantics_range, SemanticsText(*change.semantics), site.base_hash});
    } else {
      add("dimension_semantics=" + SemanticsText(*change.semantics));
    }
  }
  if (change.vmem_limit_bytes) {
    if (site.limit_range) {
      if (!site.limit) return {};
      const std::string text = *site.limit == 0 || EvaluateInteger(site.limit_text) == std::nullopt ||
                                       site.limit_text == std::to_string(*site.limit)
                                   ? BytesText(*change.vmem_limit_bytes)
                                   : FormatInteger(site.limit_text, *change.vmem_limit_bytes);
      edits.push_back({site.file, *site.limit_range, text, site.base_hash});
    } else {
      add("vmem_limit_bytes=" + BytesText(*change.vmem_limit_bytes));
    }
  }
  if (!added.empty()) {
    if (site.state == CompilerParamsSite::State::kAbsent) {
      added = "compiler_params=" + site.params_type + "(" + added + ")";
      if (site.import_edit) edits.push_back(*site.import_edit);
    }
    edits.push_back({site.file, {site.insert_at, site.insert_at}, site.insert_before + added, site.base_hash});
  }
  return edits;
}

}  // namespace kernelwright::kernels
