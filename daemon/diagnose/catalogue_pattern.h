// Patterns of the catalogue: plain text with typed holes, for the errors of jax, the TPU compiler and the interpreter.
// "size {size:size} and limit {limit:size} exceeded" finds its words in an error and captures what stands in the holes.
// A regular expression would do the same, but this stays readable in a data file and is linear on the megabytes of text
// that a compiler can print.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::diagnose {

// What stood in the holes of the patterns that matched, and what was derived from it.
using Captures = std::map<std::string, std::string>;

class Pattern {
 public:
  // Literal text with holes "{name:kind}" or "{:kind}"; "{{" is a brace. Kinds: word (letters, digits and _ . - < >),
  // int, size (digits, point and a unit), group (balanced brackets), line (at least one character, up to what follows,
  // within a line). kUsage when the text is empty, starts with a line hole, or has an unknown kind.
  static Expected<Pattern> Parse(std::string_view text);

  struct Found {
    size_t end = 0;      // first byte behind the match
    size_t literal = 0;  // bytes of literal text that matched: how specific the pattern is
  };
  // First match that starts at or after `from`; captures are added only on success.
  std::optional<Found> Find(std::string_view text, size_t from, Captures& captures) const;

  const std::vector<std::string>& names() const { return names_; }

 private:
  enum class Kind { kLiteral, kWord, kInt, kSize, kGroup, kLine };
  struct Piece {
    Kind kind = Kind::kLiteral;
    std::string text;  // the literal, or the hole's name
  };
  static std::optional<Kind> KindOf(std::string_view name);
  static bool InClass(Kind kind, char c);
  bool MatchAt(std::string_view text, size_t at, size_t piece, size_t& end, Captures& captures) const;

  std::vector<Piece> pieces_;
  std::vector<std::string> names_;
  size_t literal_ = 0;
};

// Text for people made of captures: "{size|size} of VMEM, limit {limit|size}". Filters are names of functions that turn
// a compiler's notation into the user's (catalogue_text.h).
class Template {
 public:
  // kUsage for an unclosed brace or an unknown filter.
  static Expected<Template> Parse(std::string_view text);
  // Nothing when a variable has no value, or its filter does not understand the value.
  std::optional<std::string> Render(const Captures& captures) const;
  std::vector<std::string> Variables() const;

 private:
  struct Piece {
    bool variable = false;
    std::string text;  // the literal, or the variable
    std::string filter;
  };
  std::vector<Piece> pieces_;
};

}  // namespace kernelwright::diagnose
