// Compare, then write; see apply_edits.h.
#include "daemon/cli/apply_edits.h"

#include <unistd.h>

#include "daemon/base/files.h"
#include "daemon/base/hash.h"

namespace kernelwright::cli {

Expected<std::vector<Edit>> EditsFromJson(const nlohmann::json& edits) {
  std::vector<Edit> result;
  try {
    for (const nlohmann::json& edit : edits) {
      result.push_back({edit.at("file").get<std::string>(), edit.at("base_sha256").get<std::string>(),
                        edit.at("new_text").get<std::string>()});
    }
  } catch (const nlohmann::json::exception& error) {
    return Fail(ErrorKind::kInternal, std::string("the run's edits cannot be read: ") + error.what());
  }
  return result;
}

Status ApplyEdits(const std::vector<Edit>& edits, const std::string& run) {
  const std::string kept = "The run keeps the diff: 'kernelwright runs show " + run + " --diff'.";
  std::vector<std::string> before;
  std::vector<bool> wanted;
  for (const Edit& edit : edits) {
    Expected<std::string> now = ReadFile(edit.file);
    if (edit.base_sha256.empty() && !now && now.error().kind() == ErrorKind::kNotFound) {
      before.emplace_back();
      wanted.push_back(true);
      continue;
    }
    if (!now) {
      return Status(ErrorKind::kConflict,
                    "nothing was applied: the file cannot be read (" + now.error().message() + ")", edit.file, kept);
    }
    const bool applied = *now == edit.new_text;
    if (!applied && Sha256Hex(*now) != edit.base_sha256) {
      return Status(ErrorKind::kConflict, "nothing was applied: the file has changed since the run read it", edit.file,
                    kept + " Apply it by hand, or run again on the file as it is now.");
    }
    if (!applied && ::access(edit.file.c_str(), W_OK) != 0) {
      return Status(ErrorKind::kUsage, "nothing was applied: the file is read-only", edit.file,
                    "Make it writable and run 'kernelwright runs show " + run + " --apply'. " + kept);
    }
    before.push_back(std::move(*now));
    wanted.push_back(!applied);
  }
  for (size_t i = 0; i < edits.size(); ++i) {
    if (!wanted[i]) continue;
    const Status written = WriteFileAtomically(edits[i].file, edits[i].new_text);
    if (written.ok()) continue;
    // Back to the state before, but only where the file still is what was written a moment ago.
    for (size_t back = 0; back < i; ++back) {
      const Expected<std::string> now = ReadFile(edits[back].file);
      if (!wanted[back] || !now || *now != edits[back].new_text) continue;
      if (edits[back].base_sha256.empty()) {
        ::unlink(edits[back].file.c_str());  // it was not there before
        continue;
      }
      if (Status restored = WriteFileAtomically(edits[back].file, before[back]); !restored.ok()) {
        return Status(written.kind(), "only a part was applied: " + written.message(), edits[i].file,
                      "'" + edits[back].file + "' has the new text and could not be restored. " + kept);
      }
    }
    return Status(written.kind(), "nothing was applied: " + written.message(), written.where(),
                  written.remedy() + (written.remedy().empty() ? "" : " ") + kept);
  }
  return {};
}

}  // namespace kernelwright::cli
