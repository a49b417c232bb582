// Life of the daemon; see server.h.
#include "daemon/service/server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "daemon/base/clock.h"
#include "daemon/base/errno_status.h"
#include "daemon/base/files.h"
#include "daemon/base/hash.h"
#include "daemon/base/log.h"
#include "daemon/service/channel.h"
#include "daemon/service/grpc_service.h"
#include "daemon/service/wire_status.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"

namespace kernelwright::service {
namespace {

// How long calls in progress may take to end at a stop before they are cut off.
constexpr auto kDrain = std::chrono::seconds(2);
constexpr auto kLockRetry = std::chrono::milliseconds(100);
constexpr auto kPingTimeout = std::chrono::seconds(5);
constexpr int kPingsBeforeRebind = 2;
constexpr int kMaxThreads = 128;

Status OtherServes(pid_t pid, const RuntimeFolder& folder) {
  std::string message = "another daemon serves already";
  if (pid != 0) message += ": process " + std::to_string(pid);
  if (const Expected<Discovery> other = ReadDiscovery(folder.discovery()); other && other->pid == pid) {
    message += ", " + other->build.ToString() + ", since " + FormatTimeUtc(other->start_ms);
  }
  return Status(ErrorKind::kConflict, message, folder.lock(), "Use it, or end it with 'kernelwright stop'.");
}

}  // namespace

Server::Server(ServerOptions options, LockFile lock)
    : options_(std::move(options)), lock_(std::make_unique<LockFile>(std::move(lock))) {}

Expected<std::unique_ptr<Server>> Server::Start(ServerOptions options, const EngineFactory& make_engine) {
  auto locked = LockFile::TryLock(options.folder.lock());
  if (!locked) return Fail(locked.error());
  if (const auto* held = std::get_if<LockFile::Held>(&*locked)) {
    // A client that asks who has the lock holds it for an instant itself.
    Expected<LockFile> retried = LockFile::Lock(options.folder.lock(), Deadline::After(kLockRetry));
    if (!retried) return Fail(OtherServes(held->pid, options.folder));
    locked = std::move(*retried);
  }
  std::unique_ptr<Server> server(new Server(std::move(options), std::get<LockFile>(std::move(*locked))));

  auto engine = make_engine();
  if (!engine) return Fail(engine.error());
  server->engine_ = std::move(*engine);

  Expected<std::string> token = RandomToken();
  if (!token) return Fail(token.error());
  Expected<std::string> cookie = RandomToken();
  if (!cookie) return Fail(cookie.error());
  server->identity_ = {.socket = server->options_.folder.socket(),
                       .token = *token,
                       .cookie = *cookie,
                       .pid = ::getpid(),
                       .start_ms = SystemClock().NowMs(),
                       .build = server->options_.build,
                       .protocol = server->options_.protocol};
  Server* raw = server.get();
  server->service_ = std::make_unique<GrpcService>(server->engine_.get(), &server->activity_, server->identity_,
                                                   [raw] { raw->RequestEnd("a client asked for it"); });
  if (Status bound = server->Bind(); !bound.ok()) return Fail(bound);
  if (Status written = WriteDiscovery(server->options_.folder.discovery(), server->identity_); !written.ok()) {
    return Fail(written);
  }
  server->housekeeper_ = std::jthread([raw](std::stop_token stop) { raw->Housekeep(std::move(stop)); });
  return server;
}

Server::~Server() { Stop(); }

Status Server::Bind() {
  SetUpGrpc();
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + identity_.socket, grpc::InsecureServerCredentials());
  builder.RegisterService(service_.get());
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Small and steady: one completion queue; a thread per call in progress, up to a limit that answers "retry".
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  grpc::ResourceQuota quota("kernelwright");
  quota.SetMaxThreads(kMaxThreads);
  builder.SetResourceQuota(quota);
  grpc_ = builder.BuildAndStart();
  if (grpc_ == nullptr) {
    return Status(ErrorKind::kEnvironment, "the daemon's socket cannot be opened", identity_.socket,
                  "Check that its folder is on a local file system with free space, or use --in-process.");
  }
  if (::chmod(identity_.socket.c_str(), 0600) != 0) {
    return StatusFromErrno(errno, "cannot make the daemon's socket private", identity_.socket);
  }
  return {};
}

void Server::Unbind() {
  if (grpc_ == nullptr) return;
  grpc_->Shutdown(std::chrono::system_clock::now() + kDrain);
  grpc_->Wait();
  grpc_.reset();
}

std::string Server::WaitForEnd() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !end_reason_.empty(); });
  return end_reason_;
}

void Server::RequestEnd(std::string reason) {
  const std::lock_guard lock(mutex_);
  if (end_reason_.empty()) end_reason_ = std::move(reason);
  changed_.notify_all();
}

void Server::Stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
  }
  // No new work; then runs are interrupted, which ends the streams that follow them; then the calls end.
  activity_.TryClose([] { return 0; }, /*even_if_busy=*/true);
  if (housekeeper_.joinable()) {
    housekeeper_.request_stop();
    housekeeper_.join();
  }
  if (engine_ != nullptr) engine_->Shutdown();
  Unbind();
  service_.reset();
  engine_.reset();
  if (!identity_.socket.empty()) {
    ::unlink(options_.folder.discovery().c_str());
    ::unlink(identity_.socket.c_str());
  }
  lock_.reset();
}

void Server::Housekeep(std::stop_token stop) {
  using std::chrono::milliseconds;
  const milliseconds forever = std::chrono::hours(24);
  const milliseconds idle_step = options_.idle_exit.count() == 0
                                     ? forever
                                     : std::clamp(options_.idle_exit / 10, milliseconds(10), milliseconds(15000));
  const milliseconds ping_step = options_.ping_interval.count() == 0 ? forever : options_.ping_interval;
  auto next_ping = Activity::Clock::now() + ping_step;
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_until(lock, stop, std::min(Activity::Clock::now() + idle_step, next_ping),
                          [this] { return !end_reason_.empty(); });
      if (!end_reason_.empty() || stop.stop_requested()) return;
    }
    if (options_.idle_exit.count() != 0) EndIfIdle();
    if (Activity::Clock::now() >= next_ping) {
      CheckReachable();
      next_ping = Activity::Clock::now() + ping_step;
    }
  }
}

void Server::EndIfIdle() {
  const auto now = Activity::Clock::now();
  const auto idle_since = activity_.idle_since();
  if (!idle_since) return;
  const auto active_runs = [this] {
    const Expected<agents::EngineStatus> status = engine_->GetStatus();
    return status ? status->active_runs : 1;
  };
  if (now - *idle_since < options_.idle_exit) {
    // Cheap question first: a run is asked for only when no client has been there for long enough.
    return;
  }
  if (active_runs() > 0) {
    busy_at_ = now;
    return;
  }
  if (now - busy_at_ < options_.idle_exit) return;
  if (!activity_.TryClose(active_runs, /*even_if_busy=*/false).any()) {
    RequestEnd("no client and no work for " + std::to_string(options_.idle_exit.count() / 1000) + " s");
  }
}

Status Server::PingSelf() const {
  const std::shared_ptr<grpc::Channel> channel = MakeChannel(identity_.socket);
  const auto stub = v1::Kernelwright::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPingTimeout);
  context.AddMetadata(kTokenKey, identity_.token);
  context.AddMetadata(kSelfKey, "1");
  v1::HandshakeReply reply;
  const grpc::Status status = stub->Handshake(&context, v1::HandshakeRequest(), &reply);
  if (!status.ok()) return Status(ErrorKind::kInternal, status.error_message());
  if (reply.cookie() != identity_.cookie) return Status(ErrorKind::kInternal, "somebody else answers on the socket");
  return {};
}

void Server::CheckReachable() {
  const Status pinged = PingSelf();
  if (pinged.ok()) {
    failed_pings_ = 0;
    // A client that finds no discovery file cannot find the daemon either.
    const Expected<Discovery> announced = ReadDiscovery(options_.folder.discovery());
    if (announced && announced->token == identity_.token) return;
    if (Status written = WriteDiscovery(options_.folder.discovery(), identity_); !written.ok()) {
      LogWarning("the discovery file cannot be restored: {}", written.ToString());
    }
    return;
  }
  LogWarning("the daemon does not reach itself: {}", pinged.ToString());
  if (++failed_pings_ < kPingsBeforeRebind) return;
  failed_pings_ = 0;
  Unbind();
  // The folder itself may be gone, as when a clean-up of temporary files took it.
  if (Status made = MakePrivateFolder(options_.folder.folder); !made.ok()) {
    RequestEnd("the daemon's folder is gone: " + made.ToString());
    return;
  }
  Status bound = Bind();
  if (bound.ok()) bound = WriteDiscovery(options_.folder.discovery(), identity_);
  if (!bound.ok()) {
    RequestEnd("the daemon cannot be reached any more: " + bound.ToString());
    return;
  }
  LogWarning("the daemon opened its socket again");
}

}  // namespace kernelwright::service
