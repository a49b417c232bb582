// The client of a daemon in another process.
#pragma once

#include <chrono>
#include <memory>

#include "daemon/service/client.h"
#include "daemon/service/discovery.h"

namespace kernelwright::service {

// What a client says of itself.
struct ClientIdentity {
  BuildIdentity build = ThisBuild();
  ProtocolRange protocol = kProtocol;
};

// The daemon's answer to a handshake.
struct HandshakeResult {
  Peer peer;
  ProtocolRange protocol;
  uint32_t active_runs = 0;
  uint32_t active_streams = 0;
};

struct StopResult {
  bool stopping = false;
  uint32_t active_runs = 0;
  uint32_t active_streams = 0;
};

class GrpcClient : public Client {
 public:
  // Does the handshake and checks the cookie: whoever answers without it is not the daemon that wrote the file.
  virtual Expected<HandshakeResult> Handshake(std::chrono::milliseconds timeout) = 0;
  virtual Expected<StopResult> StopDaemon(bool even_if_busy) = 0;
};

// Does not connect yet.
std::unique_ptr<GrpcClient> MakeGrpcClient(const Discovery& discovery, const ClientIdentity& identity = {});

}  // namespace kernelwright::service
