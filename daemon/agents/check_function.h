// The stages of a check that need a worker, for one function: trace, lints of its kernels, compile per chip, semantics.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/agents/check.h"
#include "daemon/agents/check_rules.h"
#include "daemon/agents/check_run.h"
#include "daemon/agents/check_targets.h"
#include "daemon/agents/toolchain.h"

namespace kernelwright::agents {

// What a function's check gave.
struct FunctionFindings {
  CheckedFunction function;
  std::vector<diagnose::Diagnostic> diagnostics;
  std::map<std::string, std::string> chip_status;  // chip -> "clean", "errors", "unknown"
  Versions versions;
  Status failure;  // why some stage has no verdict
  // For the proof of fixes: the texts that the trace used, its kernels, and at which shapes they ran.
  Source source;
  std::map<std::string, std::string> texts;
  std::vector<PallasCall> calls;
  std::vector<kernels::InputSpec> inputs;
};

// Everything that the stages share. References must outlive the call.
struct FunctionCheck {
  const CheckInputs& inputs;
  Toolchain& toolchain;
  Limits compile_limits;
  Limits semantics_limits;
  bool semantics = true;
  std::function<void(CheckStageReport)> report;  // called from one thread at a time
};

// `source`: the entry file with all texts that replace the disk.
FunctionFindings CheckFunction(const FunctionCheck& check, const Source& source, const CheckTarget& target,
                               const std::stop_token& stop);

}  // namespace kernelwright::agents
