// How a check looks in a terminal: one line per stage while it goes on, and the diagnostics as compilers print them.
#pragma once

#include <map>
#include <string>

#include "daemon/agents/check.h"
#include "daemon/cli/output.h"
#include "daemon/kernels/notebook.h"

namespace kernelwright::cli {

struct CheckViewOptions {
  bool raw = false;                                    // texts of jax and the compiler whole
  std::string folder;                                  // files below it are named relative to it
  std::map<std::string, kernels::Notebook> notebooks;  // by path: their lines are told by cell
};

// "  compile matmul v6e   1.2 s", for standard error; empty for stages that are not worth a line.
std::string RenderStage(const agents::CheckStageReport& stage, const Style& style);

// All diagnostics and a last line with their number. `texts`: of the files, by path, for the lines shown.
std::string RenderCheck(const agents::CheckResult& result, const std::map<std::string, std::string>& texts,
                        const CheckViewOptions& options, const Style& style);

}  // namespace kernelwright::cli
