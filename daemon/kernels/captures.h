// Recorded calls of functions (docs/capture.md): where they are kept, and the inputs text that a record stands for.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"
#include "daemon/kernels/inputs.h"
#include "daemon/kernels/syntax.h"

namespace kernelwright::kernels {

// Whether the module states its functions' inputs itself: it has create_inputs() or get_inputs().
bool SuppliesInputs(const SourceFile& source);

// Folder of all records below the state folder.
std::filesystem::path CapturesFolder(const std::filesystem::path& state_folder);

// The record of a function; `file` absolute, links resolved.
std::filesystem::path CaptureFile(const std::filesystem::path& captures, const std::string& file,
                                  const std::string& function);

struct CaptureSummary {
  std::vector<InputSpec> inputs;  // of the first call
  int calls = 0;                  // with different shapes or statics
  int values = 0;                 // arrays whose values were kept, over all calls
};

// Reads a record's JSON. kUserCode when an argument of the first call cannot be described, with its name.
Expected<CaptureSummary> ReadCapture(std::string_view json, const std::string& where);

// The inputs of a recorded function, or nothing when there is no record. `captures` empty: there are none.
Expected<std::optional<std::vector<InputSpec>>> CapturedInputs(const std::string& captures, const std::string& file,
                                                               const std::string& function);

}  // namespace kernelwright::kernels
