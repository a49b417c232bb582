// The frame of a rule: what it is given and how it answers. A rule is one file and one line in rewrite.cc.
#pragma once

#include <string>
#include <utility>

#include "daemon/kernels/proposal.h"
#include "daemon/kernels/rewrite/kernel_view.h"

namespace kernelwright::rewrite {

// Collects the answers of one rule about one kernel.
class Answer {
 public:
  Answer(std::string rule, const KernelView& view, kernels::Proposals& all);

  struct Change {
    std::string what;
    std::string reason;
    std::string evidence;
    double expected_gain = 0;
    kernels::Exactness exactness = kernels::Exactness::kBitEqual;
  };
  // Turned into a refusal when the user does not allow what it does to the values.
  void Propose(const Node& place, Change change, std::vector<kernels::TextEdit> edits);
  // Only the first reason is kept, and only when nothing is proposed.
  void Refuse(std::string reason, const Node& place = {});
  // Writes the refusal, if there is one to write. `otherwise` is the reason when the rule gave none.
  void Finish(const std::string& otherwise);

 private:
  kernels::LineRange PlaceOf(const Node& node) const;

  std::string rule_;
  const KernelView& view_;
  kernels::Proposals& all_;
  bool proposed_ = false;
  std::optional<kernels::RuleRefusal> refusal_;
};

using Rule = void (*)(const KernelView& view, Answer& answer);

void ScratchAccumulator(const KernelView& view, Answer& answer);  // sum in f32 scratch, output in its final type
void LastStepEpilogue(const KernelView& view, Answer& answer);    // what only the last step needs
void MxuOperands(const KernelView& view, Answer& answer);         // 16-bit operands, 32-bit sums
void TransposedOperand(const KernelView& view, Answer& answer);   // contraction instead of a transposed block
void DimensionSemantics(const KernelView& view, Answer& answer);  // the second core
void ClampedIndexMap(const KernelView& view, Answer& answer);     // no copies of masked blocks
void HoistFromLoop(const KernelView& view, Answer& answer);       // out of an inner loop
void HoistFromSteps(const KernelView& view, Answer& answer);      // once per block instead of once per step
void ExpToExp2(const KernelView& view, Answer& answer);           // log2(e) folded into a factor
void OnePassStatistics(const KernelView& view, Answer& answer);   // mean and variance together
void FullLanes(const KernelView& view, Answer& answer);           // two halves of the lanes as one value
void DoubleBuffering(const KernelView& view, Answer& answer);     // copies behind the work
void VmemLimit(const KernelView& view, Answer& answer);           // leave VMEM to the rest of the program

}  // namespace kernelwright::rewrite
