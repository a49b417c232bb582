// Unified diffs of texts, as `patch -p1` and `git apply` take them.
#pragma once

#include <string>
#include <string_view>

namespace kernelwright::kernels {

struct DiffStat {
  int added = 0;  // lines
  int removed = 0;
};

// Unified diff with headers `--- a/PATH` and `+++ b/PATH`; empty when the texts are equal. `path` is relative, with
// forward slashes. Lines are compared byte for byte, so a change of line ends shows. Shortest edit script (Myers) up to
// a limit of edits, beyond which the differing middle is shown as one replacement.
std::string UnifiedDiff(std::string_view path, std::string_view old_text, std::string_view new_text, int context = 3);

// The diff that creates a file, headed `--- /dev/null`.
std::string NewFileDiff(std::string_view path, std::string_view text);

// Lines that the diff of these texts adds and removes.
DiffStat CountChanges(std::string_view old_text, std::string_view new_text);

}  // namespace kernelwright::kernels
