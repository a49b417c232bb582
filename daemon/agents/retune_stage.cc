// See retune_stage.h. Candidates are compiled in the order that CandidateSearch asks for; the best so far is checked
// after each round, so that a run that is cancelled or out of budget has a proven result as early as possible.
#include "daemon/agents/retune_stage.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "daemon/agents/candidate_search.h"
#include "daemon/agents/parallel.h"

namespace kernelwright::agents {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr double kRooflineSlack = 1.02;  // at this distance from the floor nothing is worth another compile

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

}  // namespace

Status Retune(RunContext& run, ChipEvaluation& evaluation, Variant& variant, const cost::Chip& chip,
              const cost::CostResult& current, const cost::Estimate& before, const std::string& no_check,
              size_t compiles, ChipResult& result) {
  auto built = SpaceOf(variant, chip);
  if (!built) return built.error();
  const RetuneSpace& space = **built;
  std::vector<PlanStep> steps = MakeRetunePlan(*variant.discovery, space, chip, current);
  for (PlanStep& step : steps) {
    step.id = "s" + std::to_string(result.plan.size() + 1);
    result.plan.push_back(step);
  }
  if (!steps.empty() || result.plan.empty()) run.Emit("plan_made", PlanMadePayload(chip.name, steps));
  if (space.candidates.empty()) return {};

  std::vector<SearchPoint> points;
  points.reserve(space.candidates.size());
  for (const RetuneCandidate& candidate : space.candidates) points.push_back(candidate.point);
  CandidateSearch::Options options;
  options.budget = compiles;
  options.target_ms = before.floor_milliseconds * kRooflineSlack;
  CandidateSearch search(points, options);
  const auto start = SteadyClock::now();
  size_t finished = 0;
  size_t checked_at = 0;
  std::map<size_t, Attempt*> attempts;
  while (!run.out_of_time()) {
    const std::vector<size_t> batch = search.Next(static_cast<size_t>(std::max(1, run.parallel)) * 2);
    if (batch.empty()) break;
    for (size_t i : batch) {
      const RetuneCandidate& candidate = space.candidates[i];
      auto files = EditedFiles(variant.source, candidate.edits);
      if (!files) return files.error();
      const std::string what = variant.what.empty() ? candidate.what : variant.what + "; " + candidate.what;
      auto added = evaluation.Add(variant, *std::move(files), what, candidate.point.ranked_ms, candidate.calls);
      if (!added) return added.error();
      attempts[i] = *added;
    }
    Status failure;
    RunParallel(batch.size(), run.parallel, run.stop, [&](size_t k) {
      const Status compiled = evaluation.Compile(*attempts[batch[k]]);
      std::lock_guard lock(run.mutex);
      if (!compiled.ok()) {
        failure = compiled;
        return false;
      }
      ++finished;
      const double each = SecondsSince(start) / static_cast<double>(finished);
      run.Emit("progress",
               ProgressPayload(chip.name, "compiling", finished, finished + search.LikelyLeft(), evaluation.compiles(),
                               static_cast<int64_t>(1000 * each * static_cast<double>(search.LikelyLeft()))));
      return true;
    });
    for (size_t i : batch) {
      const cost::Estimate* estimate = attempts[i]->estimate();
      search.Report(i, estimate != nullptr ? std::optional<double>(estimate->milliseconds) : std::nullopt);
    }
    if (!failure.ok()) return failure;
    if (finished >= checked_at + options.first) {
      checked_at = finished;
      if (Status checked = evaluation.CheckBest(before, no_check); !checked.ok()) return checked;
      if (evaluation.gave_up()) break;
    }
  }
  if (run.stop.stop_requested()) return Status(ErrorKind::kCancelled, "cancelled");
  return evaluation.CheckBest(before, no_check);
}

}  // namespace kernelwright::agents
