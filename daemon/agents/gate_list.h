// The gates, as one list: what each is called, what it asks, and which claims require it (docs/gates.md). A claim holds
// only when every gate that it requires has passed; "not run" is never a pass.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/agents/toolchain.h"

namespace kernelwright::agents {

enum class Claim {
  kEstimated,  // better by the compiler's schedule
  kMeasured,   // better by device time
};

struct GateInfo {
  std::string_view id;    // "G43"
  std::string_view name;  // "values"
  std::string_view asks;  // one line
  bool for_estimated = false;
  bool for_measured = false;
  bool kernels_only = false;  // asked only of candidates that claim a kernel
};

// All gates in the order in which they are run: each is cheaper than the next.
const std::vector<GateInfo>& AllGates();

// By id; null when there is none.
const GateInfo* FindGate(std::string_view id);

struct ClaimVerdict {
  bool holds = false;
  std::string gate;    // first required gate, in list order, that failed; if none failed, that was not run
  std::string reason;  // its reason
};

// Whether `results` prove `claim`. A gate reported twice must pass both times.
ClaimVerdict JudgeClaim(Claim claim, bool claims_kernel, const std::vector<GateResult>& results);

GateResult Pass(std::string gate);
GateResult FailGate(std::string gate, std::string reason);
GateResult NotRun(std::string gate, std::string reason);

}  // namespace kernelwright::agents
