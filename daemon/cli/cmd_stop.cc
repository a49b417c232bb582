// stop: ends the daemon, if it has nothing to do or --force is given.
#include <memory>

#include "daemon/base/lock_file.h"
#include "daemon/cli/connection.h"
#include "daemon/cli/context.h"

namespace kernelwright::cli {
namespace {

constexpr auto kEnd = std::chrono::seconds(30);

Expected<int> Run(Context* context, bool force) {
  Expected<service::RuntimeFolder> folder = OpenRuntime();
  if (!folder) return Fail(folder.error());
  Expected<service::ClientIdentity> identity = IdentityOf(context->common);
  if (!identity) return Fail(identity.error());
  auto found = service::FindDaemon(*folder, *identity);
  if (!found) return Fail(found.error());
  const bool runs = found->has_value();
  const int64_t pid = runs ? (*found)->daemon.peer.pid : 0;
  if (runs) {
    const auto stopped = (*found)->client->StopDaemon(force);
    if (!stopped) return Fail(stopped.error());
    if (!stopped->stopping) {
      return Fail(ErrorKind::kConflict,
                  "the daemon is busy with " + std::to_string(stopped->active_runs) + " runs and " +
                      std::to_string(stopped->active_streams) + " attached clients",
                  "process " + std::to_string(pid), "Wait, or end it with --force: runs are kept and can be resumed.");
    }
    if (auto freed = LockFile::Lock(folder->lock(), Deadline::After(kEnd)); !freed) {
      return Fail(ErrorKind::kInternal, "the daemon was asked to end and does not", "process " + std::to_string(pid),
                  "End it with: kill " + std::to_string(pid));
    }
  }
  if (context->output.json()) {
    context->output.OutJson({{"schema_version", kSchemaVersion},
                             {"stopped", runs},
                             {"pid", runs ? nlohmann::json(pid) : nlohmann::json()}});
  } else {
    context->output.Out(runs ? "the daemon, process " + std::to_string(pid) + ", has ended\n" : "no daemon runs\n");
  }
  return 0;
}

}  // namespace

void AddStop(CLI::App* program, Context* context) {
  auto force = std::make_shared<bool>(false);
  CLI::App* command = program->add_subcommand("stop", "End the daemon");
  command->add_flag("--force", *force, "Also when it is busy; its runs are interrupted and can be resumed");
  AddCommonOptions(command, context, "  kernelwright stop\n  kernelwright stop --force");
  command->callback([=] { context->command = [=] { return Run(context, *force); }; });
}

}  // namespace kernelwright::cli
