// Reads agents/diagnostics.json and refuses what is wrong in it, with the entry and the field. See catalogue.h.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "daemon/base/json.h"
#include "daemon/base/text.h"
#include "daemon/diagnose/catalogue.h"

namespace kernelwright::diagnose {
namespace {

constexpr std::array<std::pair<std::string_view, Anchor>, 10> kAnchors = {{
    {"frame", Anchor::kFrame},
    {"call", Anchor::kCall},
    {"block_spec", Anchor::kBlockSpec},
    {"index_map", Anchor::kIndexMap},
    {"scratch", Anchor::kScratch},
    {"operand", Anchor::kOperand},
    {"kernel", Anchor::kKernel},
    {"kernel_parameters", Anchor::kKernelParameters},
    {"kernel_return", Anchor::kKernelReturn},
    {"kernel_capture", Anchor::kKernelCapture},
}};
constexpr std::string_view kArgumentPrefix = "argument:";

Status Wrong(const std::string& where, const std::string& what) {
  return {ErrorKind::kUsage, what, where, "Correct the entry; docs/diagnostics/README.md describes the format"};
}

bool OneOf(std::string_view value, std::initializer_list<std::string_view> allowed) {
  return std::find(allowed.begin(), allowed.end(), value) != allowed.end();
}

Status CheckKeys(const JsonReader& object, std::initializer_list<std::string_view> allowed) {
  if (!object.value().is_object()) return Wrong(object.path(), "an object is expected");
  for (const auto& [key, value] : object.value().items()) {
    if (!OneOf(key, allowed)) return Wrong(object.path(), "there is no field \"" + key + "\"");
  }
  return {};
}

// A list of strings, or one string; missing gives none.
Expected<std::vector<std::string>> StringsOf(const JsonReader& object, const std::string& key) {
  if (!object.Has(key)) return std::vector<std::string>{};
  const Expected<JsonReader> value = object.At(key);
  if (!value) return Fail(value.error());
  if (value->value().is_string()) return std::vector<std::string>{value->value().get<std::string>()};
  return object.Strings(key);
}

Expected<std::vector<Template>> TemplatesOf(const JsonReader& object, const std::string& key) {
  const Expected<std::vector<std::string>> texts = StringsOf(object, key);
  if (!texts) return Fail(texts.error());
  const std::string where = object.path() + "." + key;
  if (texts->empty()) return Fail(Wrong(where, "a text is needed"));
  std::vector<Template> templates;
  templates.reserve(texts->size());
  for (const std::string& text : *texts) {
    Expected<Template> made = Template::Parse(text);
    if (!made) return Fail(Wrong(where, made.error().message()));
    templates.push_back(*std::move(made));
  }
  if (!templates.back().Variables().empty()) {
    return Fail(Wrong(where, "the last text must not have variables: it is used when nothing was captured"));
  }
  return templates;
}

Expected<Captures> MapOf(const JsonReader& object, const std::string& key) {
  Captures map;
  if (!object.Has(key)) return map;
  const Expected<JsonReader> inner = object.At(key);
  if (!inner) return Fail(inner.error());
  if (!inner->value().is_object()) return Fail(Wrong(inner->path(), "an object of strings is expected"));
  for (const auto& [name, value] : inner->value().items()) {
    if (!value.is_string()) return Fail(Wrong(inner->path() + "." + name, "a string is expected"));
    map[name] = value.get<std::string>();
  }
  return map;
}

Expected<Alternative> AlternativeOf(const JsonReader& json) {
  if (Status status =
          CheckKeys(json, {"text", "primitive", "exception", "stage", "chips", "traceback", "source", "empty", "set"});
      !status) {
    return Fail(status);
  }
  Alternative made;
  const std::array<std::pair<const char*, std::vector<std::string>*>, 6> lists = {{
      {"primitive", &made.primitives},
      {"exception", &made.exceptions},
      {"stage", &made.stages},
      {"chips", &made.chips},
      {"traceback", &made.traceback},
      {"source", &made.source},
  }};
  for (const auto& [key, list] : lists) {
    Expected<std::vector<std::string>> strings = StringsOf(json, key);
    if (!strings) return Fail(strings.error());
    *list = *std::move(strings);
  }
  const Expected<std::vector<std::string>> texts = StringsOf(json, "text");
  if (!texts) return Fail(texts.error());
  for (const std::string& text : *texts) {
    Expected<Pattern> pattern = Pattern::Parse(text);
    if (!pattern) return Fail(Wrong(json.path() + ".text", pattern.error().message()));
    made.text.push_back(*std::move(pattern));
  }
  const Expected<bool> empty = json.BoolOr("empty", false);
  if (!empty) return Fail(empty.error());
  made.empty_message = *empty;
  Expected<Captures> set = MapOf(json, "set");
  if (!set) return Fail(set.error());
  made.set = *std::move(set);
  if (made.text.empty() && made.primitives.empty() && !(made.empty_message && !made.traceback.empty())) {
    return Fail(Wrong(json.path(),
                      "an alternative needs text or primitive, or empty with a traceback: it would match "
                      "every error"));
  }
  return made;
}

Status ReadAnchor(const JsonReader& json, Entry& entry) {
  const Expected<std::string> locate = json.StringOr("locate", "frame");
  if (!locate) return locate.error();
  if (std::string_view(*locate).substr(0, kArgumentPrefix.size()) == kArgumentPrefix) {
    entry.anchor = Anchor::kArgument;
    entry.argument = locate->substr(kArgumentPrefix.size());
    return {};
  }
  const auto known = std::find_if(kAnchors.begin(), kAnchors.end(), [&](const auto& a) { return a.first == *locate; });
  if (known == kAnchors.end()) return Wrong(json.path() + ".locate", "there is no place \"" + *locate + "\"");
  entry.anchor = known->second;
  return {};
}

Status ReadFix(const JsonReader& json, Entry& entry) {
  const Expected<JsonReader> fix = json.At("fix");
  if (!fix) return fix.error();
  if (Status status = CheckKeys(*fix, {"kind", "text"}); !status) return status;
  const Expected<std::string> kind = fix->String("kind");
  if (!kind) return kind.error();
  if (!OneOf(*kind, {"auto", "choose", "do"})) return Wrong(fix->path() + ".kind", "auto, choose or do is expected");
  Expected<std::vector<Template>> text = TemplatesOf(*fix, "text");
  if (!text) return text.error();
  entry.fix = {*kind, *std::move(text)};
  return {};
}

Status ReadTexts(const JsonReader& json, Entry& entry) {
  const std::array<std::pair<const char*, std::string*>, 6> fields = {{{"id", &entry.id},
                                                                       {"name", &entry.name},
                                                                       {"title", &entry.title},
                                                                       {"class", &entry.kind},
                                                                       {"state", &entry.state},
                                                                       {"cause", &entry.cause}}};
  for (const auto& [key, field] : fields) {
    Expected<std::string> value = json.String(key);
    if (!value) return value.error();
    if (value->empty()) return Wrong(json.path() + "." + key, "a text is needed");
    *field = *std::move(value);
  }
  if (entry.id.size() < 3 || entry.id[0] != 'D' ||
      !std::all_of(entry.id.begin() + 1, entry.id.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return Wrong(json.path() + ".id", "an id is D and digits");
  }
  for (const std::string& kind : Split(entry.kind, ',')) {
    if (!OneOf(Trim(kind), {"T", "L", "C", "I", "R", "S"})) {
      return Wrong(json.path() + ".class", "letters of T, L, C, I, R, S are expected");
    }
  }
  if (!OneOf(entry.state, {"now", "changed", "fixed", "doc"})) {
    return Wrong(json.path() + ".state", "now, changed, fixed or doc is expected");
  }
  const Expected<std::string> severity = json.String("severity");
  if (!severity) return severity.error();
  for (const Severity s : {Severity::kError, Severity::kWarning, Severity::kInformation, Severity::kHint}) {
    if (*severity != SeverityName(s)) continue;
    entry.severity = s;
    return {};
  }
  return Wrong(json.path() + ".severity", "error, warning, information or hint is expected");
}

Expected<Entry> EntryOf(const JsonReader& json) {
  if (Status status =
          CheckKeys(json, {"id", "name", "title", "severity", "class", "state", "versions", "match", "beats", "hidden",
                           "locate", "message", "cause", "fix", "example", "references"});
      !status) {
    return Fail(status);
  }
  Entry entry;
  for (Status (*read)(const JsonReader&, Entry&) : {ReadTexts, ReadAnchor, ReadFix}) {
    if (Status status = read(json, entry); !status) return Fail(status);
  }
  Expected<std::vector<Template>> message = TemplatesOf(json, "message");
  if (!message) return Fail(message.error());
  entry.message = *std::move(message);
  Expected<Captures> versions = MapOf(json, "versions");
  if (!versions) return Fail(versions.error());
  entry.versions = *std::move(versions);
  Expected<Captures> example = MapOf(json, "example");
  if (!example) return Fail(example.error());
  entry.bad = (*example)["bad"];
  entry.good = (*example)["good"];
  const Expected<bool> hidden = json.BoolOr("hidden", false);
  if (!hidden) return Fail(hidden.error());
  entry.hidden = *hidden;
  for (const auto& [key, list] : {std::pair{"beats", &entry.beats}, std::pair{"references", &entry.references}}) {
    Expected<std::vector<std::string>> strings = StringsOf(json, key);
    if (!strings) return Fail(strings.error());
    *list = *std::move(strings);
  }
  if (json.Has("match")) {
    const Expected<JsonReader> match = json.At("match");
    if (!match) return Fail(match.error());
    const Expected<std::vector<JsonReader>> alternatives = match->Elements();
    if (!alternatives) return Fail(alternatives.error());
    for (const JsonReader& alternative : *alternatives) {
      Expected<Alternative> made = AlternativeOf(alternative);
      if (!made) return Fail(made.error());
      entry.match.push_back(*std::move(made));
    }
  }
  return entry;
}

}  // namespace

Expected<Catalogue> Catalogue::Parse(std::string_view json) {
  const Expected<Json> parsed = ParseJson(json, "diagnostics.json");
  if (!parsed) return Fail(parsed.error());
  const JsonReader root(*parsed, "diagnostics.json");
  const Expected<JsonReader> list = root.At("entries");
  if (!list) return Fail(list.error());
  const Expected<std::vector<JsonReader>> elements = list->Elements();
  if (!elements) return Fail(elements.error());
  Catalogue catalogue;
  catalogue.entries_.reserve(elements->size());
  std::set<std::string> ids;
  for (const JsonReader& element : *elements) {
    Expected<Entry> entry = EntryOf(element);
    if (!entry) {
      const std::string id = element.Has("id") && element.value()["id"].is_string()
                                 ? element.value()["id"].get<std::string>() + ": "
                                 : std::string();
      return Fail(ErrorKind::kUsage, id + entry.error().message(), entry.error().where(), entry.error().remedy());
    }
    if (!ids.insert(entry->id).second) return Fail(Wrong(element.path(), entry->id + " is there twice"));
    catalogue.entries_.push_back(*std::move(entry));
  }
  for (const Entry& entry : catalogue.entries_) {
    for (const std::string& beaten : entry.beats) {
      if (!ids.contains(beaten)) return Fail(Wrong(entry.id + ".beats", "there is no entry " + beaten));
    }
  }
  return catalogue;
}

}  // namespace kernelwright::diagnose
