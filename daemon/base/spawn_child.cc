// See spawn_child.h. No allocation, no locks, no destructors in this file.
#include "daemon/base/spawn_child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace kernelwright::spawn {
namespace {

[[noreturn]] void Die(int failure_fd, Stage stage, int error) {
  const Failure failure{stage, error};
  [[maybe_unused]] const ssize_t ignored = ::write(failure_fd, &failure, sizeof(failure));
  ::_exit(127);
}

void CloseFrom(int first) {
  if (::syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0U) == 0) return;
  struct rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int last = limit.rlim_cur > 65536 ? 65536 : static_cast<int>(limit.rlim_cur);
  for (int fd = first; fd < last; ++fd) ::close(fd);
}

void ResetSignals() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace

void RunChild(const ChildPlan& plan) {
  int failure_fd = plan.failure_fd;
  ::close(plan.go_write);
  ::setpgid(0, 0);
  ResetSignals();
  // The thread that forked lives as long as the process, so this fires at the process's death only.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) ::_exit(127);
  char go = 0;
  ssize_t got = 0;
  do {
    got = ::read(plan.go_read, &go, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) ::_exit(127);

  // First move every source above all targets, so that no dup2 overwrites a source that is still needed.
  int above = 3;
  for (int i = 0; i < plan.mappings; ++i) {
    if (plan.target[i] >= above) above = plan.target[i] + 1;
  }
  failure_fd = ::fcntl(failure_fd, F_DUPFD_CLOEXEC, above);
  if (failure_fd < 0) Die(plan.failure_fd, Stage::kPrepare, errno);
  for (int i = 0; i < plan.mappings; ++i) {
    plan.scratch[i] = ::fcntl(plan.source[i], F_DUPFD_CLOEXEC, above);
    if (plan.scratch[i] < 0) Die(failure_fd, Stage::kPrepare, errno);
  }
  for (int i = 0; i < plan.mappings; ++i) {
    if (plan.target[i] < 0 || ::dup2(plan.scratch[i], plan.target[i]) < 0) Die(failure_fd, Stage::kPrepare, errno);
  }
  // Numbers below `above` that are no target must go; those above are all marked close-on-exec here, whoever made them.
  for (int fd = 3; fd < above; ++fd) {
    bool wanted = false;
    for (int i = 0; i < plan.mappings; ++i) wanted = wanted || plan.target[i] == fd;
    if (!wanted) ::close(fd);
  }
  if (::syscall(SYS_close_range, static_cast<unsigned>(above), ~0U, 1U << 2 /* CLOSE_RANGE_CLOEXEC */) != 0) {
    // Before Linux 5.11: the descriptor for failures is moved to a known place and the rest is closed.
    if (above < 3 || ::dup2(failure_fd, above) != above) Die(failure_fd, Stage::kPrepare, errno);
    failure_fd = above;
    ::fcntl(failure_fd, F_SETFD, FD_CLOEXEC);
    CloseFrom(above + 1);
  }
  if (plan.cwd != nullptr && ::chdir(plan.cwd) != 0) Die(failure_fd, Stage::kFolder, errno);
  ::execve(plan.program, plan.argv, plan.envp);
  Die(failure_fd, Stage::kExec, errno);
}

void RunGuard(pid_t group, int lifeline) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  // In the wrong group it would kill the wrong processes: then better no guard.
  if (::setpgid(0, group) != 0 && ::getpgrp() != group) ::_exit(1);
  if (::dup2(lifeline, 0) < 0) ::_exit(1);
  CloseFrom(1);
  ::prctl(PR_SET_NAME, "kw-guard");
  char byte = 0;
  while (true) {
    const ssize_t got = ::read(0, &byte, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) break;
  }
  // While this guard is a member, the group's number cannot have been given to anyone else.
  if (::getpgrp() == group) ::kill(-group, SIGKILL);
  ::_exit(0);
}

}  // namespace kernelwright::spawn
