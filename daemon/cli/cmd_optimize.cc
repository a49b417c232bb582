// optimize and tune: start a run, follow it, show the outcome.
#include <filesystem>
#include <memory>
#include <utility>

#include "daemon/cli/connection.h"
#include "daemon/cli/context.h"
#include "daemon/cli/follow.h"
#include "daemon/cli/target.h"

namespace kernelwright::cli {
namespace {

struct Flags {
  std::string target;
  std::string inputs;
  std::string reference;
  uint32_t max_compiles = 0;
  std::string lift_into;
  std::string exactness;
  ShowOptions show;
};

Expected<int> Run(Context* context, const std::string& kind, const Flags& flags) {
  const CommonOptions& common = context->common;
  agents::RunRequest request;
  request.kind = kind;
  Expected<Target> target = ParseTarget(flags.target);
  if (!target) return Fail(target.error());
  request.file = target->file;
  request.function = target->function;
  if (!flags.reference.empty()) {
    Expected<Target> reference = ParseTarget(flags.reference);
    if (!reference) return Fail(reference.error());
    request.reference_file = reference->file;
    request.reference_function = reference->function;
  }
  request.inputs = flags.inputs;
  request.chips = common.chips;
  request.python = common.python;
  request.budget_seconds = common.budget_seconds;
  request.max_compiles = flags.max_compiles;
  request.timeout_seconds = common.timeout_seconds;
  request.sandbox = common.sandbox;
  request.working_directory = std::filesystem::current_path().string();
  request.environment = InterpreterEnvironment();
  request.client = "cli";
  request.lift_into = flags.lift_into;
  request.exactness = flags.exactness;

  Expected<std::unique_ptr<service::Client>> client = OpenClient(context);
  if (!client) return Fail(client.error());
  Expected<std::string> run = StartRun(context, &*client, request);
  if (!run) return Fail(run.error());
  if (Status followed = FollowRun(context, client->get(), *run, 0, OnInterrupt::kCancelRun); !followed.ok()) {
    return Fail(followed);
  }
  return ShowRun(context, client->get(), *run, flags.show);
}

void Add(CLI::App* program, Context* context, const std::string& kind, const std::string& help,
         const std::string& examples) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program->add_subcommand(kind, help);
  command->add_option("target", flags->target, "FILE.py::function, FILE.py::Class.method, or FILE.py with one kernel")
      ->required()
      ->type_name("FILE.py::function");
  command
      ->add_option("--inputs", flags->inputs,
                   "Arguments, e.g. 'x=bf16[4096,4096],n=8'; else the comment '# kernelwright: …' above the function")
      ->type_name("TEXT");
  command->add_option("--reference", flags->reference, "What must be computed, when it is not the function itself")
      ->type_name("FILE.py::function");
  command->add_option("--max-compiles", flags->max_compiles, "Most compiles per chip, cached ones included; default 40")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  if (kind == "optimize") {
    command->add_option("--lift-into", flags->lift_into, "Where kernels made from plain JAX go; default beside")
        ->check(CLI::IsMember({"beside", "module"}))
        ->type_name("beside|module");
    command->add_option("--exactness", flags->exactness, "Most that a rewrite may do to values; default reassociation")
        ->check(CLI::IsMember({"bit-equal", "reassociation", "lower-precision"}))
        ->type_name("CLASS");
  }
  auto* diff = command->add_flag("--diff", flags->show.diff, "Print only the diff on standard output");
  auto* apply =
      command->add_flag("--apply", flags->show.apply, "Write the best candidate into the file, if it is unchanged");
  diff->excludes(apply);
  AddCommonOptions(command, context, examples);
  command->callback([context, kind, flags] { context->command = [=] { return Run(context, kind, *flags); }; });
}

}  // namespace

void AddOptimize(CLI::App* program, Context* context) {
  Add(program, context, "optimize", "Plan, make and check candidates for a function; keep the best",
      "  kernelwright optimize matmul.py::matmul --chip v5e\n"
      "  kernelwright optimize norm.py::rms_norm --inputs 'x=bf16[4096,4096],w=f32[4096]' --budget 10m\n"
      "  kernelwright optimize matmul.py::matmul --diff | git apply\n"
      "  kernelwright optimize matmul.py::matmul --chip all --json > result.json");
  Add(program, context, "tune", "Like optimize, but only block sizes and compiler parameters",
      "  kernelwright tune matmul.py::matmul --chip v6e --max-compiles 20\n"
      "  kernelwright tune matmul.py::matmul --apply");
}

}  // namespace kernelwright::cli
