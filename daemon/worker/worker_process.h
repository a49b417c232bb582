// One running worker: a Python fork server that we started, and the conversation with it over its pipes. Many threads
// may run jobs at once. When the worker dies or speaks nonsense every job that waits fails with the reason and the last
// lines of its standard error, and the object is good for nothing more; WorkerToolchain starts another one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/agents/toolchain.h"
#include "daemon/base/deadline.h"
#include "daemon/base/status.h"
#include "daemon/base/subprocess.h"
#include "daemon/worker/worker_failure.h"
#include "kernelwright/v1/worker.pb.h"

namespace kernelwright::worker {

inline constexpr uint32_t kProtocolVersion = 1;

// How to start a worker and how patient to be with it.
struct WorkerCommand {
  std::vector<std::string> argv;                   // argv[0] is the interpreter
  std::map<std::string, std::string> environment;  // the whole environment
  std::filesystem::path folder;                    // working directory of the worker itself; empty: ours
  std::string interpreter_reason;                  // why this interpreter; part of errors about missing packages
  uint32_t parallel_jobs = 1;
  std::chrono::milliseconds hello_deadline{120'000};  // importing jax from a cold disk can take most of a minute
  std::chrono::milliseconds send_deadline{60'000};    // for one request to be taken off the pipe
  std::chrono::milliseconds cancel_grace{10'000};     // for a cancelled job to be answered
  std::chrono::milliseconds shutdown_grace{5'000};    // for the worker to end by itself
};

class WorkerProcess {
 public:
  // Starts a worker and waits for its answer to Hello. kEnvironment with the worker's own words when it lacks
  // something (exit status 3), kCancelled on `stop`, kLimit when the answer is late, else kInternal.
  static Expected<std::unique_ptr<WorkerProcess>> Start(const WorkerCommand& command, const std::stop_token& stop);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  const agents::WorkerIdentity& identity() const { return identity_; }
  pid_t pid() const { return process_.pid(); }  // in our own namespace

  // Runs a job to its result, which may say that it failed. A stop request ends the job's processes and gives a result
  // with outcome CANCELLED (or the job's own, when it was done first). Errors mean that the worker is lost.
  Expected<v1::JobResult> Run(v1::Job&& job, const std::stop_token& stop);

  bool alive() const;
  size_t jobs() const;  // sent and not answered

  // Asks the worker to end its jobs and itself, waits, then ends the process group. Jobs that wait are cancelled.
  // Safe to call twice and from any thread.
  void Shutdown();

 private:
  enum class Wake { kReply, kEnded, kStopped, kLate };

  WorkerProcess(Subprocess process, const WorkerCommand& command);
  Status SayHello(const std::stop_token& stop);
  // Sends a request; a failure breaks the worker.
  Status Send(const v1::WorkerRequest& request);
  uint64_t Register();
  // Waits for the answer to a request, which stays registered.
  Wake Await(uint64_t id, const std::stop_token& stop, const Deadline& deadline);
  // The answer, which must be there; the request is forgotten.
  v1::WorkerReply Take(uint64_t id);
  void Forget(uint64_t id);
  // Why the worker is gone; waits for its end to be known.
  Status End();

  // Ends the worker because of something it did. Waiting jobs learn the reason once the process is gone.
  void Break(Status reason);
  void ReadReplies(const std::stop_token& stop);
  void Dispatch(v1::WorkerReply&& reply);
  void ReadErrors(const std::stop_token& stop);
  void KeepErrors(std::string_view text);
  // Says that no more comes from standard error; whether the other thread came to its end soon after.
  bool ErrorsEnd();
  // Reaps the process, finds the words for its end and tells everyone who waits.
  void Conclude();

  const WorkerCommand command_;
  Subprocess process_;
  agents::WorkerIdentity identity_;

  std::mutex write_mutex_;     // over the pipe to the worker and the next line
  bool write_broken_ = false;  // a message was cut short: nothing more can be sent

  mutable std::mutex mutex_;  // over everything down to the next blank line
  std::condition_variable_any changed_;
  std::map<uint64_t, std::optional<v1::WorkerReply>> pending_;
  uint64_t next_id_ = 1;
  std::optional<Status> break_reason_;
  std::optional<Status> end_;  // set once the process is gone
  bool shutting_down_ = false;
  bool started_ = false;        // Hello was answered
  bool errors_closed_ = false;  // standard error was read to its end
  ErrorTail errors_;

  std::mutex join_mutex_;       // Shutdown from several threads joins once
  std::stop_source send_stop_;  // wakes a blocked sender
  std::stop_source stop_;       // ends both threads
  std::thread reader_;
  std::thread error_reader_;
};

}  // namespace kernelwright::worker
