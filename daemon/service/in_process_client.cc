// The client of --in-process: the same calls without a daemon; see client.h.
#include <unistd.h>

#include <utility>

#include "daemon/base/clock.h"
#include "daemon/service/client.h"
#include "daemon/service/memory.h"

namespace kernelwright::service {
namespace {

class InProcessClient final : public Client {
 public:
  explicit InProcessClient(std::unique_ptr<agents::Engine> engine) : engine_(std::move(engine)) {}
  ~InProcessClient() override { engine_->Shutdown(); }

  Peer peer() const override {
    return {.in_process = true, .pid = ::getpid(), .start_ms = start_ms_, .build = ThisBuild(), .socket = {}};
  }
  Expected<std::string> StartRun(const agents::RunRequest& request) override { return engine_->StartRun(request); }
  Status WatchEvents(const std::string& run, uint64_t since, bool follow,
                     const std::function<bool(const agents::RunEvent&)>& on_event, std::stop_token stop) override {
    auto stream = engine_->Subscribe(run, since, follow);
    if (!stream) return stream.error();
    while (true) {
      auto batch = (*stream)->Next(stop, Deadline::Never());
      if (!batch) return batch.error();
      for (const agents::RunEvent& event : batch->events) {
        if (!on_event(event)) return {};
      }
      if (batch->ended) return {};
      if (stop.stop_requested()) return Status(ErrorKind::kCancelled, "watching was cancelled");
    }
  }
  Expected<bool> CancelRun(const std::string& run) override { return engine_->CancelRun(run); }
  Expected<std::string> ResumeRun(const std::string& run) override { return engine_->ResumeRun(run); }
  Expected<std::vector<agents::RunInfo>> ListRuns(uint32_t limit) override {
    return engine_->ListRuns(limit == 0 ? 50 : limit);
  }
  Expected<agents::RunInfo> GetRun(const std::string& run) override { return engine_->GetRun(run); }
  Status ExportRun(const std::string& run, const std::function<bool(std::string_view)>& write) override {
    return engine_->ExportRun(run, write);
  }
  Expected<agents::PruneResult> PruneRuns(const agents::PruneOptions& options) override {
    return engine_->PruneRuns(options);
  }
  Expected<std::vector<agents::DoctorItem>> Doctor(const agents::DoctorOptions& options,
                                                   std::stop_token stop) override {
    return engine_->Doctor(options, std::move(stop));
  }
  Expected<agents::CheckResult> Check(const agents::CheckRequest& request, const agents::OnCheckStage& on_stage,
                                      std::stop_token stop) override {
    return engine_->Check(request, on_stage, std::move(stop));
  }
  Expected<agents::ProfileReply> Profile(const agents::ProfileRequest& request, std::stop_token stop) override {
    return engine_->Profile(request, std::move(stop));
  }
  Expected<ServiceStatus> GetStatus() override {
    auto status = engine_->GetStatus();
    if (!status) return Fail(status.error());
    return ServiceStatus{std::move(*status), ResidentBytes(), SystemClock().NowMs() - start_ms_};
  }

 private:
  std::unique_ptr<agents::Engine> engine_;
  const int64_t start_ms_ = SystemClock().NowMs();
};

}  // namespace

std::unique_ptr<Client> MakeInProcessClient(std::unique_ptr<agents::Engine> engine) {
  return std::make_unique<InProcessClient>(std::move(engine));
}

}  // namespace kernelwright::service
