// One check: syntax → API lint → trace → block lint → compile per chip → semantics, each stage reported as soon as it
// has its answer, then the proof of proposed fixes.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "daemon/agents/check.h"
#include "daemon/agents/check_rules.h"
#include "daemon/agents/store_journal.h"
#include "daemon/agents/toolchain.h"
#include "daemon/cost/chips.h"

namespace kernelwright::agents {

struct CheckInputs {
  CheckRequest request;
  std::vector<const cost::Chip*> chips;   // resolved, at least one
  const CheckRules* rules = nullptr;      // must outlive the check
  BlobCache* cache = nullptr;             // of compile verdicts; may be null
  int parallel = 2;                       // compiles side by side
  std::string jax_version;                // of the last worker for this interpreter; empty: the newest known
  std::chrono::milliseconds debounce{0};  // pause before the first job of a worker
  std::string captures;                   // folder of recorded calls; empty: none
};

// Never fails as a whole, except for a request that makes no sense (no such file or function, malformed --inputs):
// what keeps a later stage from its verdict is in the result's `failure`. `on_stage` is called from one thread at a
// time.
Expected<CheckResult> RunCheck(const CheckInputs& inputs, ToolchainProvider& toolchains, const OnCheckStage& on_stage,
                               std::stop_token stop);

}  // namespace kernelwright::agents
