// Splits at the last "::"; see target.h.
#include "daemon/cli/target.h"

#include <filesystem>

namespace kernelwright::cli {

Expected<Target> ParseTarget(const std::string& text) {
  Target target;
  std::string file = text;
  if (const size_t at = text.rfind("::"); at != std::string::npos) {
    file = text.substr(0, at);
    target.function = text.substr(at + 2);
    if (target.function.empty()) {
      return Fail(ErrorKind::kUsage, "no function is named after '::'", text, "Write FILE.py::function.");
    }
  }
  if (file.empty()) return Fail(ErrorKind::kUsage, "no file is named", text, "Write FILE.py::function.");
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(file, error);
  if (error) {
    return Fail(ErrorKind::kEnvironment, "the current folder does not exist any more", file,
                "Change to another folder.");
  }
  target.file = absolute.lexically_normal().string();
  return target;
}

}  // namespace kernelwright::cli
