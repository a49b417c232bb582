// Child processes that cannot outlive us. Each child leads a process group of its own; a small guard process sits in
// the same group and ends the whole group when this process dies, however it dies. Nothing is inherited but what is
// asked for: no descriptor, no environment variable, no signal mask. There is no shell anywhere.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/deadline.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"

namespace kernelwright {

// Where one of the child's standard streams goes.
struct Stdio {
  enum class Kind { kNull, kPipe, kInherit, kFd };
  Kind kind = Kind::kNull;
  int fd = -1;  // for kFd: duplicated into the child, stays ours

  static Stdio Null() { return {}; }
  static Stdio Pipe() { return {Kind::kPipe, -1}; }        // our end: Subprocess::input(), output(), error()
  static Stdio Inherit() { return {Kind::kInherit, -1}; }  // the same stream as ours
  static Stdio Fd(int fd) { return {Kind::kFd, fd}; }      // e.g. a log file
};

// A further descriptor that the child gets under the number `child_fd` (3 or more).
struct InheritedFd {
  int our_fd = -1;
  int child_fd = -1;
};

struct SubprocessOptions {
  std::vector<std::string> argv;           // argv[0]: a path, or a name that is looked up in our PATH
  std::map<std::string, std::string> env;  // the whole environment of the child
  std::filesystem::path cwd;               // empty: ours
  Stdio input;
  Stdio output;
  Stdio error;
  std::vector<InheritedFd> inherit;
  bool use_pidfd = true;  // false: wait by polling, as on kernels before 5.3
};

struct ExitStatus {
  int code = 0;    // meaningful when signal is 0
  int signal = 0;  // the signal that ended it, or 0
  bool success() const { return signal == 0 && code == 0; }
  // "exit code 3", "signal 9 (Killed)"
  std::string ToString() const;
};

// Thread-safe: one thread may wait while another signals or terminates.
class Subprocess {
 public:
  // kEnvironment when the program is missing or cannot be run, kNotFound when cwd is missing. When this returns a value
  // the program's first instruction has been reached: failures of exec are reported here, not as an exit code.
  static Expected<Subprocess> Spawn(const SubprocessOptions& options);

  Subprocess(Subprocess&&) noexcept;
  Subprocess& operator=(Subprocess&&) noexcept;
  // Ends the group without grace and reaps.
  ~Subprocess();

  pid_t pid() const;
  // Our ends of the pipes; closing input() gives the child its end-of-file.
  UniqueFd& input();
  UniqueFd& output();
  UniqueFd& error();
  // Becomes readable when the child has ended; for poll(2). -1 on kernels without pidfd.
  int exit_fd() const;

  // Waits for the child's end and then ends what is left of its group. Empty when the deadline came first. After the
  // end it returns the same status again.
  std::optional<ExitStatus> Wait(const Deadline& deadline);
  std::optional<ExitStatus> TryWait() { return Wait(Deadline::After(std::chrono::milliseconds(0))); }

  // Sends a signal to the whole group; nothing happens after the end.
  void Signal(int signal);

  // SIGTERM to the group, SIGKILL after the grace, then reaps: on return no process of the group is left but those
  // that the kernel is about to remove. Cancel, timeout and shutdown all come through here.
  ExitStatus Terminate(std::chrono::milliseconds grace);

 private:
  struct State;
  explicit Subprocess(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The program's path: `name` itself when it holds a slash, else the first match in `path` (PATH when null).
Expected<std::filesystem::path> FindProgram(const std::string& name, const char* path = nullptr);

}  // namespace kernelwright
