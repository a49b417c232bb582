// Ctrl-C as an event: the signals are blocked in every thread and read by one, so that a handler may do anything.
#pragma once

#include <functional>
#include <thread>

namespace kernelwright::cli {

// Blocks SIGINT and SIGTERM; called before any thread is started, so that all inherit it. Ignores SIGPIPE.
void BlockInterrupts();

// Calls `on_interrupt(n)` for the n-th SIGINT or SIGTERM, on a thread of its own, until it is destroyed.
class InterruptWatcher {
 public:
  explicit InterruptWatcher(std::function<void(int count)> on_interrupt);
  ~InterruptWatcher();
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;

 private:
  std::thread thread_;
  int wake_ = -1;
};

}  // namespace kernelwright::cli
