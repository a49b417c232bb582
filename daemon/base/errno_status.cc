// Error numbers to Status; see errno_status.h.
#include "daemon/base/errno_status.h"

#include <cerrno>
#include <system_error>

namespace kernelwright {

std::string ErrnoText(int error) { return std::generic_category().message(error); }

Status StatusFromErrno(int error, std::string what, std::string where) {
  std::string message = std::move(what) + ": " + ErrnoText(error);
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return Status(ErrorKind::kEnvironment, std::move(message), std::move(where),
                    "Free some disk space and try again; nothing was changed.");
    case EROFS:
    case EACCES:
    case EPERM:
      return Status(ErrorKind::kEnvironment, std::move(message), std::move(where),
                    "Check the owner and permissions of the path.");
    case ENOENT:
    case ENOTDIR:
      return Status(ErrorKind::kNotFound, std::move(message), std::move(where), "Check that the path exists.");
    case EMFILE:
    case ENFILE:
      return Status(ErrorKind::kEnvironment, std::move(message), std::move(where),
                    "Raise the limit on open files (ulimit -n).");
    case ENOMEM:
    case EAGAIN:
      return Status(ErrorKind::kEnvironment, std::move(message), std::move(where),
                    "The machine is out of memory or processes; end other work and try again.");
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP:
      return Status(ErrorKind::kUsage, std::move(message), std::move(where), "Check the path.");
    default:
      return Status(ErrorKind::kInternal, std::move(message), std::move(where));
  }
}

}  // namespace kernelwright
