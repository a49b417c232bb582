// One run of optimize or tune from the request to the result: find function, inputs and interpreter; freeze the
// reference; plan; make candidates; evaluate them; keep the best that passed its gates. See docs/retune.md.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/agents/engine.h"
#include "daemon/agents/journal.h"
#include "daemon/agents/run_result.h"
#include "daemon/agents/toolchain.h"
#include "daemon/base/deadline.h"
#include "daemon/cost/chips.h"

namespace kernelwright::agents {

inline constexpr uint32_t kDefaultMaxCompiles = 40;

struct OptimizeInputs {
  RunRequest request;
  std::vector<const cost::Chip*> chips;
  std::string build;                      // identity of this build
  std::function<uint64_t()> random_seed;  // for the frozen seeds
  int parallel = 2;                       // candidates evaluated side by side
  Deadline budget;                        // of the whole run
  std::string captures;                   // folder of recorded calls; empty: none
};

// Runs to the end, or until `stop`; what was proven by then is kept. Never throws; every failure is in the result.
RunResult RunOptimize(const OptimizeInputs& inputs, ToolchainProvider& toolchains, Journal& journal,
                      std::stop_token stop);

}  // namespace kernelwright::agents
