// posix_spawn of the daemon and the wait for its report; see spawn_daemon.h.
#include "daemon/service/spawn_daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "daemon/base/errno_status.h"
#include "daemon/base/files.h"
#include "daemon/base/unique_fd.h"

namespace kernelwright::service {
namespace {

constexpr int kReadyFd = 3;
constexpr size_t kTailBytes = 2000;

std::vector<char*> Pointers(std::vector<std::string>* strings) {
  std::vector<char*> result;
  result.reserve(strings->size() + 1);
  for (std::string& text : *strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Releases what posix_spawn wants initialised.
struct SpawnSetup {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  SpawnSetup() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
};

// Both descriptors must be above kReadyFd: a lower one would be overwritten by the child's standard streams.
Expected<pid_t> Spawn(const DaemonCommand& command, int ready_write, int error_fd) {
  std::vector<std::string> arguments = command.argv;
  arguments.insert(arguments.end(), {"--ready-fd", std::to_string(kReadyFd)});
  std::vector<std::string> environment;
  environment.reserve(command.env.size());
  for (const auto& [name, value] : command.env) environment.push_back(name + "=" + value);
  std::vector<char*> argv = Pointers(&arguments);
  std::vector<char*> envp = Pointers(&environment);

  SpawnSetup setup;
  posix_spawn_file_actions_addopen(&setup.actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&setup.actions, error_fd, 1);
  posix_spawn_file_actions_adddup2(&setup.actions, error_fd, 2);
  posix_spawn_file_actions_adddup2(&setup.actions, ready_write, kReadyFd);
  posix_spawn_file_actions_addclosefrom_np(&setup.actions, kReadyFd + 1);
  // The starter's folder may be on a disk that somebody wants to unmount.
  posix_spawn_file_actions_addchdir_np(&setup.actions, "/");
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&setup.attributes, &none);
  posix_spawnattr_setsigdefault(&setup.attributes, &all);
  posix_spawnattr_setflags(&setup.attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, command.argv.front().c_str(), &setup.actions, &setup.attributes, argv.data(), envp.data());
  if (error != 0) return Fail(StatusFromErrno(error, "the daemon cannot be started", command.argv.front()));
  return pid;
}

std::string Tail(const std::filesystem::path& file) {
  Expected<std::string> text = ReadFile(file);
  if (!text) return "";
  while (!text->empty() && text->back() == '\n') text->pop_back();
  if (text->size() > kTailBytes) *text = "…" + text->substr(text->size() - kTailBytes);
  for (char& c : *text) {
    if (c == '\n') c = ' ';
  }
  return *text;
}

std::string ExitText(int status) {
  if (WIFSIGNALED(status)) {
    return "signal " + std::to_string(WTERMSIG(status)) + " (" + ::strsignal(WTERMSIG(status)) + ")";
  }
  return "exit code " + std::to_string(WEXITSTATUS(status));
}

int Reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// The same open file under a number above kReadyFd.
Expected<UniqueFd> MoveUp(UniqueFd fd) {
  UniqueFd moved(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kReadyFd + 1));
  if (!moved.valid()) return Fail(StatusFromErrno(errno, "cannot start the daemon"));
  return moved;
}

// Reads a line, or until end-of-file. False when the deadline came first.
bool ReadLine(int fd, const Deadline& deadline, std::string* text) {
  char buffer[4096];
  while (true) {
    pollfd wait{fd, POLLIN, 0};
    const int ready = ::poll(&wait, 1, deadline.PollTimeout());
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t got = ::read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text->append(buffer, static_cast<size_t>(got));
    if (text->back() == '\n') return true;
  }
}

}  // namespace

std::map<std::string, std::string> DaemonEnvironment(char** environment) {
  constexpr std::string_view kNames[] = {"HOME", "PATH",   "USER",  "LOGNAME",       "LANG",
                                         "TZ",   "TMPDIR", "SHELL", "SSH_AUTH_SOCK", "LD_LIBRARY_PATH"};
  constexpr std::string_view kPrefixes[] = {"LC_",           "XDG_",         "ASAN_OPTIONS",
                                            "UBSAN_OPTIONS", "TSAN_OPTIONS", "KERNELWRIGHT_"};
  std::map<std::string, std::string> result;
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    bool wanted = false;
    for (const std::string_view known : kNames) wanted |= name == known;
    for (const std::string_view prefix : kPrefixes) wanted |= name.starts_with(prefix);
    if (wanted) result.emplace(name, text.substr(equals + 1));
  }
  return result;
}

Expected<StartupReport> SpawnDaemon(const DaemonCommand& command, Deadline deadline) {
  Expected<Pipe> pipe = MakePipe();
  if (!pipe) return Fail(pipe.error());
  UniqueFd error_file(::open(command.stderr_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!error_file.valid()) return Fail(StatusFromErrno(errno, "cannot open the daemon's log", command.stderr_file));
  Expected<UniqueFd> report_fd = MoveUp(std::move(pipe->write));
  if (!report_fd) return Fail(report_fd.error());
  Expected<UniqueFd> error_fd = MoveUp(std::move(error_file));
  if (!error_fd) return Fail(error_fd.error());
  Expected<pid_t> pid = Spawn(command, report_fd->get(), error_fd->get());
  if (!pid) return Fail(pid.error());
  report_fd->reset();

  std::string text;
  if (!ReadLine(pipe->read.get(), deadline, &text)) {
    ::kill(*pid, SIGKILL);  // not reaped yet, so the number is still its own
    Reap(*pid);
    return Fail(ErrorKind::kEnvironment, "the daemon did not become ready in time: " + Tail(command.stderr_file),
                command.stderr_file, "Run 'kernelwright serve' to see what it waits for, or use --in-process.");
  }
  if (text.empty()) {
    const std::string exit = ExitText(Reap(*pid));
    const std::string tail = Tail(command.stderr_file);
    return Fail(ErrorKind::kInternal, "the daemon ended at its start with " + exit + (tail.empty() ? "" : ": " + tail),
                command.stderr_file, "Run 'kernelwright serve' to see it happen, or use --in-process.");
  }
  Expected<StartupReport> report = ParseStartupReport(text);
  if (!report) return Fail(report.error());
  if (report->kind != StartupReport::Kind::kReady) Reap(*pid);
  if (report->kind == StartupReport::Kind::kFailed) return Fail(report->error);
  return report;
}

}  // namespace kernelwright::service
