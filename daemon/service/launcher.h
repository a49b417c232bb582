// Finds the daemon of this user and machine, or starts one. Reading, probing and spawning happen under one lock, so
// that of many parallel commands one starts the daemon and the others connect; whether a daemon of another build is
// used, replaced or reported follows from the total order of builds.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/base/status.h"
#include "daemon/service/grpc_client.h"
#include "daemon/service/runtime_folder.h"
#include "daemon/service/spawn_daemon.h"

namespace kernelwright::service {

enum class VersionChoice {
  kUse,           // same build, or a newer daemon, or an older one that is busy; protocols fit
  kReplace,       // an older daemon with nothing to do
  kUpdateClient,  // a newer daemon that no longer speaks our protocol
  kWait,          // an older daemon that does not speak our protocol, and is busy
};

// The rule of OneDaemon, as a function of both sides.
VersionChoice ChooseByVersion(const ClientIdentity& client, const HandshakeResult& daemon);

struct LaunchOptions {
  RuntimeFolder folder;
  ClientIdentity identity;
  DaemonCommand command;
  std::chrono::milliseconds start_timeout = std::chrono::seconds(20);
  std::function<void(const std::string&)> note;  // told of a replaced or older daemon; may be empty
};

struct Found {
  std::unique_ptr<GrpcClient> client;
  HandshakeResult daemon;
};

// The daemon that serves now; empty when none does. An error when one holds the lock but does not answer.
Expected<std::optional<Found>> FindDaemon(const RuntimeFolder& folder, const ClientIdentity& identity);

// A connected client; starts or replaces the daemon where the rules say so.
Expected<std::unique_ptr<GrpcClient>> Connect(const LaunchOptions& options);

}  // namespace kernelwright::service
