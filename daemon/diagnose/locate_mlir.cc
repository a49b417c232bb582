// Reads MLIR locations in compiler texts; see locate.h.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/diagnose/locate.h"

namespace kernelwright::diagnose {
namespace {

// Reads digits at `at`; 0 and no progress when there are none.
int ReadInt(std::string_view text, size_t& at) {
  int value = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9' && value < 100'000'000)
    value = value * 10 + (text[at++] - '0');
  return value;
}

bool Skip(std::string_view text, size_t& at, std::string_view what) {
  if (text.substr(at, what.size()) != what) return false;
  at += what.size();
  return true;
}

// The quoted text that ends just before `end` ("…"( ), or empty.
std::string_view QuotedBefore(std::string_view text, size_t end) {
  if (end < 2 || text[end - 1] != '(' || text[end - 2] != '"') return {};
  const size_t open = text.rfind('"', end - 3);
  return open == std::string_view::npos ? std::string_view() : text.substr(open + 1, end - 3 - open);
}

}  // namespace

std::vector<SourceSpan> FramesOfLocations(std::string_view text) {
  std::vector<SourceSpan> frames;
  constexpr std::string_view kEnd = ".py\":";
  for (size_t at = text.find(kEnd); at != std::string_view::npos; at = text.find(kEnd, at)) {
    const size_t open = text.rfind('"', at);
    at += kEnd.size();
    if (open == std::string_view::npos) continue;
    SourceSpan span;
    span.file = std::string(text.substr(open + 1, at - 2 - (open + 1)));
    span.function = std::string(QuotedBefore(text, open));
    span.line = ReadInt(text, at);
    if (span.line == 0 || !Skip(text, at, ":")) continue;
    span.column = ReadInt(text, at) + 1;
    span.end_line = span.line;
    if (Skip(text, at, " to ")) {
      if (text.substr(at, 1) != ":") span.end_line = ReadInt(text, at);
      if (Skip(text, at, ":")) span.end_column = ReadInt(text, at) + 1;
    }
    const bool same = !frames.empty() && frames.back().file == span.file && frames.back().line == span.line &&
                      frames.back().column == span.column;
    if (!same) frames.push_back(std::move(span));
  }
  return frames;
}

}  // namespace kernelwright::diagnose
