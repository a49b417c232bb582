// The calls of session.proto over an engine. Knows the wire and nothing of runs: each call checks the token, counts as
// activity, translates, asks the engine and translates back.
#pragma once

#include <functional>
#include <string>

#include "daemon/agents/engine.h"
#include "daemon/service/activity.h"
#include "daemon/service/build_identity.h"
#include "daemon/service/discovery.h"
#include "kernelwright/v1/session.grpc.pb.h"

namespace kernelwright::service {

// Metadata key of the token that every call carries.
inline constexpr const char* kTokenKey = "kernelwright-token";
// Present on the daemon's calls to itself, which do not count as use.
inline constexpr const char* kSelfKey = "kernelwright-self";
// `where` of the error of a call that a closing daemon turned away; nothing was done, so the call can be made again.
inline constexpr const char* kClosingWhere = "daemon";

// Events, checks and the doctor are served by callbacks, because only those tell at once that a client has left; the
// rest is short and synchronous.
class GrpcService final : public v1::Kernelwright::WithCallbackMethod_WatchEvents<
                              v1::Kernelwright::WithCallbackMethod_Doctor<v1::Kernelwright::WithCallbackMethod_Check<
                                  v1::Kernelwright::WithCallbackMethod_Profile<v1::Kernelwright::Service>>>> {
 public:
  // `identity` has the token and the cookie; `on_stop` is called when a client asked the daemon to end and it may.
  GrpcService(agents::Engine* engine, Activity* activity, Discovery identity, std::function<void()> on_stop)
      : engine_(engine), activity_(activity), identity_(std::move(identity)), on_stop_(std::move(on_stop)) {}

  grpc::Status Handshake(grpc::ServerContext* context, const v1::HandshakeRequest* request,
                         v1::HandshakeReply* reply) override;
  grpc::Status StartRun(grpc::ServerContext* context, const v1::StartRunRequest* request,
                        v1::StartRunReply* reply) override;
  grpc::ServerWriteReactor<v1::Event>* WatchEvents(grpc::CallbackServerContext* context,
                                                   const v1::WatchRequest* request) override;
  grpc::Status CancelRun(grpc::ServerContext* context, const v1::RunId* request, v1::CancelReply* reply) override;
  grpc::Status ResumeRun(grpc::ServerContext* context, const v1::RunId* request, v1::StartRunReply* reply) override;
  grpc::Status ListRuns(grpc::ServerContext* context, const v1::ListRunsRequest* request,
                        v1::ListRunsReply* reply) override;
  grpc::Status GetRun(grpc::ServerContext* context, const v1::RunId* request, v1::RunRecord* reply) override;
  grpc::Status ExportRun(grpc::ServerContext* context, const v1::RunId* request,
                         grpc::ServerWriter<v1::Chunk>* writer) override;
  grpc::Status PruneRuns(grpc::ServerContext* context, const v1::PruneRequest* request, v1::PruneReply* reply) override;
  grpc::ServerUnaryReactor* Doctor(grpc::CallbackServerContext* context, const v1::DoctorRequest* request,
                                   v1::DoctorReply* reply) override;
  grpc::ServerWriteReactor<v1::CheckEvent>* Check(grpc::CallbackServerContext* context,
                                                  const v1::CheckRequest* request) override;
  grpc::ServerUnaryReactor* Profile(grpc::CallbackServerContext* context, const v1::ProfileRequest* request,
                                    v1::ProfileReply* reply) override;
  grpc::Status GetStatus(grpc::ServerContext* context, const v1::StatusRequest* request,
                         v1::StatusReply* reply) override;
  grpc::Status StopDaemon(grpc::ServerContext* context, const v1::StopRequest* request, v1::StopReply* reply) override;

 private:
  grpc::Status CheckToken(const grpc::ServerContextBase& context) const;
  // Token, activity, then `body`, which returns our Status.
  template <typename Body>
  grpc::Status Serve(const grpc::ServerContextBase& context, Activity::Kind kind, Body body);
  uint32_t ActiveRuns() const;

  agents::Engine* engine_;
  Activity* activity_;
  const Discovery identity_;
  const std::function<void()> on_stop_;
};

}  // namespace kernelwright::service
