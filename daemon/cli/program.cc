// Parsing, dispatch and the last word on errors; see context.h.
#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "daemon/base/text.h"
#include "daemon/cli/context.h"
#include "daemon/cli/interrupt.h"

namespace kernelwright::cli {
namespace {

// CLI11 only says that a command is required. Ok for known words and for flags.
Status CheckCommand(const CLI::App& program, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  if (word.starts_with('-') || std::find(names.begin(), names.end(), word) != names.end()) return {};
  const std::optional<std::string> meant = ClosestMatch(word, names);
  return Status(ErrorKind::kUsage, "there is no command '" + word + "'", "",
                (meant ? "Did you mean '" + *meant + "'? " : "") + "The commands are " + Join(names, ", ") + ".");
}

// CLI11 reports wrong usage by exceptions; they end here.
Expected<int> ParseAndRun(CLI::App* program, Context* context, int argc, char** argv) {
  // Needed for errors in the arguments, which come before the flags are known.
  const auto given = [&](std::string_view flag) {
    return std::any_of(argv + 1, argv + argc, [&](const char* word) { return flag == word; });
  };
  context->output.Configure(given("--json"), given("--plain"));
  if (argc > 1) {
    if (Status known = CheckCommand(*program, argv[1]); !known.ok()) return Fail(known);
  }
  try {
    program->parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return program->exit(help);
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    return Fail(ErrorKind::kUsage, message, "", "'kernelwright --help' and 'kernelwright COMMAND --help' show how.");
  }
  context->output.Configure(context->common.json, context->common.plain);
  return context->command();
}

}  // namespace

int RunProgram(int argc, char** argv, MakeEngineFunction make_engine) {
  BlockInterrupts();
  Context context;
  context.make_engine = std::move(make_engine);
  CLI::App program(
      "Makes TPU kernels faster: plans, writes, compiles, checks and estimates them, on any Linux machine.",
      "kernelwright");
  program.require_subcommand(1);
  program.footer(
      "Examples:\n"
      "  kernelwright optimize matmul.py::matmul --chip v5e\n"
      "  kernelwright check matmul.py --chip all\n"
      "  kernelwright profile matmul.py::matmul --html profile.html\n"
      "  kernelwright runs list\n"
      "  kernelwright doctor\n"
      "Exit codes: 0 a result, 1 the user's code or every candidate failed, 2 wrong usage,\n"
      "3 something is missing in the environment, 4 cancelled or a limit reached, 5 our own fault.");
  AddOptimize(&program, &context);
  AddCheck(&program, &context);
  AddProfile(&program, &context);
  AddCapture(&program, &context);
  AddCalibrate(&program, &context);
  AddRuns(&program, &context);
  AddDoctor(&program, &context);
  AddModels(&program, &context);
  AddServe(&program, &context);
  AddStop(&program, &context);
  AddVersion(&program, &context);
  Status failure;
  try {
    const Expected<int> code = ParseAndRun(&program, &context, argc, argv);
    if (code) return *code;
    failure = code.error();
  } catch (const std::exception& error) {
    // The last net; nothing below throws on purpose.
    failure = Status(ErrorKind::kInternal, std::string("unexpected: ") + error.what(), "",
                     "Please report it with the command and the daemon's log.");
  }
  context.output.Error(failure);
  return ExitCode(failure.kind());
}

}  // namespace kernelwright::cli
