// See catalogue_pattern.h.
#include "daemon/diagnose/catalogue_pattern.h"

#include <algorithm>
#include <utility>

#include "daemon/diagnose/catalogue_text.h"

namespace kernelwright::diagnose {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// End of the bracketed text that starts at `at`, or `at` when there is none that closes.
size_t GroupEnd(std::string_view text, size_t at) {
  int depth = 0;
  for (size_t i = at; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[' || text[i] == '{') ++depth;
    if (text[i] == ')' || text[i] == ']' || text[i] == '}') --depth;
    if (depth == 0) return i == at ? at : i + 1;
  }
  return at;
}

// Splits at braces: calls literal(text) and hole(text between braces). An error text, or empty.
template <typename Literal, typename Hole>
std::string SplitBraces(std::string_view text, const Literal& literal, const Hole& hole) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{') {
      plain += text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '{') {
      plain += '{';
      ++i;
      continue;
    }
    const size_t close = text.find('}', i);
    if (close == std::string_view::npos) return "a brace is not closed; write {{ for a brace";
    if (!plain.empty()) literal(std::exchange(plain, {}));
    if (std::string error = hole(text.substr(i + 1, close - i - 1)); !error.empty()) return error;
    i = close;
  }
  if (!plain.empty()) literal(std::move(plain));
  return {};
}

}  // namespace

std::optional<Pattern::Kind> Pattern::KindOf(std::string_view name) {
  if (name == "word") return Kind::kWord;
  if (name == "int") return Kind::kInt;
  if (name == "size") return Kind::kSize;
  if (name == "group") return Kind::kGroup;
  if (name == "line") return Kind::kLine;
  return std::nullopt;
}

bool Pattern::InClass(Kind kind, char c) {
  switch (kind) {
    case Kind::kWord:
      return IsDigit(c) || IsLetter(c) || c == '_' || c == '.' || c == '-' || c == '<' || c == '>';
    case Kind::kInt:
      return IsDigit(c) || c == '-';
    case Kind::kSize:
      return IsDigit(c) || IsLetter(c) || c == '.';
    default:
      return c != '\n';
  }
}

Expected<Pattern> Pattern::Parse(std::string_view text) {
  Pattern pattern;
  const std::string error = SplitBraces(
      text,
      [&](std::string literal) {
        pattern.literal_ += literal.size();
        pattern.pieces_.push_back({Kind::kLiteral, std::move(literal)});
      },
      [&](std::string_view hole) -> std::string {
        const size_t colon = hole.find(':');
        const std::optional<Kind> kind =
            colon == std::string_view::npos ? std::nullopt : KindOf(hole.substr(colon + 1));
        if (!kind) return "the hole {" + std::string(hole) + "} needs a kind: word, int, size, group or line";
        if (*kind == Kind::kLine && pattern.pieces_.empty()) return "a pattern cannot start with a line hole";
        std::string name(hole.substr(0, colon));
        if (!name.empty()) pattern.names_.push_back(name);
        pattern.pieces_.push_back({*kind, std::move(name)});
        return {};
      });
  if (!error.empty()) return Fail(ErrorKind::kUsage, error);
  if (pattern.literal_ == 0) return Fail(ErrorKind::kUsage, "a pattern needs literal text");
  return pattern;
}

bool Pattern::MatchAt(std::string_view text, size_t at, size_t piece, size_t& end, Captures& captures) const {
  if (piece == pieces_.size()) {
    end = at;
    return true;
  }
  const Piece& here = pieces_[piece];
  if (here.kind == Kind::kLiteral) {
    return text.substr(at, here.text.size()) == here.text &&
           MatchAt(text, at + here.text.size(), piece + 1, end, captures);
  }
  const auto take = [&](size_t length) {
    if (!MatchAt(text, at + length, piece + 1, end, captures)) return false;
    if (!here.text.empty()) captures.emplace(here.text, text.substr(at, length));
    return true;
  };
  if (here.kind == Kind::kGroup) {
    const size_t group = GroupEnd(text, at);
    return group != at && take(group - at);
  }
  size_t longest = 0;
  while (at + longest < text.size() && InClass(here.kind, text[at + longest])) ++longest;
  if (here.kind == Kind::kLine) {
    if (piece + 1 == pieces_.size()) return longest > 0 && take(longest);
    for (size_t length = 1; length <= longest; ++length) {
      if (take(length)) return true;
    }
    return false;
  }
  for (size_t length = longest; length > 0; --length) {
    if (take(length)) return true;
  }
  return false;
}

std::optional<Pattern::Found> Pattern::Find(std::string_view text, size_t from, Captures& captures) const {
  const Piece& first = pieces_.front();
  for (size_t at = from; at < text.size(); ++at) {
    if (first.kind == Kind::kLiteral) {
      at = text.find(first.text, at);
      if (at == std::string_view::npos) return std::nullopt;
    } else if (first.kind != Kind::kGroup && at > from && InClass(first.kind, text[at - 1])) {
      continue;  // in the middle of a word: its start was tried
    }
    Captures found;
    size_t end = 0;
    if (!MatchAt(text, at, 0, end, found)) continue;
    for (auto& [name, value] : found) captures.insert_or_assign(name, std::move(value));
    return Found{end, literal_};
  }
  return std::nullopt;
}

Expected<Template> Template::Parse(std::string_view text) {
  Template made;
  const std::string error = SplitBraces(
      text, [&](std::string literal) { made.pieces_.push_back({false, std::move(literal), {}}); },
      [&](std::string_view hole) -> std::string {
        const size_t bar = hole.find('|');
        std::string filter = bar == std::string_view::npos ? "" : std::string(hole.substr(bar + 1));
        if (!IsTextFilter(filter)) return "there is no filter \"" + filter + "\": " + TextFilterNames();
        made.pieces_.push_back({true, std::string(hole.substr(0, bar)), std::move(filter)});
        return {};
      });
  if (!error.empty()) return Fail(ErrorKind::kUsage, error);
  return made;
}

std::optional<std::string> Template::Render(const Captures& captures) const {
  std::string out;
  for (const Piece& piece : pieces_) {
    if (!piece.variable) {
      out += piece.text;
      continue;
    }
    const auto value = captures.find(piece.text);
    if (value == captures.end()) return std::nullopt;
    const std::optional<std::string> shown = ApplyTextFilter(piece.filter, value->second);
    if (!shown) return std::nullopt;
    out += *shown;
  }
  return out;
}

std::vector<std::string> Template::Variables() const {
  std::vector<std::string> names;
  for (const Piece& piece : pieces_) {
    if (piece.variable) names.push_back(piece.text);
  }
  return names;
}

}  // namespace kernelwright::diagnose
