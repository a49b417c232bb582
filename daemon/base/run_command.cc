// One poll loop over both pipes and a wake-up for cancellation; see run_command.h.
#include "daemon/base/run_command.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "daemon/base/errno_status.h"

namespace kernelwright {
namespace {

constexpr std::chrono::milliseconds kGrace(500);

// Reads what is there. False at the end of file.
bool Drain(int fd, std::string& into, size_t max_bytes, bool& truncated) {
  char buffer[16384];
  const ssize_t got = ::read(fd, buffer, sizeof(buffer));
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  const size_t room = max_bytes - into.size();
  const size_t taken = std::min(room, static_cast<size_t>(got));
  into.append(buffer, taken);
  if (taken < static_cast<size_t>(got)) truncated = true;
  return true;
}

}  // namespace

Expected<CommandResult> RunCommand(SubprocessOptions options, const Deadline& deadline, const std::stop_token& stop,
                                   size_t max_bytes) {
  const std::string name = options.argv.empty() ? "the program" : "`" + options.argv[0] + "`";
  options.input = Stdio::Null();
  options.output = Stdio::Pipe();
  options.error = Stdio::Pipe();
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return Fail(StatusFromErrno(errno, "cannot make an event descriptor"));
  Expected<Subprocess> process = Subprocess::Spawn(options);
  if (!process) return Fail(process.error());
  const std::stop_callback on_stop(stop, [&wake] {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t ignored = ::write(wake.get(), &one, sizeof(one));
  });

  CommandResult result;
  bool output_open = true;
  bool error_open = true;
  bool ended = false;
  // Ends with the program, not with its pipes: a grandchild that keeps them open must not hold us up.
  while (!ended || output_open || error_open) {
    if (Status status = CheckRunning(stop, deadline, name); !status) {
      process->Terminate(kGrace);
      return Fail(std::move(status));
    }
    struct pollfd entries[4] = {{output_open ? process->output().get() : -1, POLLIN, 0},
                                {error_open ? process->error().get() : -1, POLLIN, 0},
                                {wake.get(), POLLIN, 0},
                                {ended ? -1 : process->exit_fd(), POLLIN, 0}};
    const bool blind = !ended && process->exit_fd() < 0 && !output_open && !error_open;
    ::poll(entries, 4, blind ? 5 : deadline.PollTimeout());
    if (entries[0].revents != 0) output_open = Drain(entries[0].fd, result.output, max_bytes, result.truncated);
    if (entries[1].revents != 0) error_open = Drain(entries[1].fd, result.error, max_bytes, result.truncated);
    if (!ended) {
      // Reaping ends the rest of the group, which closes its ends of the pipes.
      if (std::optional<ExitStatus> exit = process->TryWait()) {
        result.exit = *exit;
        ended = true;
      }
    }
  }
  return result;
}

}  // namespace kernelwright
