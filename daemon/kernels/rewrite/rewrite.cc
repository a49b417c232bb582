// The table of rules and the walk over the program's kernels; see rewrite.h.
#include "daemon/kernels/rewrite/rewrite.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "daemon/kernels/rewrite/rule.h"

namespace kernelwright::rewrite {
namespace {

// What a rule edits. A function that another call launches too must stay as it is, and so must a call that is given its
// function as an argument.
enum class Edits { kKernel, kCall, kBoth };

struct Entry {
  const char* name;
  Rule rule;
  Edits edits;
  const char* otherwise;  // the refusal when the rule finds nothing that it is about
};

constexpr Entry kRules[] = {
    {"scratch-accumulator", ScratchAccumulator, Edits::kBoth, "no output is added to over the steps of a reduction"},
    {"last-step-epilogue", LastStepEpilogue, Edits::kKernel, "no output is overwritten in every step of a reduction"},
    {"mxu-operands", MxuOperands, Edits::kKernel, "no product has 32-bit float operands"},
    {"transposed-operand", TransposedOperand, Edits::kKernel,
     "no right operand of a product is transposed in the kernel"},
    {"dimension-semantics", DimensionSemantics, Edits::kCall, "there is no grid"},
    {"clamped-index-map", ClampedIndexMap, Edits::kCall, "no step is skipped by a condition on the last grid axis"},
    {"hoist-from-loop", HoistFromLoop, Edits::kKernel, "no inner loop computes the same in every round"},
    {"hoist-from-steps", HoistFromSteps, Edits::kBoth, "every costly value depends on what changes from step to step"},
    {"exp2", ExpToExp2, Edits::kKernel, "no exponential has a constant factor"},
    {"one-pass-statistics", OnePassStatistics, Edits::kKernel, "no variance is computed from differences to the mean"},
    {"full-lanes", FullLanes, Edits::kKernel, "no output is stored as two halves of the lanes"},
    {"double-buffering", DoubleBuffering, Edits::kCall, "no operand is held in a single buffer by the source"},
    {"vmem-limit", VmemLimit, Edits::kCall, "the source sets no VMEM limit"},
};

}  // namespace

Answer::Answer(std::string rule, const KernelView& view, kernels::Proposals& all)
    : rule_(std::move(rule)), view_(view), all_(all) {}

kernels::LineRange Answer::PlaceOf(const Node& node) const {
  const Node at = node ? node : view_.launch.call;
  return {view_.source.file().path(), at.row() + 1, at.end_row() + 1};
}

void Answer::Propose(const Node& place, Change change, std::vector<kernels::TextEdit> edits) {
  if (edits.empty()) return;
  if (change.exactness > view_.request.allowed) {
    Refuse("would be " + std::string(kernels::ExactnessName(change.exactness)) +
               ", which the settings do not allow: " + change.what,
           place);
    return;
  }
  kernels::Proposal proposal;
  proposal.rule = rule_;
  proposal.what = std::move(change.what);
  proposal.place = PlaceOf(place);
  proposal.reason = std::move(change.reason);
  proposal.evidence = std::move(change.evidence);
  proposal.expected_gain = change.expected_gain;
  proposal.exactness = change.exactness;
  proposal.edits = std::move(edits);
  all_.proposals.push_back(std::move(proposal));
  proposed_ = true;
}

void Answer::Refuse(std::string reason, const Node& place) {
  if (!refusal_) refusal_ = kernels::RuleRefusal{rule_, view_.name() + ": " + std::move(reason), PlaceOf(place)};
}

void Answer::Finish(const std::string& otherwise) {
  if (proposed_) return;
  Refuse(otherwise);
  all_.refusals.push_back(std::move(*refusal_));
}

std::vector<std::string> RuleNames() {
  std::vector<std::string> names;
  std::transform(std::begin(kRules), std::end(kRules), std::back_inserter(names),
                 [](const Entry& entry) { return entry.name; });
  return names;
}

kernels::Proposals ProposeRewrites(const kernels::ProposalContext& context) {
  kernels::Proposals all;
  std::vector<PallasCall> calls;
  for (const PallasCall* call : FindPallasCalls(context.program)) calls.push_back(*call);
  size_t seen = 0;
  for (const auto& file : context.files) {
    if (!file->errors().empty()) continue;
    const FixSource source(file->path(), file->text(), {});
    for (const KernelView& view : ViewsOf(context, source, calls)) {
      ++seen;
      for (const Entry& entry : kRules) {
        Answer answer(entry.name, view, all);
        if (entry.edits != Edits::kCall && view.shared_kernel) {
          answer.Refuse("another call launches the same function", view.kernel());
        } else if (entry.edits != Edits::kKernel && view.shared_call) {
          answer.Refuse("the call is given its function as an argument and may serve others");
        } else {
          entry.rule(view, answer);
        }
        answer.Finish(entry.otherwise);
      }
    }
  }
  if (seen == 0) {
    const std::string reason =
        calls.empty() ? "the program has no Pallas kernel"
                      : "no kernel can be read: the call and its function must be in one file, the function must take "
                        "each reference as a parameter of its own, and both must be found in the traced program";
    for (const Entry& entry : kRules) all.refusals.push_back({entry.name, reason, {context.file, 0, 0}});
  }
  return all;
}

}  // namespace kernelwright::rewrite
