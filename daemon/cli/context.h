// What every command gets: how to make an engine, the options that all commands share, and where to write.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "daemon/agents/engine.h"
#include "daemon/base/status.h"
#include "daemon/cli/output.h"

namespace kernelwright::cli {

// Version of every object that --json prints (docs/json.md).
inline constexpr int kSchemaVersion = 1;

using MakeEngineFunction =
    std::function<Expected<std::unique_ptr<agents::Engine>>(const agents::EngineOptions& options)>;

// Flags that every command takes.
struct CommonOptions {
  bool json = false;
  std::vector<std::string> chips;
  double timeout_seconds = 0;
  double budget_seconds = 0;
  bool in_process = false;
  std::string python;
  std::string sandbox = "auto";
  bool plain = false;
  // For the tests of versions: pretend to be another build, or to speak other protocols.
  int64_t build_number = -1;
  std::string protocol;
};

struct Context {
  MakeEngineFunction make_engine;
  CommonOptions common;
  Output output;
  // Set by the command that the arguments name; its result is the exit code.
  std::function<Expected<int>()> command;
};

// Adds the shared flags to a command, and its examples to its help.
void AddCommonOptions(CLI::App* command, Context* context, const std::string& examples);

// "10m", "90s" or plain seconds; CLI11 reports the error with the option's name, which must be a literal.
CLI::Option* AddDuration(CLI::App* command, const char* name, double* seconds, const std::string& help);

// One function per command, each in its own file; they add the command to the program.
void AddOptimize(CLI::App* program, Context* context);  // and tune
void AddCheck(CLI::App* program, Context* context);
void AddProfile(CLI::App* program, Context* context);
void AddCapture(CLI::App* program, Context* context);
void AddCalibrate(CLI::App* program, Context* context);
void AddRuns(CLI::App* program, Context* context);
void AddDoctor(CLI::App* program, Context* context);
void AddModels(CLI::App* program, Context* context);  // list, ask
void AddServe(CLI::App* program, Context* context);
void AddStop(CLI::App* program, Context* context);
void AddVersion(CLI::App* program, Context* context);

// The whole program: parses, runs, prints errors; returns the exit code.
int RunProgram(int argc, char** argv, MakeEngineFunction make_engine);

}  // namespace kernelwright::cli
