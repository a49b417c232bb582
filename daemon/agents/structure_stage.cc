// See structure_stage.h.
#include "daemon/agents/structure_stage.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "daemon/agents/parallel.h"
#include "daemon/base/hash.h"
#include "daemon/cost/detailed_cost.h"
#include "daemon/kernels/rewrite/rewrite.h"
#include "daemon/profile/build_report.h"
#include "daemon/profile/step.h"

namespace kernelwright::agents {
namespace {

constexpr size_t kDepth = 3;           // rewrites composed at most
constexpr size_t kBeam = 2;            // variants that are rewritten further
constexpr size_t kPerNode = 8;         // proposals tried of one variant, largest expected gain first
constexpr double kResolution = 0.005;  // a gain smaller than this share is none

kernels::Exactness AllowedBy(const std::string& setting) {
  if (setting == "bit-equal") return kernels::Exactness::kBitEqual;
  return setting == "lower-precision" ? kernels::Exactness::kLowerPrecision : kernels::Exactness::kReassociation;
}

}  // namespace

void StructureStage::AddStep(const kernels::Proposal& proposal) {
  PlanStep step;
  step.id = "s" + std::to_string(result_.plan.size() + 1);
  step.title = proposal.what;
  step.file = proposal.place.file;
  step.line = proposal.place.line;
  step.end_line = proposal.place.end_line;
  step.reason = proposal.reason;
  char gain[48];
  std::snprintf(gain, sizeof gain, "%.2fx (expected)", proposal.expected_gain);
  step.expected_gain = proposal.expected_gain > 0 ? gain : "unknown until it is compiled";
  step.evidence = proposal.evidence;
  step.content_sha256 = Sha256Hex(step.title + "\n" + step.file + "\n" + std::to_string(step.line));
  result_.plan.push_back(std::move(step));
}

Status StructureStage::CompileAll(const std::vector<Attempt*>& attempts) {
  Status failure;
  size_t finished = 0;
  RunParallel(attempts.size(), run_.parallel, run_.stop, [&](size_t i) {
    if (run_.budget.expired()) return false;
    const Status compiled = evaluation_.Compile(*attempts[i]);
    std::lock_guard lock(run_.mutex);
    if (!compiled.ok()) {
      failure = compiled;
      return false;
    }
    run_.Emit("progress",
              ProgressPayload(chip_.name, "compiling", ++finished, attempts.size(), evaluation_.compiles(), -1));
    return true;
  });
  return failure;
}

Status StructureStage::Lift(Lifts& lifts) {
  std::vector<Attempt*> attempts;
  for (const auto& variant : lifts.variants) {
    AddStep(variant->steps.back());
    auto added = evaluation_.Add(*variant, variant->source.files, variant->what, 0, variant->Calls());
    if (!added) return added.error();
    attempts.push_back(*added);
    nodes_.push_back({variant.get(), *added});
  }
  run_.Emit("plan_made", PlanMadePayload(chip_.name, result_.plan));
  return CompileAll(attempts);
}

const StructureStage::Node* StructureStage::Best() const {
  const Node* best = nullptr;
  for (const Node& node : nodes_) {
    if (node.attempt->estimate() == nullptr || node.attempt->row.status == "failed") continue;
    if (best == nullptr || node.milliseconds() < best->milliseconds() * (1 - kResolution)) best = &node;
  }
  return best;
}

// What the rules say about a variant, with the profile of its compile if that is still known.
Expected<kernels::Proposals> StructureStage::Propose(const Node& node) {
  ParseFiles(*node.variant);
  std::optional<profile::ProfileReport> report;
  Versions versions;
  if (auto dumps = evaluation_.evaluator().DumpsOf(node.attempt->source, chip_, &versions)) {
    cost::DetailedCost cost =
        cost::EstimateInDetail(*std::move(dumps), chip_, run_.work, versions, profile::kRecordedRounds);
    profile::ProfileInput input;
    input.file = node.variant->source.file;
    input.function = node.variant->source.function;
    input.inputs = kernels::FormatInputs(run_.frozen.inputs);
    input.program = &*node.variant->traced.program;
    input.work = run_.work;
    for (const FileText& text : node.variant->source.files) input.sources.push_back({text.path, text.text});
    report = profile::BuildReport(std::move(cost), chip_, input);
  }
  const kernels::ProposalContext context{node.variant->files,
                                         node.variant->source.file,
                                         node.variant->source.function,
                                         *node.variant->traced.program,
                                         run_.frozen.inputs,
                                         chip_,
                                         report ? &*report : nullptr,
                                         AllowedBy(run_.request.exactness)};
  return rewrite::ProposeRewrites(context);
}

Status StructureStage::Expand(const Node& node, bool first_level, size_t most, std::vector<Node>& made) {
  auto proposals = Propose(node);
  if (!proposals) return proposals.error();
  if (first_level) result_.refusals = proposals->refusals;
  std::stable_sort(proposals->proposals.begin(), proposals->proposals.end(),
                   [](const auto& a, const auto& b) { return a.expected_gain > b.expected_gain; });
  size_t tried = 0;
  for (const kernels::Proposal& proposal : proposals->proposals) {
    if (first_level) {
      result_.recognised.push_back(proposal);
      AddStep(proposal);
    }
    if (tried >= std::min(kPerNode, most) || run_.out_of_time()) continue;
    auto variant = MakeVariant(run_, *node.variant, proposal, chip_.name);
    if (!variant && variant.error().kind() != ErrorKind::kUserCode && variant.error().kind() != ErrorKind::kConflict) {
      return variant.error();
    }
    if (!variant) {
      result_.refusals.push_back({proposal.rule, proposal.what + ": " + variant.error().message(), proposal.place});
      continue;
    }
    if (!seen_.insert(ContentHash(variant->source.files)).second) continue;
    variants_.push_back(std::make_unique<Variant>(*std::move(variant)));
    Variant& kept = *variants_.back();
    auto added = evaluation_.Add(kept, kept.source.files, kept.what, 0, kept.Calls());
    if (!added) return added.error();
    made.push_back({&kept, *added});
    ++tried;
  }
  return {};
}

Status StructureStage::Rewrite(Variant& original, Attempt& first, size_t compiles) {
  nodes_.push_back({&original, &first});
  seen_.insert(first.source.content_sha256);
  std::vector<Node> beam = nodes_;
  size_t left = compiles;
  for (size_t level = 0; level < kDepth && !beam.empty() && left > 0 && !run_.out_of_time(); ++level) {
    std::vector<Node> made;
    for (const Node& node : beam) {
      // What the first level leaves is for compositions.
      const size_t most = level == 0 ? (left + 1) / 2 : left - std::min(left, made.size());
      if (Status expanded = Expand(node, level == 0, most, made); !expanded.ok()) return expanded;
    }
    if (level == 0 && !result_.plan.empty()) run_.Emit("plan_made", PlanMadePayload(chip_.name, result_.plan));
    std::vector<Attempt*> attempts;
    attempts.reserve(made.size());
    for (const Node& node : made) attempts.push_back(node.attempt);
    if (Status compiled = CompileAll(attempts); !compiled.ok()) return compiled;
    left -= std::min(left, made.size());
    const double known = Best()->milliseconds();
    std::erase_if(made, [](const Node& node) { return node.attempt->estimate() == nullptr; });
    std::stable_sort(made.begin(), made.end(),
                     [](const Node& a, const Node& b) { return a.milliseconds() < b.milliseconds(); });
    nodes_.insert(nodes_.end(), made.begin(), made.end());
    // Two rules may need each other, so that the first level is taken further whether or not it gained.
    if (made.empty() || (level > 0 && made.front().milliseconds() > known * (1 - kResolution))) break;
    made.resize(std::min(made.size(), kBeam));
    beam = std::move(made);
  }
  return {};
}

}  // namespace kernelwright::agents
