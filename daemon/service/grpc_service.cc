// The synchronous calls; see grpc_service.h. The calls that last are in reactors.cc.
#include "daemon/service/grpc_service.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "daemon/base/clock.h"
#include "daemon/base/hash.h"
#include "daemon/base/log.h"
#include "daemon/service/check_reactor.h"
#include "daemon/service/marshal.h"
#include "daemon/service/memory.h"
#include "daemon/service/profile_reactor.h"
#include "daemon/service/reactors.h"
#include "daemon/service/wire_status.h"

namespace kernelwright::service {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;

Status ClosingStatus() {
  return Status(ErrorKind::kConflict, "the daemon is ending", kClosingWhere, "Run the command again.");
}

}  // namespace

grpc::Status GrpcService::CheckToken(const grpc::ServerContextBase& context) const {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(kTokenKey);
  if (found != metadata.end() && EqualInConstantTime({found->second.data(), found->second.size()}, identity_.token)) {
    return grpc::Status::OK;
  }
  return {grpc::StatusCode::UNAUTHENTICATED, "wrong or missing token: read it from the daemon's discovery file"};
}

template <typename Body>
grpc::Status GrpcService::Serve(const grpc::ServerContextBase& context, Activity::Kind kind, Body body) {
  if (grpc::Status checked = CheckToken(context); !checked.ok()) return checked;
  // The daemon's own pings must not keep it awake.
  if (context.client_metadata().contains(kSelfKey)) return ToWire(body());
  const std::optional<Activity::Call> call = activity_->Begin(kind);
  if (!call) return ToWire(ClosingStatus());
  return ToWire(body());
}

uint32_t GrpcService::ActiveRuns() const {
  const Expected<agents::EngineStatus> status = engine_->GetStatus();
  // An engine that cannot say is treated as busy: stopping it could cost work.
  return status ? status->active_runs : 1;
}

grpc::Status GrpcService::Handshake(grpc::ServerContext* context, const v1::HandshakeRequest* request,
                                    v1::HandshakeReply* reply) {
  return Serve(*context, Activity::Kind::kBrief, [&]() -> Status {
    (void)request;  // an incompatible client must still learn who is there, so nothing is refused here
    reply->set_cookie(identity_.cookie);
    reply->set_version(identity_.build.version);
    reply->set_build(identity_.build.build);
    reply->set_commit(identity_.build.commit);
    reply->set_protocol_version(identity_.protocol.max);
    reply->set_min_protocol_version(identity_.protocol.min);
    reply->set_pid(static_cast<uint32_t>(identity_.pid));
    reply->set_start_unix_ms(identity_.start_ms);
    reply->set_active_runs(ActiveRuns());
    reply->set_active_streams(activity_->streams());
    return {};
  });
}

grpc::Status GrpcService::StartRun(grpc::ServerContext* context, const v1::StartRunRequest* request,
                                   v1::StartRunReply* reply) {
  return Serve(*context, Activity::Kind::kWork, [&]() -> Status {
    Expected<std::string> run = engine_->StartRun(FromProto(*request));
    if (!run) return run.error();
    LogInfo("run {} started: {}", *run, request->kind());
    reply->set_run(*run);
    return {};
  });
}

grpc::Status GrpcService::CancelRun(grpc::ServerContext* context, const v1::RunId* request, v1::CancelReply* reply) {
  return Serve(*context, Activity::Kind::kBrief, [&]() -> Status {
    Expected<bool> running = engine_->CancelRun(request->run());
    if (!running) return running.error();
    reply->set_was_running(*running);
    return {};
  });
}

grpc::Status GrpcService::ResumeRun(grpc::ServerContext* context, const v1::RunId* request, v1::StartRunReply* reply) {
  return Serve(*context, Activity::Kind::kWork, [&]() -> Status {
    Expected<std::string> run = engine_->ResumeRun(request->run());
    if (!run) return run.error();
    LogInfo("run {} resumed", *run);
    reply->set_run(*run);
    return {};
  });
}

grpc::Status GrpcService::ListRuns(grpc::ServerContext* context, const v1::ListRunsRequest* request,
                                   v1::ListRunsReply* reply) {
  return Serve(*context, Activity::Kind::kBrief, [&]() -> Status {
    Expected<std::vector<agents::RunInfo>> runs = engine_->ListRuns(request->limit() == 0 ? 50 : request->limit());
    if (!runs) return runs.error();
    for (const agents::RunInfo& run : *runs) *reply->add_runs() = ToProto(run);
    return {};
  });
}

grpc::Status GrpcService::GetRun(grpc::ServerContext* context, const v1::RunId* request, v1::RunRecord* reply) {
  return Serve(*context, Activity::Kind::kBrief, [&]() -> Status {
    Expected<agents::RunInfo> run = engine_->GetRun(request->run());
    if (!run) return run.error();
    *reply = ToProto(*run);
    return {};
  });
}

grpc::Status GrpcService::ExportRun(grpc::ServerContext* context, const v1::RunId* request,
                                    grpc::ServerWriter<v1::Chunk>* writer) {
  return Serve(*context, Activity::Kind::kWork, [&]() -> Status {
    return engine_->ExportRun(request->run(), [&](std::string_view text) {
      for (size_t at = 0; at < text.size(); at += kChunkBytes) {
        v1::Chunk chunk;
        chunk.set_data(std::string(text.substr(at, kChunkBytes)));
        if (!writer->Write(chunk)) return false;
      }
      return !context->IsCancelled();
    });
  });
}

grpc::Status GrpcService::PruneRuns(grpc::ServerContext* context, const v1::PruneRequest* request,
                                    v1::PruneReply* reply) {
  return Serve(*context, Activity::Kind::kWork, [&]() -> Status {
    Expected<agents::PruneResult> result = engine_->PruneRuns(FromProto(*request));
    if (!result) return result.error();
    *reply = ToProto(*result);
    return {};
  });
}

grpc::Status GrpcService::GetStatus(grpc::ServerContext* context, const v1::StatusRequest*, v1::StatusReply* reply) {
  return Serve(*context, Activity::Kind::kBrief, [&]() -> Status {
    Expected<agents::EngineStatus> status = engine_->GetStatus();
    if (!status) return status.error();
    reply->set_active_runs(status->active_runs);
    reply->set_queued_jobs(status->queued_jobs);
    reply->set_store_bytes(status->store_bytes);
    reply->set_resident_bytes(ResidentBytes());
    reply->set_uptime_ms(SystemClock().NowMs() - identity_.start_ms);
    reply->mutable_workers()->Assign(status->workers.begin(), status->workers.end());
    return {};
  });
}

grpc::Status GrpcService::StopDaemon(grpc::ServerContext* context, const v1::StopRequest* request,
                                     v1::StopReply* reply) {
  return Serve(*context, Activity::Kind::kBrief, [&]() -> Status {
    const Activity::Busy busy = activity_->TryClose([this] { return ActiveRuns(); }, request->even_if_busy());
    reply->set_active_runs(busy.runs);
    reply->set_active_streams(busy.streams);
    reply->set_stopping(activity_->closing());
    if (reply->stopping()) on_stop_();
    return {};
  });
}

grpc::ServerWriteReactor<v1::Event>* GrpcService::WatchEvents(grpc::CallbackServerContext* context,
                                                              const v1::WatchRequest* request) {
  if (grpc::Status checked = CheckToken(*context); !checked.ok()) return RefuseWatch(checked);
  std::optional<Activity::Call> call = activity_->Begin(Activity::Kind::kStream);
  if (!call) return RefuseWatch(ToWire(ClosingStatus()));
  return ServeWatch(engine_, *request, std::move(*call));
}

grpc::ServerWriteReactor<v1::CheckEvent>* GrpcService::Check(grpc::CallbackServerContext* context,
                                                             const v1::CheckRequest* request) {
  if (grpc::Status checked = CheckToken(*context); !checked.ok()) return RefuseCheck(checked);
  std::optional<Activity::Call> call = activity_->Begin(Activity::Kind::kWork);
  if (!call) return RefuseCheck(ToWire(ClosingStatus()));
  return ServeCheck(engine_, *request, std::move(*call));
}

grpc::ServerUnaryReactor* GrpcService::Profile(grpc::CallbackServerContext* context, const v1::ProfileRequest* request,
                                               v1::ProfileReply* reply) {
  if (grpc::Status checked = CheckToken(*context); !checked.ok()) return RefuseDoctor(checked);
  std::optional<Activity::Call> call = activity_->Begin(Activity::Kind::kWork);
  if (!call) return RefuseDoctor(ToWire(ClosingStatus()));
  return ServeProfile(engine_, *request, reply, std::move(*call));
}

grpc::ServerUnaryReactor* GrpcService::Doctor(grpc::CallbackServerContext* context, const v1::DoctorRequest* request,
                                              v1::DoctorReply* reply) {
  if (grpc::Status checked = CheckToken(*context); !checked.ok()) return RefuseDoctor(checked);
  std::optional<Activity::Call> call = activity_->Begin(Activity::Kind::kWork);
  if (!call) return RefuseDoctor(ToWire(ClosingStatus()));
  return ServeDoctor(engine_, *request, reply, std::move(*call));
}

}  // namespace kernelwright::service
