// Pipes with close-on-exec; see unique_fd.h.
#include "daemon/base/unique_fd.h"

#include <fcntl.h>

#include <cerrno>

#include "daemon/base/errno_status.h"

namespace kernelwright {

Expected<Pipe> MakePipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return Fail(StatusFromErrno(errno, "cannot make a pipe"));
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

}  // namespace kernelwright
