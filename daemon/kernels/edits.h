// Edits of a text by byte range, applied all or none; everything outside the ranges stays byte for byte.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"
#include "daemon/kernels/syntax.h"

namespace kernelwright::kernels {

struct TextEdit {
  std::string file;
  ByteRange range;  // empty: an insertion
  std::string replacement;
  std::string base_hash;  // Sha256Hex of the whole text that the range was found in
};

// Applies edits of one file to `text`, in any order; `path` picks the edits of that file. Two insertions at one place
// keep their order. kConflict when an edit was made from another text or two edits overlap; kInternal for a range
// outside the text. On failure nothing is changed.
Expected<std::string> ApplyEdits(std::string_view path, std::string_view text, const std::vector<TextEdit>& edits);

// The same for several files: path -> text in, path -> new text of the files that the edits change out. kNotFound for
// an edit of a file that is not in `texts`.
Expected<std::map<std::string, std::string>> ApplyEdits(const std::map<std::string, std::string>& texts,
                                                        const std::vector<TextEdit>& edits);

}  // namespace kernelwright::kernels
