// Puts a run's edits into the user's files, if these still have the content that the edits were made from (invariant
// VersionedEdit). All or nothing; no other file is touched.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::cli {

struct Edit {
  std::string file;         // absolute path
  std::string base_sha256;  // of the content that the edit was made from
  std::string new_text;     // the whole new content
};

// The edits of `best.edits` in a result; kInternal when a field is missing.
Expected<std::vector<Edit>> EditsFromJson(const nlohmann::json& edits);

// Writes the files, each atomically, after all were compared. kConflict, with nothing written, when one has changed or
// cannot be written; `run` is named in the remedy, because the run keeps the diff.
Status ApplyEdits(const std::vector<Edit>& edits, const std::string& run);

}  // namespace kernelwright::cli
