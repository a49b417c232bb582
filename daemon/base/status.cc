// Names and exit codes of error kinds; see status.h.
#include "daemon/base/status.h"

namespace kernelwright {

std::string_view ErrorKindName(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kOk:
      return "ok";
    case ErrorKind::kUserCode:
      return "user_code";
    case ErrorKind::kUsage:
      return "usage";
    case ErrorKind::kEnvironment:
      return "environment";
    case ErrorKind::kCancelled:
      return "cancelled";
    case ErrorKind::kLimit:
      return "limit";
    case ErrorKind::kConflict:
      return "conflict";
    case ErrorKind::kNotFound:
      return "not_found";
    case ErrorKind::kInternal:
      return "internal";
  }
  return "internal";
}

int ExitCode(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kOk:
      return 0;
    case ErrorKind::kUserCode:
      return 1;
    case ErrorKind::kUsage:
    case ErrorKind::kConflict:
    case ErrorKind::kNotFound:
      return 2;
    case ErrorKind::kEnvironment:
      return 3;
    case ErrorKind::kCancelled:
    case ErrorKind::kLimit:
      return 4;
    case ErrorKind::kInternal:
      return 5;
  }
  return 5;
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  std::string text = where_.empty() ? message_ : where_ + ": " + message_;
  if (!remedy_.empty()) {
    if (!text.empty() && text.back() != '.') text += '.';
    text += ' ' + remedy_;
  }
  return text;
}

}  // namespace kernelwright
