// signalfd and a thread; see interrupt.h.
#include "daemon/cli/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "daemon/base/unique_fd.h"

namespace kernelwright::cli {
namespace {

sigset_t Interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

void BlockInterrupts() {
  const sigset_t set = Interrupts();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

InterruptWatcher::InterruptWatcher(std::function<void(int count)> on_interrupt) : wake_(::eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([this, handler = std::move(on_interrupt)] {
    const sigset_t set = Interrupts();
    const UniqueFd signals(::signalfd(-1, &set, SFD_CLOEXEC));
    int count = 0;
    while (true) {
      pollfd wait[2] = {{signals.get(), POLLIN, 0}, {wake_, POLLIN, 0}};
      if (::poll(wait, 2, -1) < 0) continue;
      if (wait[1].revents != 0) return;
      signalfd_siginfo info{};
      if (::read(signals.get(), &info, sizeof(info)) == sizeof(info)) handler(++count);
    }
  });
}

InterruptWatcher::~InterruptWatcher() {
  const uint64_t one = 1;
  // An eventfd takes a one as long as it is open.
  if (::write(wake_, &one, sizeof(one)) == sizeof(one)) thread_.join();
  ::close(wake_);
}

}  // namespace kernelwright::cli
