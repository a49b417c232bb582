// The two calls that last: events and the doctor. Each has a thread of its own that a client's cancel stops at once.
#pragma once

#include "daemon/agents/engine.h"
#include "daemon/service/activity.h"
#include "grpcpp/support/server_callback.h"
#include "kernelwright/v1/session.pb.h"

namespace kernelwright::service {

// Replays since the number asked for, then follows. Memory is bounded whatever the client's speed: one batch is in
// hand, the rest waits in the store. The returned object deletes itself when the call is done.
grpc::ServerWriteReactor<v1::Event>* ServeWatch(agents::Engine* engine, const v1::WatchRequest& request,
                                                Activity::Call call);
grpc::ServerWriteReactor<v1::Event>* RefuseWatch(const grpc::Status& status);

grpc::ServerUnaryReactor* ServeDoctor(agents::Engine* engine, const v1::DoctorRequest& request, v1::DoctorReply* reply,
                                      Activity::Call call);
grpc::ServerUnaryReactor* RefuseDoctor(const grpc::Status& status);

}  // namespace kernelwright::service
