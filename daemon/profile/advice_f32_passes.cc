// Products of 32-bit floats are made of several passes over bfloat16 parts, or use slots that take twice the time.
#include <algorithm>
#include <cmath>

#include "daemon/cost/kernel_work.h"
#include "daemon/profile/advice.h"

namespace kernelwright::profile {
namespace {

constexpr double kLeastShare = 0.05;  // of the kernel's cycles
constexpr double kRows = 8;           // of a float32 operand that one product instruction takes

// Product instructions that one pass needs on an array of this edge; 0 when the step's products are not all float32.
double OnePass(const cost::StepWork& work, double edge) {
  double count = 0;
  for (const cost::Product& product : work.products) {
    if (product.dtype != "float32") return 0;
    count += product.times * product.batch * std::ceil(product.m / kRows) * std::ceil(product.k / edge) *
             std::ceil(product.n / edge);
  }
  return count;
}

}  // namespace

std::vector<Advice> AdviseF32Passes(const KernelView& view) {
  const KernelProfile& kernel = view.kernel;
  if (kernel.f32_products <= 0 || kernel.cycles <= 0) return {};
  const double per_product = view.chip.mxu_cycles_per_vmatmul ? view.chip.mxu_cycles_per_vmatmul->value : 1;
  const double share = std::min(1.0, kernel.f32_products * per_product / kernel.cycles);
  if (share < kLeastShare) return {};
  double passes = 0;
  // The rows of a product instruction are known for arrays of 128 alone.
  if (view.call != nullptr && view.chip.mxu_size == 128) {
    const double once = OnePass(cost::CountStep(*view.call), view.chip.mxu_size) * view.steps();
    if (once > 0) passes = std::round(kernel.f32_products / once);
  }
  const auto lines = view.LinesWith([](const LineProfile& line) {
    const auto mxu = line.slots.find("MXU");
    return mxu == line.slots.end() ? 0.0 : mxu->second;
  });
  const double gain = passes > 1 ? 1 - 0.5 / passes : 0.5;
  Advice advice = view.Make("f32_passes", share * gain, lines);
  advice.title = passes > 1 ? "float32 products in " + Amount(passes) + " passes" : "products of float32 operands";
  advice.text =
      Amount(kernel.f32_products / view.steps()) + " product instructions a step have 32-bit operands" +
      (passes > 1 ? ", " + Amount(passes) + " times as many as one pass needs (the precision asks for it)" : "") +
      ". With bfloat16 operands and preferred_element_type=float32 an instruction takes twice the rows" +
      (passes > 1 ? " and one pass is enough" : "") + ", if the values may be rounded.";
  advice.evidence = {{"f32_products", kernel.f32_products}, {"passes", passes}, {"mxu_share", share}};
  return {advice};
}

}  // namespace kernelwright::profile
