// Calls over the socket, with the token on each; see grpc_client.h.
#include "daemon/service/grpc_client.h"

#include <optional>
#include <utility>

#include "daemon/base/hash.h"
#include "daemon/service/channel.h"
#include "daemon/service/grpc_service.h"
#include "daemon/service/marshal.h"
#include "daemon/service/marshal_check.h"
#include "daemon/service/marshal_profile.h"
#include "daemon/service/wire_status.h"
#include "kernelwright/v1/session.grpc.pb.h"

namespace kernelwright::service {
namespace {

// Calls that only read or note something answer well below this; without a limit a hung daemon would hang the command.
constexpr auto kBriefCall = std::chrono::seconds(60);

v1::RunId Id(const std::string& run) {
  v1::RunId id;
  id.set_run(run);
  return id;
}

class GrpcClientImpl final : public GrpcClient {
 public:
  GrpcClientImpl(Discovery discovery, ClientIdentity identity)
      : discovery_(std::move(discovery)),
        identity_(std::move(identity)),
        stub_(v1::Kernelwright::NewStub(MakeChannel(discovery_.socket))) {}

  Peer peer() const override { return peer_; }

  Expected<HandshakeResult> Handshake(std::chrono::milliseconds timeout) override {
    grpc::ClientContext context;
    Prepare(&context);
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    v1::HandshakeRequest request;
    request.set_client_version(identity_.build.version);
    request.set_client_build(identity_.build.build);
    request.set_client_commit(identity_.build.commit);
    request.set_protocol_version(identity_.protocol.max);
    request.set_min_protocol_version(identity_.protocol.min);
    v1::HandshakeReply reply;
    if (Status called = FromWire(stub_->Handshake(&context, request, &reply), "Handshake"); !called.ok()) {
      return Fail(called);
    }
    if (!EqualInConstantTime(reply.cookie(), discovery_.cookie)) {
      return Fail(ErrorKind::kEnvironment,
                  "what answers on the daemon's socket is not the daemon that announced itself", discovery_.socket,
                  "Run 'kernelwright doctor'; if it persists, remove the folder of the socket.");
    }
    HandshakeResult result;
    result.peer = {.in_process = false,
                   .pid = reply.pid(),
                   .start_ms = reply.start_unix_ms(),
                   .build = {reply.version(), reply.build(), reply.commit()},
                   .socket = discovery_.socket};
    const uint32_t min = reply.min_protocol_version();
    result.protocol = {min == 0 ? reply.protocol_version() : min, reply.protocol_version()};
    result.active_runs = reply.active_runs();
    result.active_streams = reply.active_streams();
    peer_ = result.peer;
    return result;
  }

  Expected<StopResult> StopDaemon(bool even_if_busy) override {
    v1::StopRequest request;
    request.set_even_if_busy(even_if_busy);
    v1::StopReply reply;
    if (Status s = Brief("StopDaemon", &v1::Kernelwright::Stub::StopDaemon, request, &reply); !s.ok()) return Fail(s);
    return StopResult{reply.stopping(), reply.active_runs(), reply.active_streams()};
  }

  Expected<std::string> StartRun(const agents::RunRequest& request) override {
    v1::StartRunReply reply;
    if (Status s = Brief("StartRun", &v1::Kernelwright::Stub::StartRun, ToProto(request), &reply); !s.ok()) {
      return Fail(s);
    }
    return reply.run();
  }

  Status WatchEvents(const std::string& run, uint64_t since, bool follow,
                     const std::function<bool(const agents::RunEvent&)>& on_event, std::stop_token stop) override {
    grpc::ClientContext context;
    Prepare(&context);
    v1::WatchRequest request;
    request.set_run(run);
    request.set_since_sequence(since);
    request.set_follow(follow);
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    const auto reader = stub_->WatchEvents(&context, request);
    v1::Event message;
    Status failed;
    bool enough = false;
    while (reader->Read(&message)) {
      Expected<agents::RunEvent> event = FromProto(message);
      if (!event) {
        failed = event.error();
      } else if (!on_event(*event)) {
        enough = true;
      }
      if (enough || !failed.ok()) {
        context.TryCancel();
        break;
      }
    }
    const grpc::Status ended = reader->Finish();
    if (!failed.ok()) return failed;
    if (enough) return {};
    return FromWire(ended, "WatchEvents");
  }

  Expected<bool> CancelRun(const std::string& run) override {
    v1::CancelReply reply;
    if (Status s = Brief("CancelRun", &v1::Kernelwright::Stub::CancelRun, Id(run), &reply); !s.ok()) return Fail(s);
    return reply.was_running();
  }

  Expected<std::string> ResumeRun(const std::string& run) override {
    v1::StartRunReply reply;
    if (Status s = Brief("ResumeRun", &v1::Kernelwright::Stub::ResumeRun, Id(run), &reply); !s.ok()) return Fail(s);
    return reply.run();
  }

  Expected<std::vector<agents::RunInfo>> ListRuns(uint32_t limit) override {
    v1::ListRunsRequest request;
    request.set_limit(limit);
    v1::ListRunsReply reply;
    if (Status s = Brief("ListRuns", &v1::Kernelwright::Stub::ListRuns, request, &reply); !s.ok()) return Fail(s);
    std::vector<agents::RunInfo> runs;
    runs.reserve(static_cast<size_t>(reply.runs_size()));
    for (const v1::RunRecord& run : reply.runs()) runs.push_back(FromProto(run));
    return runs;
  }

  Expected<agents::RunInfo> GetRun(const std::string& run) override {
    v1::RunRecord reply;
    if (Status s = Brief("GetRun", &v1::Kernelwright::Stub::GetRun, Id(run), &reply); !s.ok()) return Fail(s);
    return FromProto(reply);
  }

  Status ExportRun(const std::string& run, const std::function<bool(std::string_view)>& write) override {
    grpc::ClientContext context;
    Prepare(&context);
    const auto reader = stub_->ExportRun(&context, Id(run));
    v1::Chunk chunk;
    bool enough = false;
    while (!enough && reader->Read(&chunk)) enough = !write(chunk.data());
    if (enough) context.TryCancel();
    const grpc::Status ended = reader->Finish();
    return enough ? Status() : FromWire(ended, "ExportRun");
  }

  Expected<agents::PruneResult> PruneRuns(const agents::PruneOptions& options) override {
    v1::PruneReply reply;
    if (Status s = Brief("PruneRuns", &v1::Kernelwright::Stub::PruneRuns, ToProto(options), &reply); !s.ok()) {
      return Fail(s);
    }
    return FromProto(reply);
  }

  Expected<std::vector<agents::DoctorItem>> Doctor(const agents::DoctorOptions& options,
                                                   std::stop_token stop) override {
    grpc::ClientContext context;
    Prepare(&context);
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    v1::DoctorReply reply;
    if (Status s = FromWire(stub_->Doctor(&context, ToProto(options), &reply), "Doctor"); !s.ok()) return Fail(s);
    std::vector<agents::DoctorItem> items;
    items.reserve(static_cast<size_t>(reply.items_size()));
    for (const v1::DoctorItem& item : reply.items()) items.push_back(FromProto(item));
    return items;
  }

  Expected<agents::CheckResult> Check(const agents::CheckRequest& request, const agents::OnCheckStage& on_stage,
                                      std::stop_token stop) override {
    grpc::ClientContext context;
    Prepare(&context);
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    const auto reader = stub_->Check(&context, ToProto(request));
    v1::CheckEvent event;
    std::optional<agents::CheckResult> result;
    while (reader->Read(&event)) {
      if (event.has_result()) {
        result = FromProto(event.result());
      } else if (event.has_stage() && on_stage) {
        on_stage(FromProto(event.stage()));
      }
    }
    if (Status ended = FromWire(reader->Finish(), "Check"); !ended.ok()) return Fail(ended);
    if (!result) return Fail(ErrorKind::kInternal, "the daemon ended the check without a result", "Check");
    return *std::move(result);
  }

  Expected<agents::ProfileReply> Profile(const agents::ProfileRequest& request, std::stop_token stop) override {
    grpc::ClientContext context;
    Prepare(&context);
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    v1::ProfileReply reply;
    if (Status s = FromWire(stub_->Profile(&context, ToProto(request), &reply), "Profile"); !s.ok()) return Fail(s);
    return FromProto(std::move(reply));
  }

  Expected<ServiceStatus> GetStatus() override {
    v1::StatusReply reply;
    if (Status s = Brief("GetStatus", &v1::Kernelwright::Stub::GetStatus, v1::StatusRequest(), &reply); !s.ok()) {
      return Fail(s);
    }
    ServiceStatus status;
    status.engine.active_runs = reply.active_runs();
    status.engine.queued_jobs = reply.queued_jobs();
    status.engine.store_bytes = reply.store_bytes();
    status.engine.workers.assign(reply.workers().begin(), reply.workers().end());
    status.resident_bytes = reply.resident_bytes();
    status.uptime_ms = reply.uptime_ms();
    return status;
  }

 private:
  void Prepare(grpc::ClientContext* context) const { context->AddMetadata(kTokenKey, discovery_.token); }

  template <typename Method, typename Request, typename Reply>
  Status Brief(const char* name, Method method, const Request& request, Reply* reply) {
    grpc::ClientContext context;
    Prepare(&context);
    context.set_deadline(std::chrono::system_clock::now() + kBriefCall);
    return FromWire((stub_.get()->*method)(&context, request, reply), name);
  }

  const Discovery discovery_;
  const ClientIdentity identity_;
  const std::unique_ptr<v1::Kernelwright::Stub> stub_;
  Peer peer_;
};

}  // namespace

std::unique_ptr<GrpcClient> MakeGrpcClient(const Discovery& discovery, const ClientIdentity& identity) {
  return std::make_unique<GrpcClientImpl>(discovery, identity);
}

}  // namespace kernelwright::service
