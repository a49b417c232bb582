// At which reduced shapes a candidate is checked: the smallest of the run's frozen ladder at which it still has two
// blocks on each grid axis and the same tails as at full size.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/agents/frozen_reference.h"
#include "daemon/agents/toolchain.h"

namespace kernelwright::agents {

struct ShapeChoice {
  std::vector<CheckShape> shapes;  // empty: no reduced check is possible
  std::string why_none;
};

// Traces the candidate's files along the ladder on `chip`. `full`: its kernels at full size.
Expected<ShapeChoice> ChooseShapes(const FrozenReference& frozen, const std::vector<FileText>& files,
                                   const std::vector<PallasCall>& full, const std::string& chip, Toolchain& toolchain,
                                   const Limits& limits, std::stop_token stop);

}  // namespace kernelwright::agents
