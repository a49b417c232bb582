// Restarts and repetition around WorkerProcess.
#include "daemon/worker/worker_toolchain.h"

#include <utility>

#include "daemon/base/log.h"
#include "daemon/worker/marshal_jobs.h"

namespace kernelwright::worker {
namespace {

Status ShutDown() { return {ErrorKind::kCancelled, "the worker was shut down"}; }

}  // namespace

WorkerToolchain::WorkerToolchain(std::unique_ptr<WorkerProcess> first, Starter starter, uint32_t parallel_jobs,
                                 const Clock& clock)
    : starter_(std::move(starter)), parallel_jobs_(parallel_jobs), clock_(clock), worker_(std::move(first)) {
  identities_.push_back(worker_->identity());
}

WorkerToolchain::~WorkerToolchain() { Shutdown(); }

const agents::WorkerIdentity& WorkerToolchain::identity() const {
  const std::lock_guard lock(mutex_);
  return identities_.back();
}

bool WorkerToolchain::alive() const {
  const std::lock_guard lock(mutex_);
  return worker_ != nullptr && worker_->alive();
}

uint32_t WorkerToolchain::running_jobs() const {
  const std::lock_guard lock(mutex_);
  return std::min(jobs_, parallel_jobs_);
}

uint32_t WorkerToolchain::queued_jobs() const {
  const std::lock_guard lock(mutex_);
  return jobs_ > parallel_jobs_ ? jobs_ - parallel_jobs_ : 0;
}

pid_t WorkerToolchain::pid() const {
  const std::lock_guard lock(mutex_);
  return worker_ != nullptr && worker_->alive() ? worker_->pid() : 0;
}

Status WorkerToolchain::CheckRestartLimit() {
  const auto now = clock_.Monotonic();
  while (!restarts_.empty() && now - restarts_.front() > kRestartWindow) restarts_.pop_front();
  if (restarts_.size() < kMaxRestarts) return {};
  return {ErrorKind::kInternal,
          "the worker died " + std::to_string(restarts_.size() + 1) + " times within " +
              std::to_string(kRestartWindow.count()) + " minutes and is not started again for now",
          identities_.back().python, "Run `kernelwright doctor`; the log says how each one ended."};
}

Expected<std::shared_ptr<WorkerProcess>> WorkerToolchain::Worker(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait(lock, stop, [this] { return !starting_; })) {
    return Fail(ErrorKind::kCancelled, "waiting for a worker was cancelled");
  }
  if (shutdown_.stop_requested()) return Fail(ShutDown());
  if (worker_ != nullptr && worker_->alive()) return worker_;
  if (Status limit = CheckRestartLimit(); !limit.ok()) return Fail(limit);
  restarts_.push_back(clock_.Monotonic());
  starting_ = true;
  // The dead one is let go outside the lock: its threads may have to be waited for.
  std::shared_ptr<WorkerProcess> dead = std::exchange(worker_, nullptr);
  lock.unlock();
  dead.reset();
  Expected<std::unique_ptr<WorkerProcess>> started;
  {
    std::stop_source both;
    const std::stop_callback from_caller(stop, [&both] { both.request_stop(); });
    const std::stop_callback from_shutdown(shutdown_.get_token(), [&both] { both.request_stop(); });
    started = starter_(both.get_token());
  }
  lock.lock();
  starting_ = false;
  changed_.notify_all();
  if (!started) return Fail(started.error());
  worker_ = std::move(*started);
  identities_.push_back(worker_->identity());
  return worker_;
}

Expected<v1::JobResult> WorkerToolchain::Run(const std::function<v1::Job()>& make, const std::stop_token& stop) {
  struct Count {  // of the jobs inside this function
    explicit Count(WorkerToolchain& owner) : owner_(owner) { Add(1); }
    ~Count() { Add(-1); }
    Count(const Count&) = delete;
    Count& operator=(const Count&) = delete;
    void Add(int by) {
      const std::lock_guard lock(owner_.mutex_);
      owner_.jobs_ += static_cast<uint32_t>(by);
    }
    WorkerToolchain& owner_;
  };
  const Count count(*this);
  for (bool repeated = false;; repeated = true) {
    Expected<std::shared_ptr<WorkerProcess>> worker = Worker(stop);
    if (!worker) return Fail(worker.error());
    Expected<v1::JobResult> result = (*worker)->Run(make(), stop);
    if (result || repeated || (*worker)->alive() || shutdown_.stop_requested()) return result;
    LogWarning("a job was lost with its worker and is repeated: {}", result.error().ToString());
  }
}

Expected<agents::TraceReport> WorkerToolchain::Trace(const agents::TraceRequest& request, std::stop_token stop) {
  Expected<v1::JobResult> result = Run([&] { return ToProto(request); }, stop);
  if (!result) return Fail(result.error());
  return TraceReportFromProto(std::move(*result));
}

Expected<agents::CompileReport> WorkerToolchain::Compile(const agents::CompileRequest& request, std::stop_token stop) {
  Expected<v1::JobResult> result = Run([&] { return ToProto(request); }, stop);
  if (!result) return Fail(result.error());
  return CompileReportFromProto(std::move(*result));
}

Expected<agents::JudgeReport> WorkerToolchain::Judge(const agents::JudgeRequest& request, std::stop_token stop) {
  Expected<v1::JobResult> result = Run([&] { return ToProto(request); }, stop);
  if (!result) return Fail(result.error());
  return JudgeReportFromProto(std::move(*result));
}

Expected<agents::ProbeReport> WorkerToolchain::Probe(const std::vector<std::string>& chips,
                                                     const agents::Limits& limits, std::stop_token stop) {
  Expected<v1::JobResult> result = Run([&] { return ProbeToProto(chips, limits); }, stop);
  if (!result) return Fail(result.error());
  return ProbeReportFromProto(std::move(*result));
}

void WorkerToolchain::Shutdown() {
  shutdown_.request_stop();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !starting_; });
  const std::shared_ptr<WorkerProcess> worker = worker_;
  lock.unlock();
  if (worker != nullptr) worker->Shutdown();
}

}  // namespace kernelwright::worker
