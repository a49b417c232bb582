// A gRPC channel to a daemon's socket.
#pragma once

#include <memory>
#include <string>

#include "grpcpp/channel.h"

namespace kernelwright::service {

// Results carry whole files; profiles go in chunks.
inline constexpr int kMaxMessageBytes = 64 << 20;

// Always a connection of its own, made at the first call; gives up at once when nobody listens.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& socket);

// Once for the process, before gRPC is used; channel and server see to it themselves. Sends gRPC's own messages to our
// log: they must never reach standard output, which carries results and protocols. And keeps the library up until the
// process ends: its last user would otherwise wait, at times for ten seconds, for a poller to return.
void SetUpGrpc();

}  // namespace kernelwright::service
