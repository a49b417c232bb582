// Advice: rules over a profile, each a small function in a file of its own. A rule says something only with the numbers
// that it rests on, and never promises more than the share of the time that it is about.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/kernels/program.h"
#include "daemon/profile/report.h"

namespace kernelwright::profile {

struct AdviceContext {
  const ProfileReport& report;  // complete but for its advice
  const cost::Chip& chip;
  std::vector<const PallasCall*> calls;  // by kernel of the report; null when not known
};

// One kernel as a rule sees it.
struct KernelView {
  const ProfileReport& report;
  const cost::Chip& chip;
  const KernelProfile& kernel;
  const PallasCall* call = nullptr;

  // Steps that the kernel made over all calls, at least 1.
  double steps() const;
  // The lines with the largest part of an amount, most first; line 0 is left out. At most `most`.
  std::vector<const LineProfile*> LinesWith(const std::function<double(const LineProfile&)>& amount,
                                            size_t most = 3) const;
  // An advice of this kernel with the lines given; `share` of the kernel's time becomes one of the program's.
  Advice Make(const std::string& id, double share, const std::vector<const LineProfile*>& lines) const;
};

using Rule = std::vector<Advice> (*)(const KernelView& view);

std::vector<Advice> AdviseCasts(const KernelView& view);         // values change type in the vector unit
std::vector<Advice> AdviseDmaWait(const KernelView& view);       // steps wait for copies
std::vector<Advice> AdviseSpills(const KernelView& view);        // too few vector registers
std::vector<Advice> AdviseMxuFill(const KernelView& view);       // products smaller than the MXU
std::vector<Advice> AdviseParallelAxis(const KernelView& view);  // a second core stands idle
std::vector<Advice> AdviseNarrowDma(const KernelView& view);     // windows padded to tiles
std::vector<Advice> AdviseRelayout(const KernelView& view);      // moves across lanes
std::vector<Advice> AdviseSmallSteps(const KernelView& view);    // the pipeline's own work per step
std::vector<Advice> AdviseF32Passes(const KernelView& view);     // 32-bit float products

// All rules over all kernels, by share.
std::vector<Advice> Advise(const AdviceContext& context);

// "12", "3.4", "0.052": three significant digits at most, for the texts.
std::string Amount(double value);
std::string Percent(double share);                    // "37 %"
std::string LineList(const std::vector<int>& lines);  // "line 15", "lines 15 and 18"

}  // namespace kernelwright::profile
