// capture: runs the user's own program and records the first calls of one function, for optimize, check and profile.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/files.h"
#include "daemon/base/subprocess.h"
#include "daemon/cli/context.h"
#include "daemon/cli/interrupt.h"
#include "daemon/cli/paths.h"
#include "daemon/cli/target.h"
#include "daemon/kernels/captures.h"
#include "daemon/kernels/syntax.h"

extern char** environ;

namespace kernelwright::cli {
namespace {

constexpr size_t kMaxFileBytes = size_t{16} << 20;
constexpr auto kGrace = std::chrono::seconds(5);

struct Flags {
  std::string target;
  std::vector<std::string> program;
  int calls = 3;
  int64_t value_mebibytes = 16;
};

std::map<std::string, std::string> WholeEnvironment() {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (const size_t equals = text.find('='); equals != std::string::npos) {
      all[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  return all;
}

// The file's real path and the function's full name; both must exist, so that a typing error costs no run.
Expected<Target> FindTarget(const std::string& text) {
  auto target = ParseTarget(text);
  if (!target) return target;
  auto real = ResolvePath(target->file);
  if (!real) return Fail(real.error());
  target->file = real->string();
  auto source = ReadFile(target->file, kMaxFileBytes);
  if (!source) return Fail(source.error());
  const kernels::SourceFile file(target->file, *std::move(source));
  if (Status syntax = file.CheckSyntax(); !syntax.ok()) return Fail(syntax);
  auto function = target->function.empty() ? file.DefaultFunction() : file.FindFunction(target->function);
  if (!function) return Fail(function.error());
  target->function = function->qualified_name;
  return target;
}

class CaptureCommand {
 public:
  CaptureCommand(Context* context, const Flags& flags) : context_(context), output_(context->output), flags_(flags) {}

  Expected<int> Run() {
    auto target = FindTarget(flags_.target);
    if (!target) return Fail(target.error());
    auto engine = FindEngineOptions();
    if (!engine) return Fail(engine.error());
    const auto out =
        kernels::CaptureFile(kernels::CapturesFolder(engine->state_folder), target->file, target->function);
    if (Status made = MakePrivateFolder(out.parent_path().parent_path()); !made.ok()) return Fail(made);
    if (Status made = MakePrivateFolder(out.parent_path()); !made.ok()) return Fail(made);
    // The new record is written beside the old one, which stays when the function is not called.
    const std::filesystem::path fresh = out.string() + ".new";
    std::error_code ignored;
    std::filesystem::remove(fresh, ignored);
    auto ended = RunProgram(*target, engine->agents_folder / "capture", fresh);
    if (!ended) return Fail(ended.error());
    return Report(*target, fresh, out, *ended);
  }

 private:
  Expected<ExitStatus> RunProgram(const Target& target, const std::filesystem::path& hook,
                                  const std::filesystem::path& out) {
    SubprocessOptions options;
    options.argv = flags_.program;
    options.env = WholeEnvironment();
    std::string& path = options.env["PYTHONPATH"];
    path = hook.string() + (path.empty() ? "" : ":" + path);
    options.env["KERNELWRIGHT_CAPTURE_FILE"] = target.file;
    options.env["KERNELWRIGHT_CAPTURE_FUNCTION"] = target.function;
    options.env["KERNELWRIGHT_CAPTURE_OUT"] = out.string();
    options.env["KERNELWRIGHT_CAPTURE_CALLS"] = std::to_string(flags_.calls);
    options.env["KERNELWRIGHT_CAPTURE_BYTES"] = std::to_string(flags_.value_mebibytes << 20);
    // A group in the background may not read from the terminal.
    options.input = ::isatty(STDIN_FILENO) != 0 ? Stdio::Null() : Stdio::Inherit();
    // Standard output is kept for the result.
    options.output = Stdio::Fd(STDERR_FILENO);
    options.error = Stdio::Inherit();
    std::string command;
    for (const std::string& word : flags_.program) command += " " + word;
    output_.Note("running your program as you, outside the sandbox:" + command);
    auto child = Subprocess::Spawn(options);
    if (!child) return Fail(child.error());
    const InterruptWatcher interrupts([&](int count) { child->Signal(count == 1 ? SIGINT : SIGKILL); });
    const Deadline limit =
        context_->common.timeout_seconds > 0
            ? Deadline::After(std::chrono::milliseconds(static_cast<int64_t>(context_->common.timeout_seconds * 1000)))
            : Deadline::Never();
    if (auto status = child->Wait(limit)) return *status;
    output_.Note("the program took longer than --timeout and was ended");
    return child->Terminate(kGrace);
  }

  Expected<int> Report(const Target& target, const std::filesystem::path& fresh, const std::filesystem::path& out,
                       const ExitStatus& ended) {
    const std::string name = target.file + "::" + target.function;
    std::error_code error;
    if (!std::filesystem::is_regular_file(fresh, error)) {
      return Fail(ErrorKind::kUserCode,
                  "the program never called " + target.function + " (it ended with " + ended.ToString() + ")", name,
                  "Run a program that calls it, with a Python that has jax and reads PYTHONPATH (not -I or -E).");
    }
    auto text = ReadFile(fresh, kMaxFileBytes);
    if (!text) return Fail(text.error());
    auto summary = kernels::ReadCapture(*text, name);
    if (!summary) return Fail(summary.error());
    const std::string inputs = kernels::FormatInputs(summary->inputs);
    std::filesystem::rename(fresh, out, error);
    if (error) return Fail(ErrorKind::kEnvironment, "the record cannot be kept: " + error.message(), out.string());
    if (!ended.success()) output_.Note("the program ended with " + ended.ToString() + "; what it did before is kept");
    if (output_.json()) {
      output_.OutJson({{"schema_version", kSchemaVersion},
                       {"command", "capture"},
                       {"status", "captured"},
                       {"file", target.file},
                       {"function", target.function},
                       {"inputs", inputs},
                       {"calls", summary->calls},
                       {"values", summary->values},
                       {"record", out.string()},
                       {"program_exit", ended.ToString()}});
    } else {
      output_.Out(name + "\n  " + inputs + "\n  " + std::to_string(summary->calls) +
                  (summary->calls == 1 ? " call" : " different calls") + ", values of " +
                  std::to_string(summary->values) +
                  " arrays\noptimize, check and profile use these inputs when nothing else states them.\n");
    }
    return 0;
  }

  Context* context_;
  Output& output_;
  const Flags& flags_;
};

}  // namespace

void AddCapture(CLI::App* program, Context* context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program->add_subcommand("capture", "Record the inputs of a function while your own program runs");
  command->add_option("target", flags->target, "Function whose calls are recorded")
      ->required()
      ->type_name("FILE.py::function");
  command->add_option("program", flags->program, "Your program and its arguments, after --")
      ->required()
      ->type_name("-- COMMAND");
  command->add_option("--calls", flags->calls, "Calls with different shapes or statics to record (default 3)")
      ->check(CLI::Range(1, 100));
  command->add_option("--values", flags->value_mebibytes, "MiB of array values to keep per call (default 16, 0: none)")
      ->check(CLI::Range(0, 4096));
  AddCommonOptions(command, context,
                   "  kernelwright capture model.py::attention -- python train.py --steps 1\n"
                   "  kernelwright capture model.py::attention -- pytest tests/test_model.py\n"
                   "The program runs as you, outside the sandbox: only run what you trust.");
  command->callback([=] { context->command = [=] { return CaptureCommand(context, *flags).Run(); }; });
}

}  // namespace kernelwright::cli
