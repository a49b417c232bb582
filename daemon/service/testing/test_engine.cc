// See test_engine.h.
#include "daemon/service/testing/test_engine.h"

#include <utility>

namespace kernelwright::testing {

class TestEngine::Stream : public agents::EventStream {
 public:
  Stream(TestEngine* engine, std::string run, uint64_t since, bool follow)
      : engine_(engine), run_(std::move(run)), since_(since), follow_(follow) {
    ++engine_->open_streams_;
  }
  ~Stream() override { --engine_->open_streams_; }

  Expected<Batch> Next(std::stop_token stop, Deadline) override {
    std::unique_lock lock(engine_->mutex_);
    while (true) {
      Batch batch;
      for (const agents::RunEvent& event : engine_->log_) {
        if (event.sequence > since_ && (run_.empty() || event.run == run_) && batch.events.size() < 100) {
          batch.events.push_back(event);
        }
      }
      if (!batch.events.empty()) {
        since_ = batch.events.back().sequence;
        return batch;
      }
      const bool active = run_.empty() || engine_->runs_.at(run_).status == "running";
      if (!follow_ || !active || engine_->shut_down_) {
        batch.ended = true;
        return batch;
      }
      if (!engine_->changed_.wait(lock, stop, [&] {
            return engine_->shut_down_ || (!engine_->log_.empty() && engine_->log_.back().sequence > since_);
          })) {
        return batch;
      }
      if (!engine_->log_.empty() && !run_.empty() && engine_->log_.back().run != run_) {
        bool mine = false;
        for (const auto& event : engine_->log_) mine |= event.sequence > since_ && event.run == run_;
        if (!mine) since_ = engine_->log_.back().sequence;
      }
    }
  }

 private:
  TestEngine* engine_;
  const std::string run_;
  uint64_t since_;
  const bool follow_;
};

uint64_t TestEngine::EmitLocked(const std::string& run, const std::string& kind, const std::string& payload_json) {
  log_.push_back({log_.size() + 1, run, 1'700'000'000'000 + static_cast<int64_t>(log_.size()), kind, payload_json});
  changed_.notify_all();
  return log_.back().sequence;
}

uint64_t TestEngine::Emit(const std::string& run, const std::string& kind, const std::string& payload_json) {
  const std::lock_guard lock(mutex_);
  return EmitLocked(run, kind, payload_json);
}

void TestEngine::FinishRun(const std::string& run, const std::string& status, const std::string& result_json,
                           int exit_code) {
  const std::lock_guard lock(mutex_);
  agents::RunInfo& info = runs_.at(run);
  info.status = status;
  info.result_json = result_json;
  info.exit_code = exit_code;
  EmitLocked(run, "run_finished",
             R"({"status":")" + status + R"(","message":"","exit_code":)" + std::to_string(exit_code) + "}");
}

std::vector<agents::RunRequest> TestEngine::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

Expected<std::string> TestEngine::StartRun(const agents::RunRequest& request) {
  if (request.file.ends_with("missing.py")) {
    return Fail(ErrorKind::kUsage, "there is no such file", request.file, "Check the path.");
  }
  std::string run;
  {
    const std::lock_guard lock(mutex_);
    run = "r" + std::to_string(runs_.size() + 1);
    agents::RunInfo info;
    info.run = run;
    info.kind = request.kind;
    info.status = "running";
    info.file = request.file;
    info.function = request.function;
    info.chips = request.chips;
    info.created_ms = 1'700'000'000'000;
    runs_[run] = info;
    requests_.push_back(request);
    EmitLocked(run, "run_started", R"({"kind":")" + request.kind + R"("})");
  }
  if (on_start) on_start(this, run);
  return run;
}

Expected<bool> TestEngine::CancelRun(const std::string& run) {
  const Expected<agents::RunInfo> info = GetRun(run);
  if (!info) return Fail(info.error());
  if (info->status != "running") return false;
  FinishRun(run, "cancelled", R"({"schema_version":1,"status":"cancelled","run":")" + run + R"(","results":[]})", 4);
  return true;
}

Expected<std::string> TestEngine::ResumeRun(const std::string& run) {
  const Expected<agents::RunInfo> info = GetRun(run);
  if (!info) return Fail(info.error());
  const std::lock_guard lock(mutex_);
  runs_.at(run).status = "running";
  EmitLocked(run, "run_resumed", R"({"kept_evaluations":3})");
  return run;
}

Expected<std::vector<agents::RunInfo>> TestEngine::ListRuns(uint32_t limit) {
  const std::lock_guard lock(mutex_);
  std::vector<agents::RunInfo> result;
  for (auto at = runs_.rbegin(); at != runs_.rend() && result.size() < limit; ++at) {
    result.push_back(at->second);
    result.back().result_json.clear();
  }
  return result;
}

Expected<agents::RunInfo> TestEngine::GetRun(const std::string& run) {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(run);
  if (found == runs_.end()) {
    return Fail(ErrorKind::kNotFound, "there is no run " + run, "", "'kernelwright runs list' shows them.");
  }
  return found->second;
}

Status TestEngine::ExportRun(const std::string& run, const std::function<bool(std::string_view)>& write) {
  const Expected<agents::RunInfo> info = GetRun(run);
  if (!info) return info.error();
  const std::string filler(3'000'000, 'x');
  if (write("{\"run\":\"" + run + "\",\"filler\":\"") && write(filler)) write("\"}\n");
  return {};
}

Expected<agents::PruneResult> TestEngine::PruneRuns(const agents::PruneOptions& options) {
  const std::lock_guard lock(mutex_);
  agents::PruneResult result;
  if (runs_.size() > options.keep) result.runs = static_cast<uint32_t>(runs_.size() - options.keep);
  result.freed_bytes = 1000UL * result.runs;
  if (!options.dry_run && result.runs > 0) runs_.clear();
  return result;
}

Expected<std::vector<agents::DoctorItem>> TestEngine::Doctor(const agents::DoctorOptions&, std::stop_token stop) {
  if (doctor_blocks) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait(lock, stop, [] { return false; });
    ++doctor_cancelled;
    return Fail(ErrorKind::kCancelled, "the doctor was cancelled");
  }
  return doctor_items;
}

Expected<agents::CheckResult> TestEngine::Check(const agents::CheckRequest& request,
                                                const agents::OnCheckStage& on_stage, std::stop_token stop) {
  if (request.file.ends_with("missing.py")) {
    return Fail(ErrorKind::kNotFound, "no such file", request.file, "Check the path.");
  }
  agents::CheckResult result;
  if (on_check) result = on_check(request);
  result.file = request.file;
  if (result.stages.empty()) result.stages.emplace_back();
  for (agents::CheckStageReport& stage : result.stages) {
    on_stage(stage);
    stage.diagnostics.clear();
  }
  if (check_blocks) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait(lock, stop, [] { return false; });
    ++check_cancelled;
    result.failure = Status(ErrorKind::kCancelled, "the check was cancelled");
  }
  return result;
}

Expected<agents::ProfileReply> TestEngine::Profile(const agents::ProfileRequest& request, std::stop_token stop) {
  if (request.file.ends_with("missing.py")) {
    return Fail(ErrorKind::kNotFound, "no such file", request.file, "Check the path.");
  }
  if (stop.stop_requested()) return Fail(ErrorKind::kCancelled, "the profile was cancelled");
  return agents::ProfileReply{"{\"file\": \"" + request.file + "\"}", request.want_html ? "<html>" : "", 0};
}

Expected<agents::EngineStatus> TestEngine::GetStatus() {
  const std::lock_guard lock(mutex_);
  agents::EngineStatus status;
  for (const auto& [id, run] : runs_) status.active_runs += run.status == "running" ? 1 : 0;
  status.store_bytes = 4096;
  status.workers = {"local: idle"};
  return status;
}

Expected<std::unique_ptr<agents::EventStream>> TestEngine::Subscribe(const std::string& run, uint64_t since,
                                                                     bool follow) {
  if (!run.empty()) {
    const Expected<agents::RunInfo> info = GetRun(run);
    if (!info) return Fail(info.error());
  }
  return std::make_unique<Stream>(this, run, since, follow);
}

void TestEngine::Shutdown() {
  const std::lock_guard lock(mutex_);
  shut_down_ = true;
  for (auto& [id, run] : runs_) {
    if (run.status == "running") run.status = "interrupted";
  }
  changed_.notify_all();
}

}  // namespace kernelwright::testing
