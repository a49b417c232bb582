// Probe, decide, spawn; see launcher.h.
#include "daemon/service/launcher.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "daemon/base/clock.h"
#include "daemon/base/lock_file.h"
#include "daemon/base/unique_fd.h"

namespace kernelwright::service {
namespace {

constexpr auto kHandshake = std::chrono::seconds(5);

std::string Describe(const Peer& peer) {
  return "daemon " + peer.build.ToString() + ", process " + std::to_string(peer.pid) + ", started " +
         FormatTimeUtc(peer.start_ms);
}

std::string BusyText(uint32_t runs, uint32_t streams) {
  std::string text;
  if (runs > 0) text += std::to_string(runs) + (runs == 1 ? " run" : " runs");
  if (streams > 0) text += (text.empty() ? "" : " and ") + std::to_string(streams) + " attached clients";
  return text.empty() ? "other calls" : text;
}

Status UpdateClientStatus(const LaunchOptions& options, const HandshakeResult& daemon) {
  return Status(
      ErrorKind::kEnvironment,
      "this client " + options.identity.build.ToString() + " is older than the " + Describe(daemon.peer) +
          ", which does not speak its protocol any more",
      "", "Update this client; or end the daemon with the newer build's 'kernelwright stop'; or use --in-process.");
}

Status WaitStatus(const LaunchOptions& options, const HandshakeResult& daemon) {
  return Status(ErrorKind::kEnvironment,
                "the older " + Describe(daemon.peer) + " is busy with " +
                    BusyText(daemon.active_runs, daemon.active_streams) +
                    " and does not speak the protocol of this client " + options.identity.build.ToString(),
                "",
                "The daemon is the side to update: it is replaced by itself once it has nothing to do. Wait for that, "
                "cancel its work, or use --in-process.");
}

void Note(const LaunchOptions& options, const std::string& text) {
  if (options.note) options.note(text);
}

// Waits for a daemon that another process is starting. The folder is watched from before the first look, so no
// announcement is missed; the timer only notices a starter that died.
Expected<std::optional<Found>> AwaitDaemon(const LaunchOptions& options, const Deadline& deadline) {
  const UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (watch.valid()) ::inotify_add_watch(watch.get(), options.folder.folder.c_str(), IN_MOVED_TO | IN_CREATE);
  while (true) {
    Expected<std::optional<Found>> found = FindDaemon(options.folder, options.identity);
    if (found && *found) return found;
    const Expected<pid_t> holder = LockFile::Holder(options.folder.lock());
    if (holder && *holder == 0) return std::optional<Found>();
    if (deadline.expired()) {
      if (!found) return found;
      return Fail(ErrorKind::kEnvironment,
                  "a daemon, process " + std::to_string(holder ? *holder : 0) + ", was started but does not serve",
                  options.folder.lock(), "End that process, or use --in-process.");
    }
    pollfd wait{watch.get(), POLLIN, 0};
    const Deadline look_again = Deadline::After(std::chrono::milliseconds(200)).Earlier(deadline);
    if (::poll(&wait, watch.valid() ? 1 : 0, look_again.PollTimeout()) > 0) {
      char events[4096];
      while (::read(watch.get(), events, sizeof(events)) > 0) {
      }
    }
  }
}

// A client of the daemon found, if the rules let us use it. Empty: it has to be replaced.
Expected<std::unique_ptr<GrpcClient>> UseIfAllowed(const LaunchOptions& options, Found* found) {
  switch (ChooseByVersion(options.identity, found->daemon)) {
    case VersionChoice::kUse:
      if (found->daemon.peer.build.OlderThan(options.identity.build)) {
        Note(options, "using the older " + Describe(found->daemon.peer) + ": it is busy with " +
                          BusyText(found->daemon.active_runs, found->daemon.active_streams) +
                          " and will be replaced once it is idle");
      }
      return std::move(found->client);
    case VersionChoice::kUpdateClient:
      return Fail(UpdateClientStatus(options, found->daemon));
    case VersionChoice::kWait:
      return Fail(WaitStatus(options, found->daemon));
    case VersionChoice::kReplace:
      break;
  }
  return std::unique_ptr<GrpcClient>();
}

// Asks an older, idle daemon to end and waits until it has. A client when it turned out to be busy but usable.
Expected<std::unique_ptr<GrpcClient>> Retire(const LaunchOptions& options, Found found, const Deadline& deadline) {
  const Expected<StopResult> stopped = found.client->StopDaemon(/*even_if_busy=*/false);
  if (stopped && !stopped->stopping) {
    // It took up work, or got a client, between the handshake and now.
    found.daemon.active_runs = stopped->active_runs;
    found.daemon.active_streams = stopped->active_streams;
    if (!options.identity.protocol.Overlaps(found.daemon.protocol)) return Fail(WaitStatus(options, found.daemon));
    return std::move(found.client);
  }
  // Also when the call failed: it may be ending for its own reasons, and the lock tells.
  if (Expected<LockFile> freed = LockFile::Lock(options.folder.lock(), deadline); !freed) {
    return Fail(ErrorKind::kEnvironment, "the older " + Describe(found.daemon.peer) + " does not end",
                options.folder.lock(), "End that process, or use --in-process.");
  }
  Note(options, "replaced the older, idle " + Describe(found.daemon.peer));
  return std::unique_ptr<GrpcClient>();
}

}  // namespace

VersionChoice ChooseByVersion(const ClientIdentity& client, const HandshakeResult& daemon) {
  const bool fits = client.protocol.Overlaps(daemon.protocol);
  if (!daemon.peer.build.OlderThan(client.build)) return fits ? VersionChoice::kUse : VersionChoice::kUpdateClient;
  if (daemon.active_runs == 0 && daemon.active_streams == 0) return VersionChoice::kReplace;
  return fits ? VersionChoice::kUse : VersionChoice::kWait;
}

Expected<std::optional<Found>> FindDaemon(const RuntimeFolder& folder, const ClientIdentity& identity) {
  const Expected<Discovery> discovery = ReadDiscovery(folder.discovery());
  if (!discovery) {
    // A damaged file is what a daemon that starts will replace; one that others can touch is not ours to trust.
    if (discovery.error().kind() == ErrorKind::kEnvironment) return Fail(discovery.error());
    return std::optional<Found>();
  }
  Found found;
  found.client = MakeGrpcClient(*discovery, identity);
  Expected<HandshakeResult> handshake = found.client->Handshake(kHandshake);
  if (handshake) {
    found.daemon = std::move(*handshake);
    return std::optional<Found>(std::move(found));
  }
  // Left over by a daemon that was killed: the kernel has freed its lock.
  const Expected<pid_t> holder = LockFile::Holder(folder.lock());
  if (holder && *holder == 0) return std::optional<Found>();
  return Fail(ErrorKind::kEnvironment,
              "the daemon, process " + std::to_string(holder ? *holder : 0) +
                  ", does not answer: " + handshake.error().message(),
              folder.socket(), "Run the command again; if it persists, end that process, or use --in-process.");
}

Expected<std::unique_ptr<GrpcClient>> Connect(const LaunchOptions& options) {
  // The common case takes no lock.
  if (Expected<std::optional<Found>> found = FindDaemon(options.folder, options.identity); found && *found) {
    Expected<std::unique_ptr<GrpcClient>> client = UseIfAllowed(options, &**found);
    if (!client || *client) return client;
  }
  const Deadline deadline = Deadline::After(options.start_timeout);
  Expected<LockFile> starting = LockFile::Lock(options.folder.start_lock(), deadline);
  if (!starting) return Fail(starting.error());
  // A start that meets a daemon which another process is starting waits for that one; should it die, one more turn.
  for (int turn = 0; turn < 3; ++turn) {
    Expected<std::optional<Found>> found = AwaitDaemon(options, deadline);
    if (!found) return Fail(found.error());
    if (*found) {
      Expected<std::unique_ptr<GrpcClient>> client = UseIfAllowed(options, &**found);
      if (!client || *client) return client;
      client = Retire(options, std::move(**found), deadline);
      if (!client || *client) return client;
    }
    const Expected<StartupReport> report = SpawnDaemon(options.command, deadline);
    if (!report) return Fail(report.error());
  }
  Expected<std::optional<Found>> found = AwaitDaemon(options, deadline);
  if (!found) return Fail(found.error());
  if (*found) return std::move((*found)->client);
  return Fail(ErrorKind::kInternal, "the daemon ends again after each start", options.folder.folder,
              "Run 'kernelwright serve' to see why, or use --in-process.");
}

}  // namespace kernelwright::service
