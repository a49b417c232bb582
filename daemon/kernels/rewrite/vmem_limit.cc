// VMEM that a kernel reserves and does not use is missing for the program around it: on chips with little VMEM the
// compiler then keeps the kernel's operands in HBM that it would have held on chip. The limit is lowered to what the
// kernel needs.
#include <algorithm>

#include "daemon/cost/chips.h"
#include "daemon/cost/vmem.h"
#include "daemon/kernels/rewrite/rule.h"
#include "daemon/profile/report.h"

namespace kernelwright::rewrite {

void VmemLimit(const KernelView& view, Answer& answer) {
  if (!view.call.vmem_limit_bytes || *view.call.vmem_limit_bytes <= 0) return;
  const auto use = cost::ComputeVmem(view.call, view.request.chip);
  const int64_t limit = *view.call.vmem_limit_bytes;
  const bool known = view.profile != nullptr && view.profile->vmem.total > 0;
  const int64_t need = known ? std::max(view.profile->vmem.total, use.total) : use.total;
  if (!use.unknown.empty() && !known) {
    answer.Refuse("the size of " + use.unknown.front() + " is not known");
    return;
  }
  constexpr int64_t kMiB = int64_t{1} << 20;
  // Room for what the compiler adds: spilled registers, and temporaries of the body.
  const int64_t wanted = (need + need / 4 + 2 * kMiB + kMiB - 1) / kMiB * kMiB;
  const int64_t standard = static_cast<int64_t>(view.request.chip.vmem_default_limit_bytes.value);
  const int64_t lowered = std::max(wanted, std::min(standard, limit));
  if (lowered * 5 > limit * 4) {
    answer.Refuse("the kernel needs about " + Bytes(need) + " of the " + Bytes(limit) + " that it reserves");
    return;
  }
  auto edits = ParamsEdits(view, std::nullopt, lowered);
  if (edits.empty()) {
    answer.Refuse("the limit is not a literal in the call");
    return;
  }
  answer.Propose(
      view.launch.call,
      {"reserve " + Bytes(lowered) + " of VMEM instead of " + Bytes(limit),
       "What the kernel reserves cannot hold arrays for the program around it: with a lower limit the "
       "compiler may keep operands on chip between kernels.",
       std::string(known ? "estimated: the compiler's own allocations are " : "graph: windows and scratch are ") +
           Bytes(need) + " of " + Bytes(limit),
       0, kernels::Exactness::kBitEqual},
      std::move(edits));
}

}  // namespace kernelwright::rewrite
