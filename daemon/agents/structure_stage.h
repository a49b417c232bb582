// Changes of structure on one chip: the lifts of a plain function, or rewrites of a kernel composed in a small beam.
// Each is an attempt like any other; the best of them is what a retune starts from.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/agents/attempt.h"
#include "daemon/agents/lift_stage.h"

namespace kernelwright::agents {

class StructureStage {
 public:
  // A variant that was tried.
  struct Node {
    Variant* variant = nullptr;
    Attempt* attempt = nullptr;
    double milliseconds() const { return attempt->estimate()->milliseconds; }
  };

  StructureStage(RunContext& run, ChipEvaluation& evaluation, const cost::Chip& chip, ChipResult& result)
      : run_(run), evaluation_(evaluation), chip_(chip), result_(result) {}

  Status Lift(Lifts& lifts);
  // Rewrites of `original`, compiled as `first`; takes at most `compiles` compiles.
  Status Rewrite(Variant& original, Attempt& first, size_t compiles);

  // The fastest that has not failed a check: what to retune. Null when no lift compiles.
  const Node* Best() const;

 private:
  Status CompileAll(const std::vector<Attempt*>& attempts);
  void AddStep(const kernels::Proposal& proposal);
  Expected<kernels::Proposals> Propose(const Node& node);
  Status Expand(const Node& node, bool first_level, size_t most, std::vector<Node>& made);

  RunContext& run_;
  ChipEvaluation& evaluation_;
  const cost::Chip& chip_;
  ChipResult& result_;
  std::vector<Node> nodes_;
  std::vector<std::unique_ptr<Variant>> variants_;
  std::set<std::string> seen_;  // content hashes
};

}  // namespace kernelwright::agents
