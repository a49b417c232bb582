// The call that checks a file: a stream of finished stages and, last, the result. It has a thread of its own that a
// client's cancel stops at once.
#pragma once

#include "daemon/agents/engine.h"
#include "daemon/service/activity.h"
#include "grpcpp/support/server_callback.h"
#include "kernelwright/v1/check.pb.h"

namespace kernelwright::service {

// The returned object deletes itself when the call is done.
grpc::ServerWriteReactor<v1::CheckEvent>* ServeCheck(agents::Engine* engine, const v1::CheckRequest& request,
                                                     Activity::Call call);
grpc::ServerWriteReactor<v1::CheckEvent>* RefuseCheck(const grpc::Status& status);

}  // namespace kernelwright::service
