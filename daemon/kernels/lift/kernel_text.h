// Text of one stage of a plan: a kernel function and the function that calls it, which takes any shape.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "daemon/kernels/lift/body.h"
#include "daemon/kernels/lift/plan.h"

namespace kernelwright::kernels::lift {

struct StageText {
  std::string text;                    // both functions
  std::vector<std::string> arguments;  // of the call, in order: names of the values that it takes
  std::vector<int> argument_nodes;
  bool needs_functools = false;
};

struct StageNames {
  std::string kernel;  // "_rms_norm_kernel"
  std::string call;    // "_rms_norm_call"
  std::string title;   // "rms_norm": the kernel's name in dumps and profiles
};

std::variant<StageText, Obstacle> WriteStage(const WriterContext& context, const Stage& stage, const StageNames& names);

}  // namespace kernelwright::kernels::lift
