// See check_fix.h.
#include "daemon/cli/check_fix.h"

#include <algorithm>
#include <utility>

#include "daemon/base/files.h"
#include "daemon/kernels/edits.h"

namespace kernelwright::cli {
namespace {

bool Same(const kernels::TextEdit& a, const kernels::TextEdit& b) {
  return a.file == b.file && a.range == b.range && a.replacement == b.replacement;
}

}  // namespace

Expected<FixedTexts> ApplyFixes(const std::vector<diagnose::Diagnostic>& diagnostics, const Texts& texts, size_t most) {
  FixedTexts fixed;
  std::vector<kernels::TextEdit> edits;
  Texts after;
  for (const diagnose::Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.fixes.empty() || fixed.titles.size() >= most) continue;
    const diagnose::Fix& fix = diagnostic.fixes.front();
    std::vector<kernels::TextEdit> more = edits;
    for (const kernels::TextEdit& edit : fix.edits) {
      if (std::none_of(edits.begin(), edits.end(), [&](const auto& other) { return Same(edit, other); })) {
        more.push_back(edit);
      }
    }
    if (more.size() == edits.size()) continue;  // the same fix again
    auto applied = kernels::ApplyEdits(texts, more);
    if (!applied) {
      if (edits.empty()) return Fail(applied.error());
      continue;  // it overlaps with one that is taken: the next check offers it again
    }
    edits = std::move(more);
    after = *std::move(applied);
    fixed.titles.push_back(fix.title);
  }
  for (auto& [path, text] : after) {
    fixed.before[path] = texts.at(path);
    fixed.after[path] = std::move(text);
  }
  return fixed;
}

Status WriteFixed(const FixedTexts& fixed) {
  for (const auto& [path, text] : fixed.before) {
    auto now = ReadFile(path);
    if (!now) return now.error();
    if (*now != text) {
      return Status(ErrorKind::kConflict, "nothing was applied: the file has changed since it was checked", path,
                    "Run the command again.");
    }
  }
  std::vector<std::string> written;
  for (const auto& [path, text] : fixed.after) {
    const Status status = WriteFileAtomically(path, text);
    if (status.ok()) {
      written.push_back(path);
      continue;
    }
    for (const std::string& back : written) {
      // Back to the state before, but only where the file still is what was written a moment ago.
      const auto now = ReadFile(back);
      if (now && *now == fixed.after.at(back)) (void)WriteFileAtomically(back, fixed.before.at(back));
    }
    return Status(status.kind(), "nothing was applied: " + status.message(), path, status.remedy());
  }
  return {};
}

}  // namespace kernelwright::cli
