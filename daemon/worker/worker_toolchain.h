// A Toolchain that outlives its worker. A worker that died is replaced at the next job, and a job that was lost with it
// is repeated once; a worker that keeps dying is given up for a while, so that a fault cannot become a busy loop.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/agents/toolchain.h"
#include "daemon/base/clock.h"
#include "daemon/base/status.h"
#include "daemon/worker/worker_process.h"

namespace kernelwright::worker {

class WorkerToolchain : public agents::Toolchain {
 public:
  using Starter = std::function<Expected<std::unique_ptr<WorkerProcess>>(const std::stop_token&)>;

  static constexpr size_t kMaxRestarts = 4;  // within kRestartWindow
  static constexpr std::chrono::minutes kRestartWindow{3};

  // Takes over a worker that runs; `starter` makes the next ones.
  WorkerToolchain(std::unique_ptr<WorkerProcess> first, Starter starter, uint32_t parallel_jobs,
                  const Clock& clock = SystemClock());
  ~WorkerToolchain() override;

  // Of the newest worker; the reference stays valid as long as the toolchain.
  const agents::WorkerIdentity& identity() const override;
  Expected<agents::TraceReport> Trace(const agents::TraceRequest& request, std::stop_token stop) override;
  Expected<agents::CompileReport> Compile(const agents::CompileRequest& request, std::stop_token stop) override;
  Expected<agents::JudgeReport> Judge(const agents::JudgeRequest& request, std::stop_token stop) override;
  Expected<agents::ProbeReport> Probe(const std::vector<std::string>& chips, const agents::Limits& limits,
                                      std::stop_token stop) override;

  // Whether a worker runs. A toolchain without one starts one for its next job.
  bool alive() const;
  uint32_t running_jobs() const;
  uint32_t queued_jobs() const;  // beyond the number that runs at once
  pid_t pid() const;             // 0 while none runs

  // Ends the worker for good; later jobs are refused.
  void Shutdown();

 private:
  // Runs a job made by `make` (again for the repetition: sending consumes it).
  Expected<v1::JobResult> Run(const std::function<v1::Job()>& make, const std::stop_token& stop);
  // The worker that runs, or a new one.
  Expected<std::shared_ptr<WorkerProcess>> Worker(const std::stop_token& stop);
  Status CheckRestartLimit();  // mutex_ held

  const Starter starter_;
  const uint32_t parallel_jobs_;
  const Clock& clock_;
  std::stop_source shutdown_;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::shared_ptr<WorkerProcess> worker_;
  bool starting_ = false;
  std::deque<std::chrono::steady_clock::time_point> restarts_;
  std::deque<agents::WorkerIdentity> identities_;  // a deque: references survive additions
  uint32_t jobs_ = 0;
};

}  // namespace kernelwright::worker
