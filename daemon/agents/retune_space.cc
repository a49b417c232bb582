// See retune_space.h.
#include "daemon/agents/retune_space.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "daemon/base/hash.h"
#include "daemon/base/units.h"
#include "daemon/cost/roofline.h"
#include "daemon/cost/vmem.h"
#include "daemon/kernels/candidates.h"

namespace kernelwright::agents {
namespace {

// Share of the physical VMEM that a kernel may ask for: XLA keeps prefetches of the surrounding program there too.
constexpr double kLargestVmemShare = 0.8;
// Weight of VMEM in the ranking: of two candidates that the analytic model cannot tell apart the smaller one is better,
// for the surrounding program, for the length of the pipeline's ends and for the time that compile and check take.
constexpr double kVmemPenalty = 0.3;
// What the compiler adds to windows and scratch (spills, values that do not fit the registers), as a factor.
constexpr double kVmemSlack = 1.2;
constexpr size_t kMaxCandidates = 512;

std::optional<double> RankedMs(const std::vector<PallasCall>& calls, const cost::Chip& chip) {
  double sum = 0;
  for (const PallasCall& call : calls) {
    const cost::CostResult result = cost::RankEstimate(call, chip);
    const auto* estimate = std::get_if<cost::Estimate>(&result);
    if (estimate == nullptr) return std::nullopt;
    const double share = static_cast<double>(cost::ComputeVmem(call, chip).total) / chip.vmem_bytes.value;
    sum += estimate->milliseconds * (1 + kVmemPenalty * share);
  }
  return sum;
}

const kernels::CompilerParamsSite* ParamsSite(const Discovery& discovery, size_t call) {
  const int index = call < discovery.params_site_of_call.size() ? discovery.params_site_of_call[call] : -1;
  return index < 0 ? nullptr : &discovery.params_sites[index];
}

bool CanSetLimit(const Discovery& discovery, size_t call) {
  const kernels::CompilerParamsSite* site = ParamsSite(discovery, call);
  if (site == nullptr) return false;
  kernels::CompilerParamsChange change;
  change.vmem_limit_bytes = int64_t{64} << 20;
  return !kernels::CompilerParamsEdits(*site, change).empty();
}

// The base with dimension semantics that let both cores of a megacore work; nothing when none of it can be written.
struct Semantics {
  std::vector<PallasCall> base;
  std::vector<std::optional<std::vector<std::string>>> changed;  // per call
};
std::optional<Semantics> WithSemantics(const Discovery& discovery) {
  Semantics semantics{discovery.base, std::vector<std::optional<std::vector<std::string>>>(discovery.base.size())};
  bool any = false;
  for (size_t i = 0; i < discovery.base.size(); ++i) {
    const kernels::CompilerParamsSite* site = ParamsSite(discovery, i);
    const auto proposed = kernels::ProposeSemantics(discovery.base[i]);
    if (site == nullptr || !proposed) continue;
    kernels::CompilerParamsChange change;
    change.semantics = *proposed;
    if (kernels::CompilerParamsEdits(*site, change).empty()) continue;
    semantics.base[i].dimension_semantics = *proposed;
    semantics.changed[i] = proposed;
    any = true;
  }
  if (!any) return std::nullopt;
  return semantics;
}

std::string SemanticsText(const std::vector<std::string>& semantics) {
  std::string text;
  for (const std::string& axis : semantics) text += (text.empty() ? "" : ",") + axis;
  return "(" + text + ")";
}

Expected<std::optional<RetuneCandidate>> Materialise(const Discovery& discovery, kernels::Candidate candidate,
                                                     const Semantics* semantics) {
  RetuneCandidate result;
  result.point.values = candidate.values;
  result.point.values.push_back(semantics != nullptr ? 1 : 0);
  result.point.ranked_ms = candidate.cost;
  auto edits = kernels::ParameterEdits(discovery.sites, discovery.parameters, candidate.values);
  // Two parameters that want different numbers in one place cannot be combined: not a candidate.
  if (!edits) {
    if (edits.error().kind() == ErrorKind::kConflict) return std::optional<RetuneCandidate>();
    return Fail(edits.error());
  }
  result.edits = *std::move(edits);
  for (size_t i = 0; i < discovery.parameters.size(); ++i) {
    if (candidate.values[i] == discovery.parameters[i].current) continue;
    if (!result.what.empty()) result.what += ' ';
    result.what += discovery.parameters[i].name + "=" + std::to_string(candidate.values[i]);
  }
  // One pallas_call in the source may be called several times: its limit is the largest that any call needs.
  std::map<int, kernels::CompilerParamsChange> changes;
  for (size_t i = 0; i < candidate.calls.size(); ++i) {
    if (i < candidate.new_vmem_limits.size() && candidate.new_vmem_limits[i]) {
      auto& limit = changes[discovery.params_site_of_call[i]].vmem_limit_bytes;
      limit = std::max(limit.value_or(0), *candidate.new_vmem_limits[i]);
    }
    if (semantics != nullptr && semantics->changed[i]) {
      changes[discovery.params_site_of_call[i]].semantics = semantics->changed[i];
    }
  }
  for (const auto& [site, change] : changes) {
    const auto more = kernels::CompilerParamsEdits(discovery.params_sites[site], change);
    if (more.empty()) return std::optional<RetuneCandidate>();
    for (const kernels::TextEdit& edit : more) {
      // Two calls in one file may both want the same import.
      const bool known = std::any_of(result.edits.begin(), result.edits.end(), [&](const kernels::TextEdit& other) {
        return other.file == edit.file && other.range == edit.range && other.replacement == edit.replacement;
      });
      if (!known) result.edits.push_back(edit);
    }
    if (change.vmem_limit_bytes) {
      result.what += (result.what.empty() ? "" : " ") + std::string("vmem_limit_bytes=") +
                     FormatBytes(static_cast<uint64_t>(*change.vmem_limit_bytes));
    }
    if (change.semantics) {
      result.what +=
          (result.what.empty() ? "" : " ") + std::string("dimension_semantics=") + SemanticsText(*change.semantics);
    }
  }
  result.calls = std::move(candidate.calls);
  if (result.edits.empty()) return std::optional<RetuneCandidate>();
  return std::optional<RetuneCandidate>(std::move(result));
}

}  // namespace

Expected<RetuneSpace> BuildRetuneSpace(const Discovery& discovery, const cost::Chip& chip) {
  RetuneSpace space;
  kernels::VmemPolicy vmem;
  vmem.default_limit_bytes = static_cast<int64_t>(chip.vmem_default_limit_bytes.value);
  vmem.largest_limit_bytes = static_cast<int64_t>(chip.vmem_bytes.value * kLargestVmemShare);
  vmem.need_bytes = [&](const PallasCall& call) {
    return static_cast<int64_t>(kVmemSlack * static_cast<double>(cost::ComputeVmem(call, chip).total));
  };
  for (size_t i = 0; i < discovery.base.size(); ++i) vmem.can_set_limit.push_back(CanSetLimit(discovery, i));
  kernels::CandidateOptions options;
  options.max_results = kMaxCandidates;
  const kernels::CostFunction cost = [&](const std::vector<PallasCall>& calls) { return RankedMs(calls, chip); };
  space.original_ranked_ms = RankedMs(discovery.base, chip).value_or(0);

  auto add = [&](const std::vector<PallasCall>& base, const Semantics* semantics) -> Status {
    kernels::CandidateList list = kernels::EnumerateCandidates(discovery.parameters, base, options, vmem, cost);
    space.considered += list.considered;
    space.illegal += list.illegal;
    space.too_large += list.too_large;
    for (kernels::Candidate& candidate : list.candidates) {
      auto made = Materialise(discovery, std::move(candidate), semantics);
      if (!made) return made.error();
      if (*made) space.candidates.push_back(**std::move(made));
    }
    return {};
  };
  if (Status added = add(discovery.base, nullptr); !added.ok()) return Fail(added);
  if (chip.megacore) {
    if (const auto semantics = WithSemantics(discovery)) {
      if (Status added = add(semantics->base, &*semantics); !added.ok()) return Fail(added);
    }
  }
  std::stable_sort(
      space.candidates.begin(), space.candidates.end(),
      [](const RetuneCandidate& a, const RetuneCandidate& b) { return a.point.ranked_ms < b.point.ranked_ms; });
  return space;
}

std::vector<PlanStep> MakeRetunePlan(const Discovery& discovery, const RetuneSpace& space, const cost::Chip& chip,
                                     const cost::CostResult& original) {
  std::vector<PlanStep> steps;
  if (space.candidates.empty()) return steps;
  std::string bound;
  if (const auto* estimate = std::get_if<cost::Estimate>(&original)) {
    char text[160];
    std::snprintf(text, sizeof text, "%.3g ms estimated on %s, bound by %s, %.0f %% of roofline",
                  estimate->milliseconds, chip.name.c_str(), cost::BoundName(estimate->bound),
                  100 * estimate->roofline_fraction);
    bound = text;
  } else {
    bound = "what bounds the kernel is not known: " + std::get<cost::Refusal>(original).reason;
  }
  std::string gain = "unknown";
  const double best = space.candidates.front().point.ranked_ms;
  if (space.original_ranked_ms > 0 && best > 0) {
    char text[80];
    std::snprintf(text, sizeof text, "up to %.2gx with the other values (analytic ranking)",
                  std::max(1.0, space.original_ranked_ms / best));
    gain = text;
  }
  for (size_t i = 0; i < discovery.parameters.size(); ++i) {
    const kernels::Parameter& parameter = discovery.parameters[i];
    std::set<int64_t> values;
    for (const RetuneCandidate& candidate : space.candidates) values.insert(candidate.point.values[i]);
    values.erase(parameter.current);
    if (values.empty()) continue;
    PlanStep step;
    step.id = "s" + std::to_string(steps.size() + 1);
    const kernels::TunableSite& site = discovery.sites[parameter.members.front().site];
    step.title = "Choose `" + parameter.name + "` anew: now " + std::to_string(parameter.current) + ", " +
                 std::to_string(values.size()) + " other values are legal on " + chip.name;
    step.file = site.file;
    step.line = step.end_line = site.position.line;
    for (const kernels::Member& member : parameter.members) {
      const kernels::TunableSite& other = discovery.sites[member.site];
      if (other.file != site.file) continue;
      step.line = std::min(step.line, other.position.line);
      step.end_line = std::max(step.end_line, other.position.line);
    }
    step.reason = (parameter.reduction ? "it sets the blocks of a reduction axis: " : "it sets block sizes: ") + bound;
    step.expected_gain = gain;
    step.evidence = "tracing with this number changed moved grid and blocks; values ranked before any compile";
    step.content_sha256 = Sha256Hex(step.title + "\n" + step.file + "\n" + std::to_string(step.line));
    steps.push_back(std::move(step));
  }
  for (size_t call = 0; call < discovery.base.size(); ++call) {
    const kernels::CompilerParamsSite* site = ParamsSite(discovery, call);
    if (site == nullptr) continue;
    const bool sets_limit = std::any_of(space.candidates.begin(), space.candidates.end(), [&](const auto& candidate) {
      return candidate.what.find("vmem_limit_bytes") != std::string::npos;
    });
    const bool sets_semantics = std::any_of(space.candidates.begin(), space.candidates.end(),
                                            [](const auto& candidate) { return candidate.point.values.back() == 1; });
    if (!sets_limit && !sets_semantics) continue;
    PlanStep step;
    step.id = "s" + std::to_string(steps.size() + 1);
    step.title = sets_semantics ? "Let both cores work: dimension_semantics"
                                : "Raise vmem_limit_bytes where larger blocks need it";
    step.file = site->file;
    step.line = site->line;
    step.end_line = site->end_line;
    step.reason = sets_semantics ? "without a parallel axis one of the two cores of " + chip.name + " idles"
                                 : "the default limit is " +
                                       FormatBytes(static_cast<uint64_t>(chip.vmem_default_limit_bytes.value)) +
                                       ", the chip has " + FormatBytes(static_cast<uint64_t>(chip.vmem_bytes.value));
    step.expected_gain = gain;
    step.evidence = "chip data and the VMEM model";
    step.content_sha256 = Sha256Hex(step.title + "\n" + step.file + "\n" + std::to_string(step.line));
    steps.push_back(std::move(step));
    break;
  }
  return steps;
}

}  // namespace kernelwright::agents
