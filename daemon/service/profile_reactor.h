// The profile call, on a thread of its own that a client's cancel stops at once.
#pragma once

#include "daemon/agents/engine.h"
#include "daemon/service/activity.h"
#include "grpcpp/support/server_callback.h"
#include "kernelwright/v1/profile.pb.h"

namespace kernelwright::service {

grpc::ServerUnaryReactor* ServeProfile(agents::Engine* engine, const v1::ProfileRequest& request,
                                       v1::ProfileReply* reply, Activity::Call call);

}  // namespace kernelwright::service
