// A descriptor that becomes readable when a stop is requested, so that poll(2) can wait for a stop as for anything
// else: closing a descriptor under a blocked thread is not defined to wake it.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <stop_token>

#include "daemon/base/unique_fd.h"

namespace kernelwright::worker {

class StopFd {
 public:
  explicit StopFd(const std::stop_token& stop) {
    if (!stop.stop_possible()) return;
    event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (event_.valid()) callback_.emplace(stop, Signal{event_.get()});
  }

  // -1, which poll(2) ignores, when no stop can come.
  int fd() const { return event_.get(); }

 private:
  struct Signal {
    int fd;
    void operator()() const {
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
    }
  };
  UniqueFd event_;
  std::optional<std::stop_callback<Signal>> callback_;  // declared last: it is gone before the descriptor is closed
};

}  // namespace kernelwright::worker
