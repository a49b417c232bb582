// Ordered application of non-overlapping edits; see edits.h.
#include "daemon/kernels/edits.h"

#include <algorithm>

#include "daemon/base/hash.h"

namespace kernelwright::kernels {

Expected<std::string> ApplyEdits(std::string_view path, std::string_view text, const std::vector<TextEdit>& edits) {
  std::vector<const TextEdit*> ordered;
  for (const TextEdit& edit : edits) {
    if (edit.file == path) ordered.push_back(&edit);
  }
  if (ordered.empty()) return std::string(text);
  const std::string hash = Sha256Hex(text);
  for (const TextEdit* edit : ordered) {
    if (edit->base_hash != hash) {
      return Fail(ErrorKind::kConflict, "the file has changed since the edit was made", std::string(path),
                  "Run the command again on the present text");
    }
    if (edit->range.begin > edit->range.end || edit->range.end > text.size()) {
      return Fail(ErrorKind::kInternal,
                  "an edit reaches beyond the text: bytes " + std::to_string(edit->range.begin) + " to " +
                      std::to_string(edit->range.end) + " of " + std::to_string(text.size()),
                  std::string(path));
    }
  }
  std::stable_sort(ordered.begin(), ordered.end(), [](const TextEdit* a, const TextEdit* b) {
    return std::pair(a->range.begin, a->range.end) < std::pair(b->range.begin, b->range.end);
  });
  std::string result;
  size_t copied = 0;
  for (const TextEdit* edit : ordered) {
    if (edit->range.begin < copied) {
      return Fail(ErrorKind::kConflict, "two edits overlap at byte " + std::to_string(edit->range.begin),
                  std::string(path), "Apply them one after the other");
    }
    result += text.substr(copied, edit->range.begin - copied);
    result += edit->replacement;
    copied = edit->range.end;
  }
  result += text.substr(copied);
  return result;
}

Expected<std::map<std::string, std::string>> ApplyEdits(const std::map<std::string, std::string>& texts,
                                                        const std::vector<TextEdit>& edits) {
  std::map<std::string, std::string> changed;
  for (const TextEdit& edit : edits) {
    if (changed.contains(edit.file)) continue;
    const auto text = texts.find(edit.file);
    if (text == texts.end()) {
      return Fail(ErrorKind::kNotFound, "an edit names a file whose text was not given", edit.file);
    }
    auto result = ApplyEdits(edit.file, text->second, edits);
    if (!result) return Fail(result.error());
    changed[edit.file] = *std::move(result);
  }
  return changed;
}

}  // namespace kernelwright::kernels
