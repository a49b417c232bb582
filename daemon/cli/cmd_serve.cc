// serve: the daemon itself. Clients start it; by hand it shows its log.
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <memory>

#include "daemon/base/log.h"
#include "daemon/base/units.h"
#include "daemon/cli/connection.h"
#include "daemon/cli/context.h"
#include "daemon/cli/interrupt.h"
#include "daemon/cli/paths.h"
#include "daemon/service/server.h"
#include "daemon/service/startup_report.h"

namespace kernelwright::cli {
namespace {

struct Flags {
  double idle_exit_seconds = 600;
  double ping_seconds = 30;
  std::string log_level = "info";
  int ready_fd = -1;
};

Status StartLogging(const Flags& flags, const std::filesystem::path& state) {
  Expected<LogLevel> level = ParseLogLevel(flags.log_level);
  if (!level) return level.error();
  LogOptions options;
  options.level = *level;
  // A daemon that a client has started has nobody who reads its standard error.
  options.to_stderr = flags.ready_fd < 0;
  options.file = state / "daemon.log";
  return InitLogging(options);
}

Expected<std::unique_ptr<service::Server>> Start(Context* context, const Flags& flags) {
  ::umask(077);
  Expected<std::filesystem::path> state = StateFolder();
  if (!state) return Fail(state.error());
  Expected<service::RuntimeFolder> folder = OpenRuntime();
  if (!folder) return Fail(folder.error());
  Expected<service::ClientIdentity> identity = IdentityOf(context->common);
  if (!identity) return Fail(identity.error());
  if (Status logging = StartLogging(flags, *state); !logging.ok()) return Fail(logging);

  service::ServerOptions options;
  options.folder = *folder;
  options.build = identity->build;
  options.protocol = identity->protocol;
  using Seconds = std::chrono::duration<double>;
  options.idle_exit = std::chrono::duration_cast<std::chrono::milliseconds>(Seconds(flags.idle_exit_seconds));
  options.ping_interval = std::chrono::duration_cast<std::chrono::milliseconds>(Seconds(flags.ping_seconds));
  return service::Server::Start(options, [context]() -> Expected<std::unique_ptr<agents::Engine>> {
    Expected<agents::EngineOptions> engine = FindEngineOptions();
    if (!engine) return Fail(engine.error());
    engine->exclusive = true;
    return context->make_engine(*engine);
  });
}

Expected<int> Run(Context* context, const Flags& flags) {
  auto server = Start(context, flags);
  if (!server) {
    service::StartupReport report{service::StartupReport::Kind::kFailed, 0, server.error()};
    // The loser of the lock; its starter connects to the winner.
    if (server.error().kind() == ErrorKind::kConflict) report.kind = service::StartupReport::Kind::kHeld;
    service::SendStartupReport(flags.ready_fd, report);
    return Fail(server.error());
  }
  const service::Discovery& identity = (*server)->identity();
  LogInfo("serving: {}, process {}, socket {}", identity.build.ToString(), identity.pid, identity.socket);
  service::SendStartupReport(flags.ready_fd, {});
  std::string reason;
  {
    const InterruptWatcher interrupts([&server](int) { (*server)->RequestEnd("a signal asked for it"); });
    reason = (*server)->WaitForEnd();
  }
  LogInfo("ending: {}", reason);
  (*server)->Stop();
  LogInfo("ended");
  FlushLog();
  return 0;
}

}  // namespace

void AddServe(CLI::App* program, Context* context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program->add_subcommand("serve", "Run the daemon; the other commands start it when they need it");
  AddDuration(command, "--idle-exit", &flags->idle_exit_seconds,
              "End after this time without clients and work; 0: never; default 10m")
      ->envname("KERNELWRIGHT_IDLE_EXIT");
  AddDuration(command, "--self-check", &flags->ping_seconds,
              "How often the daemon checks that it can be reached; default 30s")
      ->envname("KERNELWRIGHT_SELF_CHECK");
  command->add_option("--log-level", flags->log_level, "trace, debug, info, warning, error or off")
      ->envname("KERNELWRIGHT_LOG")
      ->capture_default_str()
      ->type_name("LEVEL");
  command->add_option("--ready-fd", flags->ready_fd)->group("");
  AddCommonOptions(command, context, "  kernelwright serve\n  kernelwright serve --idle-exit 0 --log-level debug");
  command->callback([=] { context->command = [=] { return Run(context, *flags); }; });
}

}  // namespace kernelwright::cli
