// A hand-written scanner, linear in the text: regular expressions of the standard library recurse and could be driven
// into a crash by a long log line. See redact.h.
#include "daemon/base/redact.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <mutex>

#include "daemon/base/base64.h"
#include "nlohmann/json.hpp"

namespace kernelwright {
namespace {

constexpr std::string_view kHidden = "[redacted]";

struct KeyShape {
  std::string_view prefix;
  size_t least;  // characters after the prefix
};
// Prefixes that providers document for their keys and tokens.
constexpr std::array<KeyShape, 17> kShapes = {{{"sk-", 16},
                                               {"AIza", 20},
                                               {"ghp_", 16},
                                               {"gho_", 16},
                                               {"ghu_", 16},
                                               {"ghs_", 16},
                                               {"ghr_", 16},
                                               {"github_pat_", 16},
                                               {"glpat-", 16},
                                               {"hf_", 20},
                                               {"xoxb-", 10},
                                               {"xoxp-", 10},
                                               {"ya29.", 16},
                                               {"AKIA", 16},
                                               {"nvapi-", 16},
                                               {"gsk_", 20},
                                               {"pypi-", 30}}};

// Names whose value is hidden when "=" or ":" follows. Matched without regard to case, '-' and '_' being equal.
constexpr std::array<std::string_view, 13> kNames = {
    "api_key",    "apikey",        "access_token",   "auth_token", "refresh_token",       "client_secret",
    "secret_key", "private_token", "x_goog_api_key", "password",   "proxy_authorization", "authorization",
    "cookie"};

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsKeyChar(char c) { return IsWord(c) || c == '-' || c == '.'; }
bool IsBlank(char c) { return c == ' ' || c == '\t'; }
bool IsQuote(char c) { return c == '"' || c == '\'' || c == '`'; }

char Fold(char c) {
  if (c == '-') return '_';
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool MatchesFolded(std::string_view text, size_t at, std::string_view name) {
  if (at + name.size() > text.size()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    if (Fold(text[at + i]) != name[i]) return false;
  }
  return true;
}

struct Span {
  size_t begin = 0;
  size_t end = 0;  // begin == end: nothing found
};

// A provider's key starting at `at`.
Span MatchShape(std::string_view text, size_t at) {
  for (const KeyShape& shape : kShapes) {
    if (text.substr(at, shape.prefix.size()) != shape.prefix) continue;
    size_t end = at + shape.prefix.size();
    while (end < text.size() && IsKeyChar(text[end])) ++end;
    if (end - at - shape.prefix.size() >= shape.least) return {at, end};
  }
  return {};
}

// "Bearer TOKEN" or "Basic TOKEN" starting at `at`: the span of the token.
Span MatchScheme(std::string_view text, size_t at) {
  for (std::string_view scheme : {std::string_view("bearer"), std::string_view("basic")}) {
    if (!MatchesFolded(text, at, scheme)) continue;
    size_t begin = at + scheme.size();
    if (begin >= text.size() || !IsBlank(text[begin])) continue;
    while (begin < text.size() && IsBlank(text[begin])) ++begin;
    size_t end = begin;
    while (end < text.size() &&
           (IsKeyChar(text[end]) || text[end] == '+' || text[end] == '/' || text[end] == '=' || text[end] == '~')) {
      ++end;
    }
    if (end - begin >= 8) return {begin, end};
  }
  return {};
}

// NAME=VALUE, "NAME": "VALUE", NAME: VALUE starting at `at`: the span of the value.
Span MatchName(std::string_view text, size_t at) {
  for (std::string_view name : kNames) {
    if (!MatchesFolded(text, at, name)) continue;
    size_t i = at + name.size();
    while (i < text.size() && (IsQuote(text[i]) || text[i] == '\\' || text[i] == ']')) ++i;
    while (i < text.size() && IsBlank(text[i])) ++i;
    if (i >= text.size() || (text[i] != '=' && text[i] != ':')) continue;
    ++i;
    while (i < text.size() && IsBlank(text[i])) ++i;
    while (i < text.size() && text[i] == '\\') ++i;
    const char quote = i < text.size() && IsQuote(text[i]) ? text[i] : '\0';
    if (quote != '\0') ++i;
    // A header's value runs to the end of the line, an unquoted argument to the next blank or separator.
    const bool header = name.ends_with("authorization") || name == "cookie";
    size_t end = i;
    while (end < text.size() && text[end] != '\n' && text[end] != '\r') {
      const char c = text[end];
      if (quote != '\0' ? (c == quote || c == '\\') : IsQuote(c)) break;
      if (quote == '\0' && !header && (IsBlank(c) || c == '&' || c == ',' || c == ';' || c == ')' || c == '}')) break;
      ++end;
    }
    if (end > i) return {i, end};
  }
  return {};
}

std::string HideShapes(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  size_t at = 0;
  while (at < text.size()) {
    // '_' joins words in names (OPENAI_API_KEY=…), so the boundary for names is weaker than the one for key shapes.
    const bool word_start = at == 0 || std::isalnum(static_cast<unsigned char>(text[at - 1])) == 0;
    if (word_start) {
      Span span = MatchShape(text, at);
      if (span.begin == span.end) span = MatchName(text, at);
      if (span.begin == span.end) span = MatchScheme(text, at);
      if (span.begin != span.end) {
        result.append(text.substr(at, span.begin - at)).append(kHidden);
        at = span.end;
        continue;
      }
    }
    result += text[at++];
  }
  return result;
}

std::string PercentEncode(std::string_view value) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string result;
  for (char c : value) {
    if (IsKeyChar(c) || c == '~') {
      result += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      result += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return result;
}

void HideAll(std::string& text, std::string_view what) {
  size_t at = 0;
  while ((at = text.find(what, at)) != std::string::npos) {
    text.replace(at, what.size(), kHidden);
    at += kHidden.size();
  }
}

}  // namespace

void Redactor::AddSecret(std::string_view value) {
  if (value.size() < 6) return;
  Secret secret{std::string(value), {std::string(value)}};
  const std::string quoted = nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (std::string form : {quoted.substr(1, quoted.size() - 2), PercentEncode(value), Base64Encode(value)}) {
    if (std::find(secret.forms.begin(), secret.forms.end(), form) == secret.forms.end()) {
      secret.forms.push_back(std::move(form));
    }
  }
  // Longest first: hiding a short form first could leave the tail of a longer one.
  std::sort(secret.forms.begin(), secret.forms.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  std::unique_lock lock(mutex_);
  for (const Secret& known : secrets_) {
    if (known.value == value) return;
  }
  secrets_.push_back(std::move(secret));
  std::sort(secrets_.begin(), secrets_.end(),
            [](const Secret& a, const Secret& b) { return a.value.size() > b.value.size(); });
}

void Redactor::RemoveSecret(std::string_view value) {
  std::unique_lock lock(mutex_);
  std::erase_if(secrets_, [&](const Secret& secret) { return secret.value == value; });
}

std::string Redactor::RedactRegistered(std::string_view text) const {
  std::string result(text);
  std::shared_lock lock(mutex_);
  for (const Secret& secret : secrets_) {
    for (const std::string& form : secret.forms) HideAll(result, form);
  }
  return result;
}

std::string Redactor::Redact(std::string_view text) const { return HideShapes(RedactRegistered(text)); }

Redactor& ProcessRedactor() {
  static Redactor& redactor = *new Redactor();  // never destroyed: threads may log while the process ends
  return redactor;
}

}  // namespace kernelwright
