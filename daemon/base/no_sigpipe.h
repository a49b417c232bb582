// Keeps a write to a closed pipe or socket from raising SIGPIPE in this process, also when a library makes it: the
// signal is blocked for this thread as long as the guard lives, and taken away when it came.
#pragma once

#include <csignal>

namespace kernelwright {

class NoSigpipe {
 public:
  NoSigpipe();
  ~NoSigpipe();
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_ = false;
};

}  // namespace kernelwright
