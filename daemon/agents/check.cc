// See check.h.
#include "daemon/agents/check.h"

#include <algorithm>

namespace kernelwright::agents {

bool CheckResult::has_errors() const {
  return std::any_of(diagnostics.begin(), diagnostics.end(), [](const diagnose::Diagnostic& diagnostic) {
    return diagnostic.severity == diagnose::Severity::kError;
  });
}

int CheckExitCode(const CheckResult& result) {
  if (result.failure.kind() == ErrorKind::kCancelled) return ExitCode(ErrorKind::kCancelled);
  if (result.has_errors()) return ExitCode(ErrorKind::kUserCode);
  return result.failure.ok() ? 0 : ExitCode(result.failure.kind());
}

std::string CheckStatusName(const CheckResult& result) {
  if (result.failure.kind() == ErrorKind::kCancelled) return "cancelled";
  if (result.has_errors()) return "errors";
  return result.failure.ok() ? "clean" : "incomplete";
}

}  // namespace kernelwright::agents
