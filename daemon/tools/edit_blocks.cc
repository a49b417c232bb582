// See edit_blocks.h.
#include "daemon/tools/edit_blocks.h"

#include <algorithm>
#include <optional>

#include "daemon/base/text.h"

namespace kernelwright::tools {
namespace {

// A block that restates most of a long file is a rewrite in disguise: it hides what changes and loses what was there.
constexpr size_t kLongFile = 60;

std::string_view TrimEnd(std::string_view line) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) line.remove_suffix(1);
  return line;
}

std::string_view Indentation(std::string_view line) {
  const size_t end = line.find_first_not_of(" \t");
  return line.substr(0, end == std::string_view::npos ? line.size() : end);
}

struct Match {
  size_t first = 0;  // line, from 0
  size_t count = 0;
  std::string how;
  std::string old_indent;  // of "indentation": what the block has in front of its lines …
  std::string new_indent;  // … and what the text has
};

bool EqualAt(const std::vector<std::string_view>& lines, size_t at, const std::vector<std::string_view>& search,
             bool (*equal)(std::string_view, std::string_view)) {
  for (size_t i = 0; i < search.size(); ++i) {
    if (!equal(lines[at + i], search[i])) return false;
  }
  return true;
}

// The search lines with one indentation exchanged for another give the lines of the text.
std::optional<Match> ShiftedAt(const std::vector<std::string_view>& lines, size_t at,
                               const std::vector<std::string_view>& search) {
  std::optional<std::pair<std::string_view, std::string_view>> shift;
  for (size_t i = 0; i < search.size(); ++i) {
    const std::string_view have = TrimEnd(lines[at + i]);
    const std::string_view want = TrimEnd(search[i]);
    if (have.empty() && want.empty()) continue;
    if (have.substr(Indentation(have).size()) != want.substr(Indentation(want).size())) return std::nullopt;
    if (!shift) {
      // The common tail of both indentations stays; what is in front of it is exchanged.
      std::string_view old_indent = Indentation(want);
      std::string_view new_indent = Indentation(have);
      if (new_indent.ends_with(old_indent)) {
        shift = {"", new_indent.substr(0, new_indent.size() - old_indent.size())};
      } else if (old_indent.ends_with(new_indent)) {
        shift = {old_indent.substr(0, old_indent.size() - new_indent.size()), ""};
      } else {
        return std::nullopt;
      }
    }
    if (!want.starts_with(shift->first) ||
        have != std::string(shift->second) + std::string(want.substr(shift->first.size()))) {
      return std::nullopt;
    }
  }
  if (!shift) return std::nullopt;
  return Match{at, search.size(), "indentation", std::string(shift->first), std::string(shift->second)};
}

std::vector<Match> FindAll(const std::vector<std::string_view>& lines, const std::vector<std::string_view>& search) {
  std::vector<Match> found;
  if (search.empty() || search.size() > lines.size()) return found;
  const size_t last = lines.size() - search.size();
  for (size_t at = 0; at <= last; ++at) {
    if (EqualAt(lines, at, search, [](std::string_view a, std::string_view b) { return a == b; })) {
      found.push_back({at, search.size(), "exact", {}, {}});
    }
  }
  if (!found.empty()) return found;
  for (size_t at = 0; at <= last; ++at) {
    if (EqualAt(lines, at, search, [](std::string_view a, std::string_view b) { return TrimEnd(a) == TrimEnd(b); })) {
      found.push_back({at, search.size(), "blanks", {}, {}});
    }
  }
  if (!found.empty()) return found;
  for (size_t at = 0; at <= last; ++at) {
    if (auto match = ShiftedAt(lines, at, search)) found.push_back(*match);
  }
  return found;
}

// Where most of the searched lines are, for the message.
std::string Closest(const std::vector<std::string_view>& lines, const std::vector<std::string_view>& search) {
  size_t best_score = 0;
  size_t best_at = 0;
  for (size_t at = 0; at < lines.size(); ++at) {
    size_t score = 0;
    for (size_t i = 0; i < search.size() && at + i < lines.size(); ++i) {
      const std::string_view want = Trim(search[i]);
      if (!want.empty() && Trim(lines[at + i]) == want) score += 2;
      if (!want.empty() && want.size() < 200 && lines[at + i].size() < 200 && score == 0 && i == 0 &&
          EditDistance(Trim(lines[at + i]), want) * 4 <= want.size()) {
        score += 1;
      }
    }
    if (score > best_score) {
      best_score = score;
      best_at = at;
    }
  }
  if (best_score == 0) return {};
  std::string text = " The closest lines are:";
  for (size_t i = best_at; i < std::min(lines.size(), best_at + std::min<size_t>(search.size(), 12)); ++i) {
    text += "\n" + std::to_string(i + 1) + "| " + Truncate(lines[i], 160);
  }
  return text;
}

std::string Positions(const std::vector<Match>& matches) {
  std::vector<std::string> lines;
  for (const Match& match : matches) {
    if (lines.size() == 8) break;
    lines.push_back(std::to_string(match.first + 1));
  }
  return Join(lines, ", ");
}

// Chooses the one match, or says in `why` why there is none.
std::optional<Match> Choose(const std::vector<std::string_view>& lines, const EditBlock& block, std::string* why) {
  const std::vector<std::string_view> search = SplitLines(block.search);
  if (Trim(block.search).empty()) {
    *why = "`search` is empty, but the file has text: name the lines that are to be replaced";
    return std::nullopt;
  }
  if (lines.size() > kLongFile && search.size() * 2 > lines.size()) {
    *why =
        "the block restates more than half of the file: use smaller blocks, each with the lines that change and two "
        "or three around them";
    return std::nullopt;
  }
  std::vector<Match> matches = FindAll(lines, search);
  if (block.line > 0 && matches.size() > 1) {
    std::erase_if(matches, [&](const Match& match) { return match.first + 1 != static_cast<size_t>(block.line); });
    if (matches.empty()) {
      *why = "the searched lines do not start at line " + std::to_string(block.line);
      return std::nullopt;
    }
  }
  if (matches.empty()) {
    *why = "the searched lines are not in the file." + Closest(lines, search);
    return std::nullopt;
  }
  if (matches.size() > 1) {
    *why = "the searched lines are in the file " + std::to_string(matches.size()) + " times, at lines " +
           Positions(matches) + ": add lines around them, or say which with `line`";
    return std::nullopt;
  }
  return matches.front();
}

std::string LineEnd(std::string_view text) {
  const size_t at = text.find('\n');
  return at != std::string_view::npos && at > 0 && text[at - 1] == '\r' ? "\r\n" : "\n";
}

// The new lines in the text's own form.
std::string Replacement(const EditBlock& block, const Match& match, const std::string& line_end, bool end_of_line) {
  std::string result;
  const std::vector<std::string_view> lines = SplitLines(block.replace);
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string line(lines[i]);
    if (match.how == "indentation" && !Trim(line).empty()) {
      if (line.starts_with(match.old_indent)) line.erase(0, match.old_indent.size());
      line = match.new_indent + line;
    }
    result += line;
    if (i + 1 < lines.size() || end_of_line) result += line_end;
  }
  return result;
}

}  // namespace

bool EditOutcome::all_applied() const {
  return std::all_of(outcomes.begin(), outcomes.end(), [](const BlockOutcome& outcome) { return outcome.applied; });
}

EditOutcome ApplyBlocks(std::string_view text, const std::vector<EditBlock>& blocks) {
  EditOutcome result;
  result.outcomes.resize(blocks.size());
  if (text.empty()) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i == 0 && Trim(blocks[i].search).empty()) {
        result.text = blocks[i].replace;
        if (!result.text.empty() && !result.text.ends_with('\n')) result.text += '\n';
        result.outcomes[i] = {.applied = true, .why = {}, .how = "exact", .first_line = 1, .last_line = 1};
      } else {
        result.outcomes[i].why = "the file has no text yet: use one block with an empty `search`";
      }
    }
    return result;
  }
  const std::vector<std::string_view> lines = SplitLines(text);
  struct Placed {
    Match match;
    size_t block;
  };
  std::vector<Placed> placed;
  for (size_t i = 0; i < blocks.size(); ++i) {
    BlockOutcome& outcome = result.outcomes[i];
    const std::optional<Match> match = Choose(lines, blocks[i], &outcome.why);
    if (!match) continue;
    const auto overlaps = [&](const Placed& other) {
      return match->first < other.match.first + other.match.count && other.match.first < match->first + match->count;
    };
    if (const auto other = std::find_if(placed.begin(), placed.end(), overlaps); other != placed.end()) {
      outcome.why = "it overlaps block " + std::to_string(other->block + 1) + ": make one block of both";
      continue;
    }
    outcome.applied = true;
    outcome.how = match->how;
    outcome.first_line = static_cast<int>(match->first) + 1;
    outcome.last_line = static_cast<int>(match->first + match->count);
    placed.push_back({*match, i});
  }
  std::sort(placed.begin(), placed.end(),
            [](const Placed& a, const Placed& b) { return a.match.first < b.match.first; });

  const std::string line_end = LineEnd(text);
  const auto offset = [&](size_t line) {
    return line < lines.size() ? static_cast<size_t>(lines[line].data() - text.data()) : text.size();
  };
  size_t at = 0;
  for (const Placed& place : placed) {
    const size_t begin = offset(place.match.first);
    const size_t end = offset(place.match.first + place.match.count);
    result.text += text.substr(at, begin - at);
    // A last line without an end stays without one.
    const bool end_of_line = end < text.size() || text.ends_with('\n');
    result.text += Replacement(blocks[place.block], place.match, line_end, end_of_line);
    at = end;
  }
  result.text += text.substr(at);
  return result;
}

}  // namespace kernelwright::tools
