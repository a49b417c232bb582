// Runs a function's kernels in the TPU interpreter and says what it saw in the terms of the catalogue: races, memory
// that nothing wrote, blocks and slices out of bounds, values that differ from plain evaluation.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/agents/check_errors.h"
#include "daemon/agents/check_rules.h"
#include "daemon/agents/toolchain.h"

namespace kernelwright::agents {

struct SemanticsQuestion {
  Source source;
  std::vector<kernels::InputSpec> inputs;  // at full size
  Program program;                         // of the trace at full size
  std::vector<PallasCall> calls;           // its kernels
  std::string chip;
  Limits limits;
};

struct SemanticsAnswer {
  bool ran = false;
  std::string note;  // at which shapes, or why it could not run
  JobReport job;     // when it is not done there is no verdict
  JudgeReport verdict;
};

// A Status error means that the worker failed or `stop` was requested.
Expected<SemanticsAnswer> RunSemantics(const SemanticsQuestion& question, Toolchain& toolchain,
                                       const std::stop_token& stop);

// Diagnostics of the failed gates. That the interpreter cannot run a kernel at all is an information, no error: it
// lacks some of what the chips have. `lints`: what the static look at the same kernels found; an unwritten memory is
// explained by the one that fits.
std::vector<diagnose::Diagnostic> DiagnosticsOfVerdict(const JudgeReport& verdict, const ErrorContext& context,
                                                       const std::vector<diagnose::Diagnostic>& lints,
                                                       const CheckRules& rules);

}  // namespace kernelwright::agents
