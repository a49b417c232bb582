// See explain.h.
#include "daemon/diagnose/explain.h"

#include <optional>
#include <string_view>
#include <utility>

#include "daemon/base/text.h"

namespace kernelwright::diagnose {
namespace {

constexpr size_t kHeadline = 400;

// The whole of what was said, once.
std::string RawText(const CodeError& error) {
  std::string raw = error.type.empty() ? error.message : error.type + ": " + error.message;
  if (!error.cause.empty() && error.message.find(error.cause) == std::string::npos) {
    raw += "\n\nCaused by: " + error.cause;
  }
  return SanitizeUtf8(raw);
}

// First line of an error that the catalogue does not know; its text is shown whole below.
std::string Headline(const CodeError& error) {
  std::string line = error.type;
  for (const std::string_view candidate : SplitLines(error.message)) {
    if (Trim(candidate).empty()) continue;
    line += (line.empty() ? "" : ": ") + std::string(Trim(candidate));
    break;
  }
  return Truncate(SanitizeUtf8(line), kHeadline);
}

}  // namespace

std::vector<Diagnostic> Explain(const Catalogue& catalogue, const CodeError& error, const Locator& locator,
                                const std::vector<PallasCall>& calls, const std::vector<std::string>& chips,
                                Stage stage) {
  const std::string chip = chips.empty() ? std::string() : chips.front();
  std::optional<Match> match = catalogue.Best(error, chip, locator.SourceAround(error, calls));
  if (match && match->entry->hidden) return {};
  Captures captures = match ? std::move(match->captures) : Captures();
  const Entry* entry = match ? match->entry : nullptr;
  Locator::Found found = locator.Locate(error, entry, calls, captures);
  Diagnostic diagnostic;
  if (entry != nullptr) {
    diagnostic = catalogue.Make(entry->id, captures);
  } else {
    diagnostic.id = "D000";
    diagnostic.name = "unknown";
    diagnostic.message = Headline(error);
  }
  diagnostic.stage = stage;
  diagnostic.place = std::move(found.place);
  diagnostic.related = std::move(found.related);
  diagnostic.chips = chips;
  diagnostic.raw = RawText(error);
  return {std::move(diagnostic)};
}

std::vector<Diagnostic> Explain(const Catalogue& catalogue, const CodeError& error,
                                const std::map<std::string, std::string>& texts, const std::vector<PallasCall>& calls,
                                const std::vector<std::string>& chips, Stage stage) {
  return Explain(catalogue, error, Locator(texts), calls, chips, stage);
}

}  // namespace kernelwright::diagnose
