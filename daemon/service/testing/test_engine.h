// An engine for the tests of transport and commands: its runs do what the test says, its log is in memory.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/agents/engine.h"

namespace kernelwright::testing {

class TestEngine : public agents::Engine {
 public:
  // What a test does to it.
  uint64_t Emit(const std::string& run, const std::string& kind, const std::string& payload_json);
  // Ends the run: stores result and status, emits run_finished.
  void FinishRun(const std::string& run, const std::string& status, const std::string& result_json, int exit_code);
  // Called on a new run, on the thread of StartRun, after run_started is stored.
  std::function<void(TestEngine*, const std::string& run)> on_start;
  std::vector<agents::RunRequest> requests() const;
  bool shut_down() const { return shut_down_; }
  int open_streams() const { return open_streams_; }
  std::atomic<bool> doctor_blocks = false;  // until it is cancelled
  std::atomic<int> doctor_cancelled = 0;
  std::atomic<bool> check_blocks = false;  // after its first stage, until it is cancelled
  std::atomic<int> check_cancelled = 0;
  // What Check answers after reporting its stages.
  std::function<agents::CheckResult(const agents::CheckRequest&)> on_check;
  std::vector<agents::DoctorItem> doctor_items = {{"interpreter", "ok", "/usr/bin/python3", ""}};

  Expected<std::string> StartRun(const agents::RunRequest& request) override;
  Expected<bool> CancelRun(const std::string& run) override;
  Expected<std::string> ResumeRun(const std::string& run) override;
  Expected<std::vector<agents::RunInfo>> ListRuns(uint32_t limit) override;
  Expected<agents::RunInfo> GetRun(const std::string& run) override;
  Status ExportRun(const std::string& run, const std::function<bool(std::string_view)>& write) override;
  Expected<agents::PruneResult> PruneRuns(const agents::PruneOptions& options) override;
  Expected<std::vector<agents::DoctorItem>> Doctor(const agents::DoctorOptions& options, std::stop_token stop) override;
  Expected<agents::CheckResult> Check(const agents::CheckRequest& request, const agents::OnCheckStage& on_stage,
                                      std::stop_token stop) override;
  Expected<agents::ProfileReply> Profile(const agents::ProfileRequest& request, std::stop_token stop) override;
  Expected<agents::EngineStatus> GetStatus() override;
  Expected<std::unique_ptr<agents::EventStream>> Subscribe(const std::string& run, uint64_t since,
                                                           bool follow) override;
  void Shutdown() override;

 private:
  class Stream;
  uint64_t EmitLocked(const std::string& run, const std::string& kind, const std::string& payload_json);

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, agents::RunInfo> runs_;
  std::vector<agents::RunRequest> requests_;
  std::vector<agents::RunEvent> log_;
  std::atomic<bool> shut_down_ = false;
  std::atomic<int> open_streams_ = 0;
};

}  // namespace kernelwright::testing
