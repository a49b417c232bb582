// What a command asks of the daemon, whether it is another process or, with --in-process, this one. Plain values and
// blocking calls; a command never sees the wire.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/agents/engine.h"
#include "daemon/base/status.h"
#include "daemon/service/build_identity.h"

namespace kernelwright::service {

// Who serves.
struct Peer {
  bool in_process = false;
  int64_t pid = 0;
  int64_t start_ms = 0;
  BuildIdentity build;
  std::string socket;  // empty in process
};

struct ServiceStatus {
  agents::EngineStatus engine;
  uint64_t resident_bytes = 0;
  int64_t uptime_ms = 0;
};

class Client {
 public:
  virtual ~Client() = default;

  virtual Peer peer() const = 0;
  virtual Expected<std::string> StartRun(const agents::RunRequest& request) = 0;
  // Calls `on_event` for each event after `since`, in order, until the run ends (or, without `follow`, until what is
  // stored is through), `on_event` returns false, or `stop` is requested; the last gives kCancelled.
  virtual Status WatchEvents(const std::string& run, uint64_t since, bool follow,
                             const std::function<bool(const agents::RunEvent&)>& on_event, std::stop_token stop) = 0;
  virtual Expected<bool> CancelRun(const std::string& run) = 0;
  virtual Expected<std::string> ResumeRun(const std::string& run) = 0;
  virtual Expected<std::vector<agents::RunInfo>> ListRuns(uint32_t limit) = 0;
  virtual Expected<agents::RunInfo> GetRun(const std::string& run) = 0;
  virtual Status ExportRun(const std::string& run, const std::function<bool(std::string_view)>& write) = 0;
  virtual Expected<agents::PruneResult> PruneRuns(const agents::PruneOptions& options) = 0;
  virtual Expected<std::vector<agents::DoctorItem>> Doctor(const agents::DoctorOptions& options,
                                                           std::stop_token stop) = 0;
  // Calls `on_stage` for each stage as it ends; see Engine::Check.
  virtual Expected<agents::CheckResult> Check(const agents::CheckRequest& request, const agents::OnCheckStage& on_stage,
                                              std::stop_token stop) = 0;
  virtual Expected<agents::ProfileReply> Profile(const agents::ProfileRequest& request, std::stop_token stop) = 0;
  virtual Expected<ServiceStatus> GetStatus() = 0;
};

// The engine in this process; ends it when destroyed.
std::unique_ptr<Client> MakeInProcessClient(std::unique_ptr<agents::Engine> engine);

}  // namespace kernelwright::service
