// Owner of one file descriptor: closes it exactly once. Every descriptor we open is close-on-exec, so that no child
// inherits a pipe end and keeps another child's end-of-file from coming.
#pragma once

#include <unistd.h>

#include <utility>

#include "daemon/base/status.h"

namespace kernelwright {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

// A new pipe, both ends close-on-exec. Fails when the descriptor table is full.
Expected<Pipe> MakePipe();

}  // namespace kernelwright
