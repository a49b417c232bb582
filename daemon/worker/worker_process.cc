// The conversation with one worker. Two threads belong to it: one reads replies and hands them to whoever waits, one
// reads standard error and notices the end of the process. The thread that reads replies is the only one that declares
// the worker's end, so that a reply that was sent before a crash is never lost to it.
#include "daemon/worker/worker_process.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <deque>
#include <string_view>
#include <utility>

#include "daemon/base/log.h"
#include "daemon/worker/framing.h"
#include "daemon/worker/marshal_jobs.h"
#include "daemon/worker/stop_fd.h"

namespace kernelwright::worker {
namespace {

using std::chrono::milliseconds;

// How long a dead worker's pipes may still bring something: what was in them is read at once, only a process that
// escaped and holds them open makes us wait.
constexpr milliseconds kDrain{500};
constexpr milliseconds kReap{2'000};

v1::JobResult CancelledResult() {
  v1::JobResult result;
  result.set_outcome(v1::JobResult::CANCELLED);
  result.set_detail("cancelled");
  return result;
}

}  // namespace

Expected<std::unique_ptr<WorkerProcess>> WorkerProcess::Start(const WorkerCommand& command,
                                                              const std::stop_token& stop) {
  SubprocessOptions options;
  options.argv = command.argv;
  options.env = command.environment;
  options.cwd = command.folder;
  options.input = options.output = options.error = Stdio::Pipe();
  Expected<Subprocess> process = Subprocess::Spawn(options);
  if (!process) return Fail(process.error());
  for (const int fd : {process->input().get(), process->error().get()}) {
    if (Status set = SetNonBlocking(fd); !set.ok()) return Fail(set);
  }
  std::unique_ptr<WorkerProcess> worker(new WorkerProcess(std::move(*process), command));
  if (Status hello = worker->SayHello(stop); !hello.ok()) return Fail(hello);
  return worker;
}

WorkerProcess::WorkerProcess(Subprocess process, const WorkerCommand& command)
    : command_(command), process_(std::move(process)) {
  reader_ = std::thread([this] { ReadReplies(stop_.get_token()); });
  error_reader_ = std::thread([this] { ReadErrors(stop_.get_token()); });
}

WorkerProcess::~WorkerProcess() { Shutdown(); }

Status WorkerProcess::SayHello(const std::stop_token& stop) {
  v1::WorkerRequest request;
  const uint64_t id = Register();
  request.set_id(id);
  request.mutable_hello()->set_protocol_version(kProtocolVersion);
  request.mutable_hello()->set_parallel_jobs(command_.parallel_jobs);
  if (Status sent = Send(request); !sent.ok()) return End();
  switch (Await(id, stop, Deadline::After(command_.hello_deadline))) {
    case Wake::kEnded:
      return End();
    case Wake::kStopped:
      process_.Signal(SIGKILL);
      return {ErrorKind::kCancelled, "the start of a worker was cancelled"};
    case Wake::kLate: {
      const std::string seconds = std::to_string(command_.hello_deadline.count() / 1000);
      Break({ErrorKind::kLimit, "the worker did not answer within " + seconds + " s after its start",
             command_.argv.front(), "Try again when the machine is less busy, or run `kernelwright doctor`."});
      return End();
    }
    case Wake::kReply:
      break;
  }
  const v1::WorkerReply reply = Take(id);
  const uint32_t version = reply.hello().protocol_version();
  if (!reply.has_hello() || version != kProtocolVersion) {
    const std::string what = reply.has_hello() ? "protocol version " + std::to_string(version) : "something else";
    return {ErrorKind::kEnvironment,
            "the worker answered with " + what + " where version " + std::to_string(kProtocolVersion) + " was expected",
            command_.argv.front(),
            "The worker's Python package is of another version: build again with scripts/build."};
  }
  if (const std::string& problem = reply.hello().problem(); !problem.empty()) {
    return {ErrorKind::kEnvironment, problem, command_.argv.front(),
            InterpreterRemedy(command_.argv.front(), command_.interpreter_reason)};
  }
  identity_ = FromProto(reply.hello());
  LogInfo("worker {} started in {} ms: {}, sandbox {}", process_.pid(), identity_.start_milliseconds, identity_.python,
          identity_.sandbox);
  const std::lock_guard lock(mutex_);
  started_ = true;
  return {};
}

Expected<v1::JobResult> WorkerProcess::Run(v1::Job&& job, const std::stop_token& stop) {
  if (stop.stop_requested()) return CancelledResult();
  if (!alive()) return Fail(End());
  v1::WorkerRequest request;
  const uint64_t id = Register();
  request.set_id(id);
  *request.mutable_job() = std::move(job);
  if (Status sent = Send(request); !sent.ok()) {
    Forget(id);
    return Fail(End());
  }
  Wake wake = Await(id, stop, Deadline::Never());
  if (wake == Wake::kStopped) {
    v1::WorkerRequest cancel;
    {
      const std::lock_guard lock(mutex_);
      cancel.set_id(next_id_++);
    }
    cancel.mutable_cancel()->set_job(id);
    if (Status sent = Send(cancel); sent.ok()) wake = Await(id, {}, Deadline::After(command_.cancel_grace));
    if (wake != Wake::kReply) {
      // Its processes may still run, so the worker that cannot end them has to go.
      if (wake == Wake::kLate) Break({ErrorKind::kInternal, "the worker did not end a cancelled job", "worker"});
      Forget(id);
      return CancelledResult();
    }
  }
  if (wake == Wake::kEnded) {
    Forget(id);
    return Fail(End());
  }
  v1::WorkerReply reply = Take(id);
  if (!reply.has_result()) {
    return Fail(ErrorKind::kInternal, "the worker refused a job: " + reply.protocol_error(), "worker protocol",
                "The worker's Python package may be of another version: build again with scripts/build.");
  }
  return std::move(*reply.mutable_result());
}

Status WorkerProcess::Send(const v1::WorkerRequest& request) {
  std::string bytes;
  if (!request.SerializeToString(&bytes)) return {ErrorKind::kInternal, "a request is too large to be sent", "worker"};
  Status sent;
  {
    const std::lock_guard lock(write_mutex_);
    if (write_broken_ || !process_.input().valid()) {
      sent = {ErrorKind::kInternal, "the connection to the worker is closed", "worker"};
    } else {
      sent = WriteFrame(process_.input().get(), bytes, send_stop_.get_token(), Deadline::After(command_.send_deadline));
      write_broken_ = !sent.ok();
    }
  }
  if (sent.kind() == ErrorKind::kLimit) {
    Break({ErrorKind::kInternal, "the worker does not take requests any more", "worker", "Run the command again."});
  } else if (!sent.ok()) {
    // A closed pipe says less than the exit status, which the reader is about to find.
    process_.Signal(SIGKILL);
  }
  return sent;
}

uint64_t WorkerProcess::Register() {
  const std::lock_guard lock(mutex_);
  pending_.emplace(next_id_, std::nullopt);
  return next_id_++;
}

WorkerProcess::Wake WorkerProcess::Await(uint64_t id, const std::stop_token& stop, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return pending_.at(id).has_value() || end_.has_value(); };
  if (deadline.never()) {
    changed_.wait(lock, stop, ready);
  } else {
    changed_.wait_until(lock, stop, deadline.time(), ready);
  }
  if (pending_.at(id).has_value()) return Wake::kReply;
  if (end_) return Wake::kEnded;
  return stop.stop_requested() ? Wake::kStopped : Wake::kLate;
}

v1::WorkerReply WorkerProcess::Take(uint64_t id) {
  const std::lock_guard lock(mutex_);
  auto node = pending_.extract(id);
  return std::move(*node.mapped());
}

void WorkerProcess::Forget(uint64_t id) {
  const std::lock_guard lock(mutex_);
  pending_.erase(id);
}

Status WorkerProcess::End() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return end_.has_value(); });
  return *end_;
}

bool WorkerProcess::alive() const {
  const std::lock_guard lock(mutex_);
  return !end_ && !break_reason_ && !shutting_down_;
}

size_t WorkerProcess::jobs() const {
  const std::lock_guard lock(mutex_);
  return pending_.size();
}

void WorkerProcess::Break(Status reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!break_reason_) break_reason_ = std::move(reason);
  }
  process_.Signal(SIGKILL);
}

void WorkerProcess::Dispatch(v1::WorkerReply&& reply) {
  if (reply.has_log()) {
    LogDebug("job {} {}: {}", reply.id(), reply.log().role(), PrintableLine(reply.log().text()));
    return;
  }
  const std::lock_guard lock(mutex_);
  const auto it = pending_.find(reply.id());
  if (it == pending_.end() || it->second.has_value()) {
    // The answer to a job that nobody waits for any more, or a complaint about the connection as a whole.
    LogDebug("worker {}: reply to {} ignored {}", process_.pid(), reply.id(), PrintableLine(reply.protocol_error()));
    return;
  }
  it->second = std::move(reply);
  changed_.notify_all();
}

void WorkerProcess::ReadReplies(const std::stop_token& stop) {
  FrameReader reader(process_.output().get());
  while (true) {
    Expected<std::optional<std::string>> message = reader.Next(stop);
    if (message && !message->has_value()) break;
    v1::WorkerReply reply;
    if (message && ParseMessage(**message, reply)) {
      Dispatch(std::move(reply));
      continue;
    }
    if (message || message.error().kind() == ErrorKind::kInternal) {
      Break(message ? Status(ErrorKind::kInternal, "the worker sent something that is not a message", "worker protocol",
                             "Run the command again; when it repeats, run `kernelwright doctor`.")
                    : message.error());
    }
    break;
  }
  Conclude();
}

void WorkerProcess::Conclude() {
  std::optional<ExitStatus> exit = process_.Wait(Deadline::After(kReap));
  if (!exit) exit = process_.Terminate(milliseconds(0));
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kDrain, [this] { return errors_closed_; });
  errors_.Finish();
  if (shutting_down_) {
    end_ = Status(ErrorKind::kCancelled, "the worker was shut down");
  } else if (break_reason_) {
    std::string message = break_reason_->message();
    if (const std::string tail = errors_.Text(); !tail.empty()) message += "; it last wrote:\n" + tail;
    end_ = Status(break_reason_->kind(), std::move(message), break_reason_->where(), break_reason_->remedy());
  } else {
    end_ = DescribeWorkerEnd({.exit = *exit,
                              .python = command_.argv.front(),
                              .interpreter_reason = command_.interpreter_reason,
                              .error_lines = errors_.lines(),
                              .had_started = started_});
  }
  if (started_ && !shutting_down_) LogWarning("worker {} is gone: {}", process_.pid(), end_->ToString());
  changed_.notify_all();
}

void WorkerProcess::KeepErrors(std::string_view text) {
  std::deque<std::string> lines;
  {
    const std::lock_guard lock(mutex_);
    lines = errors_.Add(text);
  }
  for (const std::string& line : lines) LogDebug("worker {}: {}", process_.pid(), line);
}

bool WorkerProcess::ErrorsEnd() {
  std::unique_lock lock(mutex_);
  errors_closed_ = true;
  changed_.notify_all();
  return changed_.wait_for(lock, kDrain, [this] { return end_.has_value(); });
}

void WorkerProcess::ReadErrors(const std::stop_token& stop) {
  const StopFd wake(stop);
  std::array<char, 16384> buffer;
  while (!stop.stop_requested()) {
    std::array<pollfd, 3> fds{
        {{process_.error().get(), POLLIN, 0}, {wake.fd(), POLLIN, 0}, {process_.exit_fd(), POLLIN, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), -1);
    if (ready < 0 && errno != EINTR) break;
    const ssize_t count = ::read(process_.error().get(), buffer.data(), buffer.size());
    if (count > 0) {
      KeepErrors(std::string_view(buffer.data(), static_cast<size_t>(count)));
      continue;
    }
    const bool nothing_now = count < 0 && (errno == EAGAIN || errno == EINTR);
    if (!nothing_now) break;
    if (ready > 0 && fds[2].revents != 0) {
      // The process has ended, yet something holds its pipes open. The other thread gets a moment to read what is in
      // them and to see their end; then it is told to stop.
      if (!ErrorsEnd()) stop_.request_stop();
      return;
    }
  }
  const std::lock_guard lock(mutex_);
  errors_closed_ = true;
  changed_.notify_all();
}

void WorkerProcess::Shutdown() {
  {
    const std::lock_guard lock(mutex_);
    shutting_down_ = true;
  }
  send_stop_.request_stop();
  {
    const std::lock_guard lock(write_mutex_);
    v1::WorkerRequest request;
    request.mutable_shutdown();
    if (!write_broken_ && process_.input().valid()) {
      // A worker that does not take this one sees the end of its input next.
      [[maybe_unused]] const Status sent =
          WriteFrame(process_.input().get(), request.SerializeAsString(), {}, Deadline::After(milliseconds(100)));
    }
    process_.input().reset();
  }
  if (!process_.Wait(Deadline::After(command_.shutdown_grace))) process_.Terminate(milliseconds(500));
  const std::lock_guard join(join_mutex_);
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kDrain, [this] { return end_.has_value(); });
  }
  stop_.request_stop();
  if (reader_.joinable()) reader_.join();
  if (error_reader_.joinable()) error_reader_.join();
}

}  // namespace kernelwright::worker
