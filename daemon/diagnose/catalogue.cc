// Matching and ranking; reading is in catalogue_parse.cc. See catalogue.h.
#include "daemon/diagnose/catalogue.h"

#include <algorithm>
#include <utility>

#include "daemon/base/text.h"
#include "daemon/diagnose/catalogue_text.h"

namespace kernelwright::diagnose {
namespace {

constexpr std::string_view kUnimplemented = "Unimplemented primitive in Pallas TPU lowering for ";

bool Listed(const std::vector<std::string>& allowed, std::string_view value) {
  return allowed.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end();
}

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// The texts to search. A callback's error wraps a whole traceback with the user's source lines in it; only its last
// line says what happened.
std::vector<std::string_view> Texts(const CodeError& error) {
  std::vector<std::string_view> texts;
  for (const std::string* text : {&error.message, &error.cause}) {
    if (text->find("CpuCallback error") == std::string::npos) {
      texts.emplace_back(*text);
      continue;
    }
    const std::vector<std::string_view> lines = SplitLines(*text);
    const auto last = std::find_if(lines.rbegin(), lines.rend(), [](std::string_view l) { return !Trim(l).empty(); });
    if (last != lines.rend()) texts.push_back(Trim(*last));
  }
  return texts;
}

// The primitive of an "Unimplemented primitive" text, or empty.
std::string_view Primitive(std::string_view text) {
  size_t at = text.find(kUnimplemented);
  if (at == std::string_view::npos) return {};
  at = text.find(": ", at + kUnimplemented.size());
  if (at == std::string_view::npos) return {};
  at += 2;
  size_t end = at;
  while (end < text.size() && IsWordByte(text[end])) ++end;
  return text.substr(at, end - at);
}

bool ContainsAll(std::string_view text, const std::vector<std::string>& parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return text.find(part) != std::string_view::npos; });
}

// Bytes explained in one text, or nothing.
std::optional<size_t> MatchText(const Alternative& alternative, std::string_view text, Captures& captures) {
  size_t weight = 0;
  if (!alternative.primitives.empty()) {
    const std::string_view primitive = Primitive(text);
    if (primitive.empty() || !Listed(alternative.primitives, primitive)) return std::nullopt;
    captures["primitive"] = std::string(primitive);
    weight += kUnimplemented.size() + primitive.size();
  }
  size_t from = 0;
  for (const Pattern& pattern : alternative.text) {
    const std::optional<Pattern::Found> found = pattern.Find(text, from, captures);
    if (!found) return std::nullopt;
    from = found->end;
    weight += found->literal;
  }
  return weight;
}

std::optional<Match> MatchAlternative(const Entry& entry, const Alternative& alternative, const CodeError& error,
                                      const std::string& chip, std::string_view source) {
  if (!Listed(alternative.exceptions, error.type) || !Listed(alternative.stages, error.stage)) return std::nullopt;
  if (!alternative.chips.empty() && !Listed(alternative.chips, chip)) return std::nullopt;
  if (alternative.empty_message && !Trim(error.message).empty()) return std::nullopt;
  if (!ContainsAll(error.traceback, alternative.traceback) || !ContainsAll(source, alternative.source)) {
    return std::nullopt;
  }
  size_t conditions = 0;
  for (const auto* list : {&alternative.traceback, &alternative.source}) {
    for (const std::string& part : *list) conditions += part.size();
  }
  if (alternative.text.empty() && alternative.primitives.empty()) {
    return Match{&entry, alternative.set, conditions};
  }
  for (const std::string_view text : Texts(error)) {
    Captures captures = alternative.set;
    if (const std::optional<size_t> weight = MatchText(alternative, text, captures)) {
      return Match{&entry, std::move(captures), *weight + conditions};
    }
  }
  return std::nullopt;
}

// Values that follow from what was captured.
void Derive(Captures& captures) {
  const auto block = captures.find("block");
  const auto array = captures.find("array");
  if (block == captures.end() || array == captures.end()) return;
  const std::optional<BlockSizes> sizes = ParseBlock(block->second);
  const std::optional<BlockSizes> whole = ParseBlock(array->second);
  if (!sizes || !whole) return;
  if (const std::optional<BlockSizes> rounded = RoundBlock(*sizes, *whole)) captures["rounded"] = BlockText(*rounded);
}

std::string FirstRendered(const std::vector<Template>& templates, const Captures& captures) {
  for (const Template& candidate : templates) {
    if (std::optional<std::string> text = candidate.Render(captures)) return *std::move(text);
  }
  return {};
}

}  // namespace

std::string Entry::Message(const Captures& captures) const { return FirstRendered(message, captures); }
std::string Entry::Advice(const Captures& captures) const { return FirstRendered(fix.text, captures); }

const Entry* Catalogue::Find(std::string_view id) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.id == id; });
  return found == entries_.end() ? nullptr : &*found;
}

std::optional<Match> Catalogue::Best(const CodeError& error, const std::string& chip, std::string_view source) const {
  std::vector<Match> matches;
  for (const Entry& entry : entries_) {
    std::optional<Match> best;
    for (const Alternative& alternative : entry.match) {
      std::optional<Match> match = MatchAlternative(entry, alternative, error, chip, source);
      if (match && (!best || match->weight > best->weight)) best = std::move(match);
    }
    if (best) matches.push_back(*std::move(best));
  }
  const auto beaten = [&](const Match& match) {
    return std::any_of(matches.begin(), matches.end(), [&](const Match& other) {
      const std::vector<std::string>& beats = other.entry->beats;
      return std::find(beats.begin(), beats.end(), match.entry->id) != beats.end();
    });
  };
  const Match* best = nullptr;
  for (const Match& match : matches) {
    if (!beaten(match) && (best == nullptr || match.weight > best->weight)) best = &match;
  }
  if (best == nullptr) return std::nullopt;
  Match chosen = *best;
  Derive(chosen.captures);
  return chosen;
}

Diagnostic Catalogue::Make(std::string_view id, const Captures& captures) const {
  Diagnostic diagnostic;
  diagnostic.id = std::string(id);
  const Entry* entry = Find(id);
  if (entry == nullptr) return diagnostic;
  diagnostic.name = entry->name;
  diagnostic.severity = entry->severity;
  diagnostic.message = entry->Message(captures);
  diagnostic.cause = entry->cause;
  diagnostic.advice = entry->Advice(captures);
  diagnostic.page = entry->Page();
  return diagnostic;
}

}  // namespace kernelwright::diagnose
