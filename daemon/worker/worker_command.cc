// The command line and the environment of a local worker. The environment is made from nothing: what passes from the
// client is a short list of where the interpreter and the loader look for code. No key can come along.
#include <array>
#include <thread>
#include <utility>

#include "daemon/base/hash.h"
#include "daemon/worker/provider.h"

namespace kernelwright::worker {
namespace {

namespace fs = std::filesystem;

// The worker sets what jax and libtpu want by itself; these decide where code comes from and how text is written.
constexpr std::array kPassed = {"HOME",   "LANG", "LC_ALL",     "LC_CTYPE",         "LD_LIBRARY_PATH", "PATH",
                                "TMPDIR", "TZ",   "PYTHONHOME", "PYTHONNOUSERSITE", "VIRTUAL_ENV"};

std::string Get(const std::map<std::string, std::string>& environment, const std::string& name) {
  const auto it = environment.find(name);
  return it == environment.end() ? "" : it->second;
}

// A relative entry of PYTHONPATH means the client's folder, not ours.
std::string AbsoluteSearchPath(const std::string& path, const fs::path& working_directory) {
  std::string result;
  for (size_t start = 0; start < path.size();) {
    const size_t end = std::min(path.find(':', start), path.size());
    const fs::path entry = path.substr(start, end - start);
    if (!entry.empty()) {
      result += ":" + (entry.is_absolute() ? entry : working_directory / entry).lexically_normal().string();
    }
    start = end + 1;
  }
  return result;
}

}  // namespace

Expected<WorkerCommand> MakeWorkerCommand(const LocalOptions& local, const agents::ToolchainOptions& options,
                                          const InterpreterSystem& interpreters, const FolderSystem& folders) {
  const fs::path package = local.agents_folder / "worker";
  for (const fs::path& needed : {package / "kernelwright_worker", local.proto_python_folder / "kernelwright"}) {
    if (folders.Exists(needed)) continue;
    return Fail(ErrorKind::kEnvironment, "a part of Kernelwright is missing", needed.string(),
                "Install Kernelwright again, or build it with scripts/build.");
  }
  Expected<InterpreterChoice> choice = ChooseInterpreter({.python = options.python,
                                                          .file = options.file,
                                                          .working_directory = options.working_directory,
                                                          .environment = options.environment},
                                                         interpreters);
  if (!choice) return Fail(choice.error());

  WorkerCommand command;
  command.folder = "/";
  command.interpreter_reason = choice->reason;
  command.hello_deadline = local.hello_deadline;
  command.parallel_jobs = local.parallel_jobs != 0 ? local.parallel_jobs : std::thread::hardware_concurrency();
  if (command.parallel_jobs == 0) command.parallel_jobs = 1;
  command.argv = {choice->python.string(),
                  "-m",
                  "kernelwright_worker",
                  "--sandbox",
                  options.sandbox.empty() ? "auto" : options.sandbox,
                  "--runtime",
                  local.proto_python_folder.string()};
  for (const std::string& root : ReadableRoots(options, folders)) {
    command.argv.emplace_back("--read-only");
    command.argv.push_back(root);
  }
  for (const char* name : kPassed) {
    if (std::string value = Get(options.environment, name); !value.empty()) {
      command.environment.emplace(name, std::move(value));
    }
  }
  command.environment.emplace("PYTHONSAFEPATH", "1");
  command.environment.emplace("PYTHONUNBUFFERED", "1");
  command.environment["PYTHONPATH"] =
      package.string() + AbsoluteSearchPath(Get(options.environment, "PYTHONPATH"), options.working_directory);
  return command;
}

}  // namespace kernelwright::worker
