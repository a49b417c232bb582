// The flags of every command; see context.h.
#include "daemon/base/units.h"
#include "daemon/cli/context.h"

namespace kernelwright::cli {

CLI::Option* AddDuration(CLI::App* command, const char* name, double* seconds, const std::string& help) {
  return command
      ->add_option_function<std::string>(
          name,
          [name, seconds](const std::string& text) {
            const Expected<std::chrono::milliseconds> parsed = ParseDuration(text);
            if (!parsed) throw CLI::ValidationError(name, parsed.error().ToString());
            *seconds = std::chrono::duration<double>(*parsed).count();
          },
          help)
      ->type_name("TIME");
}

void AddCommonOptions(CLI::App* command, Context* context, const std::string& examples) {
  CommonOptions* common = &context->common;
  const std::string group = "Shared options";
  command->add_flag("--json", common->json, "Print one JSON object on standard output (docs/json.md)")->group(group);
  command
      ->add_option(
          "--chip", common->chips,
          "v5e, v5p, v6e, tpu7x, several with commas, or all. Default: the local TPU, else the setting, else v6e")
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("CHIP")
      ->group(group);
  AddDuration(command, "--timeout", &common->timeout_seconds, "Limit for one compile or check, e.g. 90 or 2m")
      ->group(group);
  AddDuration(command, "--budget", &common->budget_seconds,
              "Limit for the whole command, e.g. 10m; keeps what was found")
      ->group(group);
  command->add_flag("--in-process", common->in_process, "Work in this process, without a daemon")->group(group);
  command->add_option("--python", common->python, "Interpreter of the user's environment")
      ->type_name("PATH")
      ->group(group);
  command->add_option("--sandbox", common->sandbox, "How candidates are confined")
      ->check(CLI::IsMember({"auto", "bubblewrap", "landlock", "none"}))
      ->capture_default_str()
      ->group(group);
  command->add_flag("--plain", common->plain, "No colours and no lines that change in place")->group(group);
  command->add_option("--build-number", common->build_number)->group("");
  command->add_option("--protocol", common->protocol)->group("");
  command->footer("Examples:\n" + examples);
}

}  // namespace kernelwright::cli
