// profile: where the cycles of a function go, by line and by kernel, and what to do about it.
#include <filesystem>
#include <memory>
#include <stop_token>

#include "daemon/base/files.h"
#include "daemon/cli/connection.h"
#include "daemon/cli/context.h"
#include "daemon/cli/interrupt.h"
#include "daemon/cli/profile_view.h"
#include "daemon/cli/target.h"

namespace kernelwright::cli {
namespace {

struct Flags {
  std::string target;
  std::string inputs;
  std::string against;
  std::string html;
};

// FILE.py::g, ::g of the same file, or a chip: a name without a dot, a slash or "::" is a chip's.
Status ParseAgainst(const std::string& text, agents::ProfileRequest* request) {
  if (text.find("::") == std::string::npos && text.find_first_of("./") == std::string::npos) {
    request->against_chip = text;
    return {};
  }
  Expected<Target> target = ParseTarget(text.starts_with("::") ? request->file + text : text);
  if (!target) return target.error();
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(target->file, ignored)) {
    return Status(ErrorKind::kNotFound, "no such file", target->file,
                  "--against takes FILE.py::function, ::function of the same file, or a chip.");
  }
  request->against_file = target->file;
  request->against_function = target->function.empty() ? request->function : target->function;
  return {};
}

Expected<int> Run(Context* context, const Flags& flags) {
  const CommonOptions& common = context->common;
  agents::ProfileRequest request;
  Expected<Target> target = ParseTarget(flags.target);
  if (!target) return Fail(target.error());
  request.file = target->file;
  request.function = target->function;
  request.inputs = flags.inputs;
  request.chips = common.chips;
  if (!flags.against.empty()) {
    if (Status parsed = ParseAgainst(flags.against, &request); !parsed.ok()) return Fail(parsed);
  }
  request.want_html = !flags.html.empty();
  request.python = common.python;
  request.timeout_seconds = common.timeout_seconds;
  request.budget_seconds = common.budget_seconds;
  request.sandbox = common.sandbox;
  request.working_directory = std::filesystem::current_path().string();
  request.environment = InterpreterEnvironment();

  Expected<std::unique_ptr<service::Client>> client = OpenClient(context);
  if (!client) return Fail(client.error());
  std::stop_source stop;
  Expected<agents::ProfileReply> reply = [&] {
    const InterruptWatcher interrupts([&stop](int) { stop.request_stop(); });
    return (*client)->Profile(request, stop.get_token());
  }();
  if (!reply) return Fail(reply.error());
  if (!flags.html.empty() && !reply->html.empty()) {
    if (Status written = WriteFileAtomically(flags.html, reply->html); !written.ok()) return Fail(written);
    context->output.Note("kernelwright: the report is in " + flags.html);
  }
  // Parsed rather than passed through, so that --json prints one well-formed object whoever served it.
  const nlohmann::json result = nlohmann::json::parse(reply->result_json, nullptr, false);
  if (!result.is_object()) return Fail(ErrorKind::kInternal, "the profile's result is not a JSON object", "profile");
  if (context->output.json()) {
    context->output.OutJson(result);
  } else {
    context->output.Out(RenderProfile(result, context->output.out_style()));
  }
  return reply->exit_code;
}

}  // namespace

void AddProfile(CLI::App* program, Context* context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      program->add_subcommand("profile", "Show where the cycles of a function go, by source line and kernel");
  command->add_option("target", flags->target, "FILE.py::function, FILE.py::Class.method, or FILE.py with one kernel")
      ->required()
      ->type_name("FILE.py::function");
  command
      ->add_option("--inputs", flags->inputs,
                   "Arguments, e.g. 'x=bf16[4096,4096],n=8'; else the comment '# kernelwright: …' above the function")
      ->type_name("TEXT");
  command
      ->add_option("--against", flags->against,
                   "Compare with another version (FILE.py::function, or ::function of the same file) or another chip")
      ->type_name("OTHER");
  command->add_option("--html", flags->html, "Write the report as a self-contained page")->type_name("FILE.html");
  AddCommonOptions(command, context,
                   "  kernelwright profile matmul.py::matmul --chip v5e\n"
                   "  kernelwright profile matmul.py::matmul --html profile.html\n"
                   "  kernelwright profile matmul.py::matmul --against tuned.py::matmul\n"
                   "  kernelwright profile matmul.py::matmul --chip v5e --against v6e\n"
                   "  kernelwright profile norm.py::rms_norm --chip all --json > profile.json");
  command->callback([=] { context->command = [=] { return Run(context, *flags); }; });
}

}  // namespace kernelwright::cli
