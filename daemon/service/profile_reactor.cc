// See profile_reactor.h; the object deletes itself when the call is done.
#include "daemon/service/profile_reactor.h"

#include <utility>

#include "daemon/service/call_thread.h"
#include "daemon/service/marshal_profile.h"
#include "daemon/service/wire_status.h"

namespace kernelwright::service {
namespace {

class ProfileReactor final : public grpc::ServerUnaryReactor {
 public:
  ProfileReactor(agents::Engine* engine, v1::ProfileRequest request, v1::ProfileReply* reply, Activity::Call call)
      : call_(std::move(call)), thread_([this, engine, reply, request = std::move(request)](std::stop_token stop) {
          auto profile = engine->Profile(FromProto(request), std::move(stop));
          if (!profile) {
            Finish(ToWire(profile.error()));
            return;
          }
          *reply = ToProto(*profile);
          Finish(grpc::Status::OK);
        }) {}

  void Start() { thread_.Start(); }
  void OnCancel() override { thread_.RequestStop(); }
  void OnDone() override { delete this; }

 private:
  const Activity::Call call_;
  CallThread thread_;
};

}  // namespace

grpc::ServerUnaryReactor* ServeProfile(agents::Engine* engine, const v1::ProfileRequest& request,
                                       v1::ProfileReply* reply, Activity::Call call) {
  auto* reactor = new ProfileReactor(engine, request, reply, std::move(call));
  reactor->Start();
  return reactor;
}

}  // namespace kernelwright::service
