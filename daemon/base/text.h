// Small string functions: splitting, joining, and the closest match for "did you mean".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelwright {

// Parts between separators; "a,,b" has three, "" has one empty part.
std::vector<std::string> Split(std::string_view text, char separator);

// Lines without their ends; "\n" and "\r\n" both end a line, and a last line without an end counts.
std::vector<std::string_view> SplitLines(std::string_view text);

// Lines with their ends; the last one may lack it. Joined they are the text again.
std::vector<std::string_view> SplitLinesWithEnds(std::string_view text);

// Without blanks, tabs and line ends at both sides.
std::string_view Trim(std::string_view text);

std::string Join(const std::vector<std::string>& parts, std::string_view separator);

// Every occurrence replaced, left to right, without looking at what was put in. An empty `what` changes nothing.
std::string ReplaceAll(std::string_view text, std::string_view what, std::string_view with);

// Only ASCII letters change.
std::string ToLowerAscii(std::string_view text);

// Least number of inserted, removed or changed bytes that turn one into the other.
size_t EditDistance(std::string_view a, std::string_view b);

// The candidate closest to `name`, without regard to case, if it is close enough to be a slip of the keyboard (at most
// a third of the name's length, at least 1). The first of equals wins.
std::optional<std::string> ClosestMatch(std::string_view name, const std::vector<std::string>& candidates);

// Bytes from a foreign program as valid UTF-8: each malformed byte becomes U+FFFD, and control characters other than
// tab and line end are dropped, so that no terminal is driven by them. A cut sequence at the end is malformed too.
std::string SanitizeUtf8(std::string_view bytes);

bool IsValidUtf8(std::string_view bytes);

// At most `max_bytes` bytes, cut at a character's boundary, with "…" in place of the rest when something was cut.
std::string Truncate(std::string_view text, size_t max_bytes);

}  // namespace kernelwright
