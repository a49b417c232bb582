// The program over an engine whose runs play a script: the file to optimize holds one JSON object per line, either
// {"kind": …, "payload": {…}} for an event, {"wait": true} to stay until the run is cancelled, or
// {"status": …, "exit_code": n, "result": {…}} for the end. For tests of daemon and terminal without JAX.
#include <fstream>
#include <thread>

#include "daemon/cli/context.h"
#include "daemon/service/testing/test_engine.h"
#include "nlohmann/json.hpp"

namespace {

using kernelwright::testing::TestEngine;

void Play(TestEngine* engine, const std::string& run, const std::string& file) {
  std::ifstream script(file);
  std::string line;
  while (std::getline(script, line)) {
    nlohmann::json step = nlohmann::json::parse(line);
    if (step.contains("kind")) {
      engine->Emit(run, step["kind"], step["payload"].dump());
    } else if (step.contains("wait")) {
      return;
    } else {
      step["result"]["run"] = run;
      engine->FinishRun(run, step["status"], step["result"].dump(), step["exit_code"]);
    }
  }
}

class ScriptedEngine : public TestEngine {
 public:
  ScriptedEngine() {
    on_start = [this](TestEngine*, const std::string& run) {
      players_.emplace_back([this, run, file = GetRun(run)->file] { Play(this, run, file); });
    };
  }
  ~ScriptedEngine() override {
    for (std::thread& player : players_) player.join();
  }

 private:
  std::vector<std::thread> players_;
};

}  // namespace

int main(int argc, char** argv) {
  return kernelwright::cli::RunProgram(
      argc, argv, [](const auto&) -> kernelwright::Expected<std::unique_ptr<kernelwright::agents::Engine>> {
        return std::make_unique<ScriptedEngine>();
      });
}
