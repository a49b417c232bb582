// Myers' greedy difference over lines, grouped into hunks; see diff.h.
#include "daemon/kernels/diff.h"

#include <algorithm>
#include <vector>

#include "daemon/base/text.h"

namespace kernelwright::kernels {
namespace {

using Lines = std::vector<std::string_view>;

// Runs of lines: `old_count` lines at `old_begin` become `new_count` lines at `new_begin`.
struct Change {
  int old_begin = 0;
  int old_count = 0;
  int new_begin = 0;
  int new_count = 0;
};

// Memory of the search grows with the square of the number of edits; rewritten files beyond this are not worth it.
constexpr int kMaxEdits = 2000;

// For each old line whether it is removed, for each new line whether it is added.
void Mark(const Lines& a, const Lines& b, std::vector<bool>& removed, std::vector<bool>& added) {
  removed.assign(a.size(), false);
  added.assign(b.size(), false);
  int begin = 0;
  int end_a = static_cast<int>(a.size());
  int end_b = static_cast<int>(b.size());
  while (begin < end_a && begin < end_b && a[begin] == b[begin]) ++begin;
  while (end_a > begin && end_b > begin && a[end_a - 1] == b[end_b - 1]) {
    --end_a;
    --end_b;
  }
  const int n = end_a - begin;
  const int m = end_b - begin;
  const auto replace_all = [&] {
    std::fill(removed.begin() + begin, removed.begin() + end_a, true);
    std::fill(added.begin() + begin, added.begin() + end_b, true);
  };
  if (n == 0 || m == 0) return replace_all();

  // reach[d][k + d] is the furthest old line on diagonal k (old − new) after d edits.
  std::vector<std::vector<int>> reach;
  const int limit = std::min(n + m, kMaxEdits);
  bool found = false;
  for (int d = 0; d <= limit && !found; ++d) {
    std::vector<int> row(2 * d + 1);
    for (int k = -d; k <= d; k += 2) {
      int x = 0;
      if (d > 0) {
        const std::vector<int>& last = reach.back();
        const bool down = k == -d || (k != d && last[k - 1 + d - 1] < last[k + 1 + d - 1]);
        x = down ? last[k + 1 + d - 1] : last[k - 1 + d - 1] + 1;
      }
      int y = x - k;
      while (x < n && y >= 0 && y < m && a[begin + x] == b[begin + y]) {
        ++x;
        ++y;
      }
      row[k + d] = x;
      if (x >= n && y >= m) {
        found = true;
        break;
      }
    }
    reach.push_back(std::move(row));
  }
  if (!found) return replace_all();
  int x = n;
  int y = m;
  for (int d = static_cast<int>(reach.size()) - 1; d > 0; --d) {
    const std::vector<int>& last = reach[d - 1];
    const int k = x - y;
    const bool down = k == -d || (k != d && last[k - 1 + d - 1] < last[k + 1 + d - 1]);
    const int previous_k = down ? k + 1 : k - 1;
    const int previous_x = last[previous_k + d - 1];
    const int previous_y = previous_x - previous_k;
    if (down) {
      added[begin + previous_y] = true;
    } else {
      removed[begin + previous_x] = true;
    }
    x = previous_x;
    y = previous_y;
  }
}

std::vector<Change> Changes(const Lines& a, const Lines& b) {
  std::vector<bool> removed;
  std::vector<bool> added;
  Mark(a, b, removed, added);
  std::vector<Change> changes;
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if ((i < a.size() && removed[i]) || (j < b.size() && added[j])) {
      Change change{static_cast<int>(i), 0, static_cast<int>(j), 0};
      while (i < a.size() && removed[i]) ++i, ++change.old_count;
      while (j < b.size() && added[j]) ++j, ++change.new_count;
      changes.push_back(change);
    } else {
      ++i;
      ++j;
    }
  }
  return changes;
}

void AppendLine(char sign, std::string_view line, std::string& out) {
  out += sign;
  out += line;
  if (!line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
}

// "start,count" of a hunk header: an empty range names the line before it.
std::string Range(int begin, int count) {
  if (count == 1) return std::to_string(begin + 1);
  return std::to_string(count == 0 ? begin : begin + 1) + "," + std::to_string(count);
}

}  // namespace

std::string UnifiedDiff(std::string_view path, std::string_view old_text, std::string_view new_text, int context) {
  if (old_text == new_text) return {};
  const Lines a = SplitLinesWithEnds(old_text);
  const Lines b = SplitLinesWithEnds(new_text);
  const std::vector<Change> changes = Changes(a, b);
  std::string out = "--- a/" + std::string(path) + "\n+++ b/" + std::string(path) + "\n";
  for (size_t first = 0; first < changes.size();) {
    size_t last = first;
    while (last + 1 < changes.size() &&
           changes[last + 1].old_begin - (changes[last].old_begin + changes[last].old_count) <= 2 * context) {
      ++last;
    }
    const int before = std::min(context, changes[first].old_begin);
    const int old_end = changes[last].old_begin + changes[last].old_count;
    const int new_end = changes[last].new_begin + changes[last].new_count;
    const int after = std::min(context, static_cast<int>(a.size()) - old_end);
    const int old_begin = changes[first].old_begin - before;
    const int new_begin = changes[first].new_begin - before;
    out += "@@ -" + Range(old_begin, old_end + after - old_begin) + " +" +
           Range(new_begin, new_end + after - new_begin) + " @@\n";
    int line = old_begin;
    for (size_t c = first; c <= last; ++c) {
      for (; line < changes[c].old_begin; ++line) AppendLine(' ', a[line], out);
      for (int i = 0; i < changes[c].old_count; ++i) AppendLine('-', a[line++], out);
      for (int i = 0; i < changes[c].new_count; ++i) AppendLine('+', b[changes[c].new_begin + i], out);
    }
    for (; line < old_end + after; ++line) AppendLine(' ', a[line], out);
    first = last + 1;
  }
  return out;
}

std::string NewFileDiff(std::string_view path, std::string_view text) {
  std::string diff = UnifiedDiff(path, "", text);
  const std::string header = "--- a/" + std::string(path) + "\n";
  if (!diff.empty()) diff.replace(0, header.size(), "--- /dev/null\n");
  return diff;
}

DiffStat CountChanges(std::string_view old_text, std::string_view new_text) {
  DiffStat stat;
  for (const Change& change : Changes(SplitLinesWithEnds(old_text), SplitLinesWithEnds(new_text))) {
    stat.added += change.new_count;
    stat.removed += change.old_count;
  }
  return stat;
}

}  // namespace kernelwright::kernels
