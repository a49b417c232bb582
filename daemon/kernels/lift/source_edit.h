// Puts generated kernels into the user's file: the function keeps its place, decorators, signature and docstring and
// gets a new body; what it did before stays as the plain form behind it; missing imports are added.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "daemon/kernels/lift/kernel_text.h"
#include "daemon/kernels/lift/lift.h"

namespace kernelwright::kernels::lift {

// Names for the generated functions, chosen so that nothing in the file has them.
struct Target {
  const SourceFile* file = nullptr;
  FunctionInfo function;
  Modules modules;
  std::string plain;     // "rms_norm_plain"
  std::string lifted;    // "_rms_norm_lifted"
  std::string takes;     // "_rms_norm_takes"
  std::string jvp;       // "_rms_norm_jvp"
  std::string backward;  // "_rms_norm_backward"
};

// Finds the function and checks that its text can be edited so.
std::variant<Target, Obstacle> FindTarget(const ProposalContext& context);

// One generated stage with its place in the plan.
struct WrittenStage {
  StageNames names;
  StageText text;
  std::vector<int> outputs;  // nodes
};

// Fills edits and new_files of `proposal`.
std::variant<bool, Obstacle> EditSource(const LiftRequest& request, const Target& target, const WriterContext& writer,
                                        const std::vector<WrittenStage>& stages, Proposal& proposal);

}  // namespace kernelwright::kernels::lift
