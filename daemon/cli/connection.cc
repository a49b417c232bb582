// From flags to a client; see connection.h.
#include "daemon/cli/connection.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>

#include "daemon/cli/paths.h"
#include "daemon/service/grpc_service.h"

namespace kernelwright::cli {

Expected<service::ClientIdentity> IdentityOf(const CommonOptions& common) {
  service::ClientIdentity identity;
  if (common.build_number >= 0) identity.build.build = common.build_number;
  if (!common.protocol.empty()) {
    const std::string& text = common.protocol;
    const char* end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, identity.protocol.min);
    identity.protocol.max = identity.protocol.min;
    bool good = first.ec == std::errc();
    if (good && first.ptr != end) {
      good = *first.ptr == '-' && std::from_chars(first.ptr + 1, end, identity.protocol.max).ptr == end;
    }
    if (!good) return Fail(ErrorKind::kUsage, "'" + text + "' is no range of protocols", "--protocol");
  }
  return identity;
}

Expected<service::RuntimeFolder> OpenRuntime() {
  return service::OpenRuntimeFolder(service::RuntimeEnvironment::FromProcess());
}

Expected<std::unique_ptr<service::Client>> OpenClient(Context* context) {
  const CommonOptions& common = context->common;
  if (common.in_process) {
    Expected<agents::EngineOptions> options = FindEngineOptions();
    if (!options) return Fail(options.error());
    auto engine = context->make_engine(*options);
    if (!engine) return Fail(engine.error());
    return service::MakeInProcessClient(std::move(*engine));
  }
  Expected<service::RuntimeFolder> folder = OpenRuntime();
  if (!folder) return Fail(folder.error());
  Expected<service::ClientIdentity> identity = IdentityOf(common);
  if (!identity) return Fail(identity.error());
  Expected<std::filesystem::path> state = StateFolder();
  if (!state) return Fail(state.error());
  Expected<std::filesystem::path> program = ProgramPath();
  if (!program) return Fail(program.error());

  service::LaunchOptions options;
  options.folder = *folder;
  options.identity = *identity;
  options.command.argv = {program->string(), "serve"};
  if (common.build_number >= 0) {
    options.command.argv.insert(options.command.argv.end(), {"--build-number", std::to_string(common.build_number)});
  }
  if (!common.protocol.empty()) {
    options.command.argv.insert(options.command.argv.end(), {"--protocol", common.protocol});
  }
  options.command.env = service::DaemonEnvironment(environ);
  options.command.stderr_file = *state / "daemon.stderr";
  options.note = [context](const std::string& text) { context->output.Note("kernelwright: " + text); };
  auto client = service::Connect(options);
  if (!client) return Fail(client.error());
  return std::unique_ptr<service::Client>(std::move(*client));
}

Expected<std::string> StartRun(Context* context, std::unique_ptr<service::Client>* client,
                               const agents::RunRequest& request) {
  Expected<std::string> run = (*client)->StartRun(request);
  if (run || run.error().kind() != ErrorKind::kConflict || run.error().where() != service::kClosingWhere) return run;
  Expected<std::unique_ptr<service::Client>> next = OpenClient(context);
  if (!next) return Fail(next.error());
  *client = std::move(*next);
  return (*client)->StartRun(request);
}

std::map<std::string, std::string> InterpreterEnvironment() {
  std::map<std::string, std::string> result;
  for (const char* name :
       {"PATH", "HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "LANG", "KERNELWRIGHT_HOME", "XDG_DATA_HOME"}) {
    if (const char* value = std::getenv(name); value != nullptr) result[name] = value;
  }
  return result;
}

}  // namespace kernelwright::cli
