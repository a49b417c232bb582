// See subprocess.h. The forks happen on one thread that never ends: the kernel ties "signal me when my parent dies" to
// the forking thread, and a pool thread that ends must not take its children with it.
#include "daemon/base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

#include "daemon/base/errno_status.h"
#include "daemon/base/spawn_child.h"
#include "fmt/format.h"

namespace kernelwright {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// Runs functions on its one thread, one after the other.
class ForkThread {
 public:
  static ForkThread& Get() {
    static std::mutex mutex;
    static ForkThread* instance = nullptr;
    std::lock_guard lock(mutex);
    // A process that forked without exec has lost the thread; it gets a new one.
    if (instance == nullptr || instance->owner_ != ::getpid()) instance = new ForkThread();
    return *instance;
  }

  void Run(const std::function<void()>& work) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return work_ == nullptr; });
    bool done = false;
    work_ = &work;
    done_ = &done;
    changed_.notify_all();
    changed_.wait(lock, [&] { return done; });
  }

 private:
  ForkThread() {
    sigset_t all;
    sigset_t old;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &old);  // signals are for the other threads
    std::thread([this] { Loop(); }).detach();
    ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  }

  void Loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return work_ != nullptr; });
      (*work_)();
      *done_ = true;
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  const pid_t owner_ = ::getpid();
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
  bool* done_ = nullptr;
};

struct Forked {
  pid_t child = -1;
  pid_t guard = -1;
  int pidfd = -1;
  int error = 0;
};

pid_t ReapBlocking(pid_t pid, int* status) {
  pid_t result = 0;
  do {
    result = ::waitpid(pid, status, 0);
  } while (result < 0 && errno == EINTR);
  return result;
}

Forked ForkBoth(const spawn::ChildPlan& plan, const Pipe& go, int lifeline, bool use_pidfd) {
  Forked result;
  ForkThread::Get().Run([&] {
    result.child = ::fork();
    if (result.child == 0) spawn::RunChild(plan);
    if (result.child < 0) {
      result.error = errno;
      return;
    }
    ::setpgid(result.child, result.child);  // here and in the child: whoever comes first
    result.guard = ::fork();
    if (result.guard == 0) spawn::RunGuard(result.child, lifeline);
    if (result.guard < 0) {
      result.error = errno;
      ::kill(result.child, SIGKILL);
      ReapBlocking(result.child, nullptr);
      return;
    }
    ::setpgid(result.guard, result.child);
    if (use_pidfd) result.pidfd = static_cast<int>(::syscall(SYS_pidfd_open, result.child, 0));
    [[maybe_unused]] const ssize_t ignored = ::write(go.write.get(), "g", 1);
  });
  return result;
}

ExitStatus Decode(int status) {
  if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

// The child's and our end of one standard stream.
struct Stream {
  UniqueFd opened;  // the child's end, when we had to open it
  UniqueFd ours;
  int child_source = -1;
};

Expected<Stream> OpenStream(const Stdio& spec, int number) {
  Stream stream;
  switch (spec.kind) {
    case Stdio::Kind::kNull:
      stream.opened.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
      if (!stream.opened.valid()) return Fail(StatusFromErrno(errno, "cannot open", "/dev/null"));
      break;
    case Stdio::Kind::kPipe: {
      Expected<Pipe> pipe = MakePipe();
      if (!pipe) return Fail(pipe.error());
      stream.opened = number == 0 ? std::move(pipe->read) : std::move(pipe->write);
      stream.ours = number == 0 ? std::move(pipe->write) : std::move(pipe->read);
      break;
    }
    case Stdio::Kind::kInherit:
      stream.child_source = number;
      return stream;
    case Stdio::Kind::kFd:
      stream.child_source = spec.fd;
      return stream;
  }
  stream.child_source = stream.opened.get();
  return stream;
}

Status DescribeFailure(const spawn::Failure& failure, const SubprocessOptions& options, const fs::path& program) {
  switch (failure.stage) {
    case spawn::Stage::kFolder:
      return StatusFromErrno(failure.error, "cannot enter the folder for " + program.string(), options.cwd.string());
    case spawn::Stage::kExec:
      return Status(ErrorKind::kEnvironment, "cannot run the program: " + ErrnoText(failure.error), program.string(),
                    "Check that it exists, is executable and fits this machine.");
    case spawn::Stage::kPrepare:
      break;
  }
  return StatusFromErrno(failure.error, "cannot prepare the start of " + program.string());
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

struct Subprocess::State {
  pid_t child = -1;
  pid_t guard = -1;
  UniqueFd pidfd;
  UniqueFd lifeline;  // the guard reads the other end
  UniqueFd input;
  UniqueFd output;
  UniqueFd error;
  std::mutex mutex;  // over reaping and signalling: a reaped number must not be signalled
  std::optional<ExitStatus> exit;

  // Takes the child's status if it has ended, and ends the rest of the group. The guard is reaped last: until then the
  // group's number is ours.
  bool Reap(int flags) {
    std::lock_guard lock(mutex);
    if (exit) return true;
    int status = 0;
    pid_t result = 0;
    do {
      result = ::waitpid(child, &status, flags);
    } while (result < 0 && errno == EINTR);
    if (result == 0) return false;
    // Someone else reaped it (SIGCHLD ignored, or a stray wait for any child): the end is certain, the status is not.
    exit = result == child ? Decode(status) : ExitStatus{255, 0};
    ::kill(-child, SIGKILL);
    ReapBlocking(guard, nullptr);
    return true;
  }

  bool PollOnce(const Deadline& deadline) {
    if (pidfd.valid()) {
      struct pollfd entry{pidfd.get(), POLLIN, 0};
      ::poll(&entry, 1, deadline.PollTimeout());
    } else {
      // Without a descriptor to wait on, look every few milliseconds.
      std::this_thread::sleep_for(std::min(milliseconds(5), deadline.Remaining()));
    }
    return Reap(WNOHANG);
  }
};

std::string ExitStatus::ToString() const {
  if (signal == 0) return "exit code " + std::to_string(code);
  const char* name = ::sigdescr_np(signal);
  return "signal " + std::to_string(signal) + (name != nullptr ? " (" + std::string(name) + ")" : "");
}

Expected<fs::path> FindProgram(const std::string& name, const char* path) {
  const auto missing = [&] {
    return Fail(ErrorKind::kEnvironment, "the program `" + name + "` was not found or is not executable", {},
                "Install it, or put its folder into PATH.");
  };
  if (name.empty()) return missing();
  if (name.find('/') != std::string::npos) {
    if (::access(name.c_str(), X_OK) != 0 || fs::is_directory(name)) return missing();
    return fs::path(name);
  }
  if (path == nullptr) path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  while (true) {
    const size_t colon = rest.find(':');
    const std::string_view folder = rest.substr(0, colon);
    // An empty entry means the current folder: a program there is a trap, not a tool.
    if (!folder.empty()) {
      fs::path candidate = fs::path(folder) / name;
      std::error_code error;
      if (fs::is_regular_file(candidate, error) && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    if (colon == std::string_view::npos) return missing();
    rest.remove_prefix(colon + 1);
  }
}

Expected<Subprocess> Subprocess::Spawn(const SubprocessOptions& options) {
  if (options.argv.empty()) return Fail(ErrorKind::kInternal, "a program to run was not named");
  Expected<fs::path> program = FindProgram(options.argv[0]);
  if (!program) return Fail(program.error());

  Expected<Stream> input = OpenStream(options.input, 0);
  if (!input) return Fail(input.error());
  Expected<Stream> output = OpenStream(options.output, 1);
  if (!output) return Fail(output.error());
  Expected<Stream> error = OpenStream(options.error, 2);
  if (!error) return Fail(error.error());
  Expected<Pipe> go = MakePipe();
  if (!go) return Fail(go.error());
  Expected<Pipe> failure = MakePipe();
  if (!failure) return Fail(failure.error());
  Expected<Pipe> lifeline = MakePipe();
  if (!lifeline) return Fail(lifeline.error());

  std::vector<int> source = {input->child_source, output->child_source, error->child_source};
  std::vector<int> target = {0, 1, 2};
  for (const InheritedFd& extra : options.inherit) {
    if (extra.our_fd < 0 || extra.child_fd < 3) {
      return Fail(ErrorKind::kInternal, "a descriptor to hand down is not open, or its number is taken",
                  program->string());
    }
    source.push_back(extra.our_fd);
    target.push_back(extra.child_fd);
  }
  std::vector<int> scratch(source.size(), -1);
  std::vector<std::string> argv = options.argv;
  std::vector<std::string> env;
  env.reserve(options.env.size());
  for (const auto& [name, value] : options.env) env.push_back(fmt::format("{}={}", name, value));
  const std::vector<char*> argv_pointers = Pointers(argv);
  const std::vector<char*> env_pointers = Pointers(env);

  spawn::ChildPlan plan;
  plan.program = program->c_str();
  plan.argv = argv_pointers.data();
  plan.envp = env_pointers.data();
  plan.cwd = options.cwd.empty() ? nullptr : options.cwd.c_str();
  plan.source = source.data();
  plan.target = target.data();
  plan.scratch = scratch.data();
  plan.mappings = static_cast<int>(source.size());
  plan.go_read = go->read.get();
  plan.go_write = go->write.get();
  plan.failure_fd = failure->write.get();
  plan.parent = ::getpid();

  const Forked forked = ForkBoth(plan, *go, lifeline->read.get(), options.use_pidfd);
  if (forked.error != 0) return Fail(StatusFromErrno(forked.error, "cannot start " + program->string()));

  auto state = std::make_unique<State>();
  state->child = forked.child;
  state->guard = forked.guard;
  state->pidfd.reset(forked.pidfd);
  state->lifeline = std::move(lifeline->write);
  state->input = std::move(input->ours);
  state->output = std::move(output->ours);
  state->error = std::move(error->ours);
  Subprocess process(std::move(state));

  // End-of-file comes with the exec that closes the child's end; our own copy must be gone before.
  failure->write.reset();
  spawn::Failure report;
  ssize_t got = 0;
  do {
    got = ::read(failure->read.get(), &report, sizeof(report));
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof(report))) return Fail(DescribeFailure(report, options, *program));
  return process;
}

Subprocess::Subprocess(std::unique_ptr<State> state) : state_(std::move(state)) {}
Subprocess::Subprocess(Subprocess&&) noexcept = default;

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
  if (this != &other) {
    if (state_) Terminate(milliseconds(0));
    state_ = std::move(other.state_);
  }
  return *this;
}

Subprocess::~Subprocess() {
  if (state_) Terminate(milliseconds(0));
}

pid_t Subprocess::pid() const { return state_->child; }
UniqueFd& Subprocess::input() { return state_->input; }
UniqueFd& Subprocess::output() { return state_->output; }
UniqueFd& Subprocess::error() { return state_->error; }
int Subprocess::exit_fd() const { return state_->pidfd.get(); }

std::optional<ExitStatus> Subprocess::Wait(const Deadline& deadline) {
  bool ended = state_->Reap(WNOHANG);
  while (!ended) {
    ended = state_->PollOnce(deadline);
    if (!ended && deadline.expired()) return std::nullopt;
  }
  std::lock_guard lock(state_->mutex);
  return state_->exit;
}

void Subprocess::Signal(int signal) {
  std::lock_guard lock(state_->mutex);
  if (!state_->exit) ::kill(-state_->child, signal);
}

ExitStatus Subprocess::Terminate(milliseconds grace) {
  if (grace.count() > 0) {
    Signal(SIGTERM);
    if (std::optional<ExitStatus> exit = Wait(Deadline::After(grace))) return *exit;
  }
  Signal(SIGKILL);
  return *Wait(Deadline::Never());
}

}  // namespace kernelwright
