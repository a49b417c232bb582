// Products with a contraction or a width below the MXU's edge leave part of the array empty.
#include <algorithm>
#include <cmath>

#include "daemon/cost/kernel_work.h"
#include "daemon/profile/advice.h"

namespace kernelwright::profile {
namespace {

constexpr double kEnough = 0.75;      // filled
constexpr double kLeastShare = 0.05;  // of the kernel's cycles that the products take at least

double Fill(double size, double edge) { return size / (std::ceil(size / edge) * edge); }

}  // namespace

std::vector<Advice> AdviseMxuFill(const KernelView& view) {
  const KernelProfile& kernel = view.kernel;
  if (view.call == nullptr || kernel.products <= 0 || view.chip.mxu_size <= 0) return {};
  const double edge = view.chip.mxu_size;
  const cost::Product* worst = nullptr;
  double worst_fill = kEnough;
  const cost::StepWork work = cost::CountStep(*view.call);
  for (const cost::Product& product : work.products) {
    const double fill = Fill(product.k, edge) * Fill(product.n, edge);
    if (fill < worst_fill) {
      worst = &product;
      worst_fill = fill;
    }
  }
  if (worst == nullptr) return {};
  const double per_product = view.chip.mxu_cycles_per_vmatmul ? view.chip.mxu_cycles_per_vmatmul->value : 1;
  const double mxu_share = std::min(1.0, kernel.products * per_product / kernel.cycles);
  if (mxu_share < kLeastShare) return {};
  const auto lines = view.LinesWith([](const LineProfile& line) {
    const auto mxu = line.slots.find("MXU");
    return mxu == line.slots.end() ? 0.0 : mxu->second;
  });
  Advice advice = view.Make("mxu_fill", mxu_share * (1 - worst_fill), lines);
  advice.title = "the MXU is filled to " + Percent(worst_fill);
  advice.text = "A product of this step contracts over k = " + Amount(worst->k) + " and is n = " + Amount(worst->n) +
                " wide, on an array of " + Amount(edge) + " x " + Amount(edge) +
                ". Use blocks with k and n of multiples of " + Amount(edge) +
                ", or put several small products into one.";
  advice.evidence = {{"fill", worst_fill}, {"m", worst->m},    {"k", worst->k},
                     {"n", worst->n},      {"mxu_edge", edge}, {"mxu_share", mxu_share}};
  return {advice};
}

}  // namespace kernelwright::profile
