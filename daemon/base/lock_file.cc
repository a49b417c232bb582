// flock(2) on a descriptor that no child inherits; see lock_file.h.
#include "daemon/base/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>
#include <thread>

#include "daemon/base/errno_status.h"
#include "daemon/base/files.h"

namespace kernelwright {
namespace {

int FlockRetrying(int fd, int operation) {
  int result = 0;
  do {
    result = ::flock(fd, operation);
  } while (result != 0 && errno == EINTR);
  return result;
}

pid_t ReadPid(int fd) {
  char buffer[32];
  const ssize_t got = ::pread(fd, buffer, sizeof(buffer), 0);
  pid_t pid = 0;
  if (got > 0) std::from_chars(buffer, buffer + got, pid);
  return pid;
}

}  // namespace

Expected<LockFile::Attempt> LockFile::TryLock(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return Fail(StatusFromErrno(errno, "cannot open the lock", path.string()));
  if (FlockRetrying(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Fail(StatusFromErrno(errno, "cannot lock", path.string()));
    return Attempt(Held{ReadPid(fd.get())});
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return Fail(StatusFromErrno(errno, "cannot write the lock's owner", path.string()));
  }
  return Attempt(LockFile(std::move(fd)));
}

Expected<LockFile> LockFile::Lock(const std::filesystem::path& path, const Deadline& deadline) {
  auto wait = std::chrono::milliseconds(1);
  while (true) {
    Expected<Attempt> result = TryLock(path);
    if (!result) return Fail(result.error());
    if (auto* lock = std::get_if<LockFile>(&*result)) return std::move(*lock);
    if (deadline.expired()) {
      return Fail(ErrorKind::kConflict, "the lock is held by process " + std::to_string(std::get<Held>(*result).pid),
                  path.string(), "Wait for that process to end, or end it.");
    }
    // flock has no timeout of its own; the back-off bounds both delay and load.
    std::this_thread::sleep_for(std::min(wait, deadline.Remaining()));
    wait = std::min(wait * 2, std::chrono::milliseconds(20));
  }
}

Expected<pid_t> LockFile::Holder(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) {
    if (errno == ENOENT) return 0;
    return Fail(StatusFromErrno(errno, "cannot open the lock", path.string()));
  }
  if (FlockRetrying(fd.get(), LOCK_SH | LOCK_NB) == 0) return 0;
  if (errno != EWOULDBLOCK) return Fail(StatusFromErrno(errno, "cannot look at the lock", path.string()));
  return ReadPid(fd.get());
}

}  // namespace kernelwright
