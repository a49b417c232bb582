// `pl.Buffered(1)` on an operand that changes from step to step puts its copy in front of the work instead of behind
// it. With the usual two buffers the next block arrives while this one is used, if VMEM has the room.
#include "daemon/cost/vmem.h"
#include "daemon/kernels/literals.h"
#include "daemon/kernels/rewrite/rule.h"

namespace kernelwright::rewrite {

void DoubleBuffering(const KernelView& view, Answer& answer) {
  Rewriter builder(view);
  std::string names;
  Node place;
  int64_t bytes = 0;
  PallasCall changed = view.call;
  for (const Ref& ref : view.refs) {
    if (ref.block == nullptr || ref.block->buffers != 1 || !ref.spec) continue;
    const Node mode = diagnose::KeywordArgument(ref.spec, "pipeline_mode");
    if (!mode) continue;
    const auto axes = AxesOf(view, ref);
    if (!axes || axes->empty()) {
      answer.Refuse(ref.name + " stays the same: one buffer is right for it", ref.spec);
      continue;
    }
    if (!axes->contains(view.last_axis())) {
      answer.Refuse(ref.name + " changes only with an outer axis: one buffer costs one wait per change and saves VMEM",
                    ref.spec);
      continue;
    }
    const Node count = diagnose::IsCallOf(mode.Field("value"), {"Buffered"})
                           ? diagnose::Argument(mode.Field("value"), 0, "buffer_count")
                           : Node();
    if (!count || kernels::EvaluateInteger(count) != 1) {
      answer.Refuse("the number of buffers of " + ref.name + " is not a literal", ref.spec);
      continue;
    }
    const size_t number = static_cast<size_t>(ref.block - view.call.blocks.data());
    changed.blocks[number].buffers = 2;
    if (place == ref.spec) continue;  // one spec for several operands
    builder.RemoveArgument(mode);
    place = ref.spec;
    names += (names.empty() ? "" : ", ") + ref.name;
  }
  if (builder.empty()) return;
  const auto before = cost::ComputeVmem(view.call, view.request.chip);
  const auto after = cost::ComputeVmem(changed, view.request.chip);
  bytes = after.total - before.total;
  if (!after.fits) {
    answer.Refuse("a second buffer of " + names + " does not fit: " + Bytes(after.total) + " of " + Bytes(after.limit) +
                  " VMEM");
    return;
  }
  answer.Propose(place,
                 {"two buffers for " + names,
                  "With a single buffer each step waits for its own copy; with two the next block arrives while this "
                  "one is used.",
                  "graph: the block of " + names + " changes in every step and has one buffer; the second takes " +
                      Bytes(bytes) + " of VMEM",
                  1.3, kernels::Exactness::kBitEqual},
                 builder.edits());
}

}  // namespace kernelwright::rewrite
