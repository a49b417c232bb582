// The daemon: lock, engine, socket, discovery file, and the reasons to end. The order is the point: the lock comes
// first, so that whoever loses never touches the winner's socket (gRPC removes whatever socket is in its way); the
// discovery file comes last, so that whoever reads it finds somebody there; and the lock is let go after all else.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "daemon/agents/engine.h"
#include "daemon/base/lock_file.h"
#include "daemon/base/status.h"
#include "daemon/service/activity.h"
#include "daemon/service/build_identity.h"
#include "daemon/service/discovery.h"
#include "daemon/service/runtime_folder.h"

namespace grpc {
class Server;
}

namespace kernelwright::service {

class GrpcService;

struct ServerOptions {
  RuntimeFolder folder;
  BuildIdentity build = ThisBuild();
  ProtocolRange protocol = kProtocol;
  std::chrono::milliseconds idle_exit = std::chrono::minutes(10);      // 0: never
  std::chrono::milliseconds ping_interval = std::chrono::seconds(30);  // of the daemon to itself; 0: never
};

// Made after the lock is held.
using EngineFactory = std::function<Expected<std::unique_ptr<agents::Engine>>()>;

class Server {
 public:
  // kConflict, with the other's process, when another daemon serves.
  static Expected<std::unique_ptr<Server>> Start(ServerOptions options, const EngineFactory& make_engine);
  // Ends as Stop does.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const Discovery& identity() const { return identity_; }

  // Waits until there is a reason to end, and returns it in words.
  std::string WaitForEnd();
  // Gives a reason to end; from any thread.
  void RequestEnd(std::string reason);
  // Interrupts the runs, ends streams and calls, removes socket and discovery file, frees the lock. Safe to call twice.
  void Stop();

 private:
  Server(ServerOptions options, LockFile lock);

  Status Bind();
  void Unbind();
  // Runs beside the service: ends it when idle, and pings it through the socket.
  void Housekeep(std::stop_token stop);
  void EndIfIdle();
  void CheckReachable();
  Status PingSelf() const;

  const ServerOptions options_;
  std::unique_ptr<LockFile> lock_;
  Discovery identity_;
  Activity activity_;
  std::unique_ptr<agents::Engine> engine_;
  std::unique_ptr<GrpcService> service_;
  std::unique_ptr<grpc::Server> grpc_;
  Activity::Clock::time_point busy_at_ = Activity::Clock::now();  // when a run was last seen active
  int failed_pings_ = 0;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string end_reason_;
  bool stopped_ = false;
  std::jthread housekeeper_;
};

}  // namespace kernelwright::service
