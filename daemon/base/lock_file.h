// A lock that the kernel holds for a process and frees at its death, however it dies. It decides who serves: whoever
// has it is the daemon, whoever has not reads the holder's number and connects.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <variant>

#include "daemon/base/deadline.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"

namespace kernelwright {

class LockFile {
 public:
  // What TryLock says when another process has the lock. `pid` is 0 when the holder has not written it yet.
  struct Held {
    pid_t pid = 0;
  };

  // Takes the lock at once or says who has it. The file (mode 0600) is made if needed and never removed: removing it
  // would let a third process lock a new file of the same name beside the old one.
  using Attempt = std::variant<Held, LockFile>;
  static Expected<Attempt> TryLock(const std::filesystem::path& path);

  // Waits for the lock until the deadline; kConflict names the holder.
  static Expected<LockFile> Lock(const std::filesystem::path& path, const Deadline& deadline);

  // The process that holds the lock now; 0 when nobody does or the file does not exist.
  static Expected<pid_t> Holder(const std::filesystem::path& path);

  LockFile(LockFile&&) = default;
  LockFile& operator=(LockFile&&) = default;

 private:
  explicit LockFile(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;  // closing it frees the lock
};

}  // namespace kernelwright
