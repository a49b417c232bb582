// See candidate_search.h. Neighbours matter because the ranking is analytic: near its best the compiler's schedule
// decides, and good block shapes lie close together.
#include "daemon/agents/candidate_search.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace kernelwright::agents {

CandidateSearch::CandidateSearch(std::vector<SearchPoint> points, Options options)
    : points_(std::move(points)), options_(options), by_rank_(points_.size()) {
  std::iota(by_rank_.begin(), by_rank_.end(), size_t{0});
  std::stable_sort(by_rank_.begin(), by_rank_.end(),
                   [&](size_t a, size_t b) { return points_[a].ranked_ms < points_[b].ranked_ms; });
  const size_t parameters = points_.empty() ? 0 : points_.front().values.size();
  levels_.resize(parameters);
  for (size_t parameter = 0; parameter < parameters; ++parameter) {
    std::set<int64_t> values;
    for (const SearchPoint& point : points_) values.insert(point.values[parameter]);
    levels_[parameter].assign(values.begin(), values.end());
  }
}

// One step up or down in one parameter, or such a step in two parameters at once.
bool CandidateSearch::AreNeighbours(size_t a, size_t b) const {
  int changed = 0;
  for (size_t parameter = 0; parameter < levels_.size(); ++parameter) {
    const std::vector<int64_t>& levels = levels_[parameter];
    const auto level = [&](size_t point) {
      return std::lower_bound(levels.begin(), levels.end(), points_[point].values[parameter]) - levels.begin();
    };
    const auto distance = std::abs(level(a) - level(b));
    if (distance > 1) return false;
    changed += static_cast<int>(distance);
  }
  return changed >= 1 && changed <= 2;
}

std::optional<size_t> CandidateSearch::Pick() const {
  if (given_.size() >= options_.first && best_) {
    for (size_t point : by_rank_) {
      if (!given_.contains(point) && AreNeighbours(point, *best_)) return point;
    }
  }
  for (size_t point : by_rank_) {
    if (!given_.contains(point)) return point;
  }
  return std::nullopt;
}

std::vector<size_t> CandidateSearch::Next(size_t count) {
  std::vector<size_t> batch;
  while (batch.size() < count && !Ended()) {
    const std::optional<size_t> point = Pick();
    if (!point) break;
    batch.push_back(*point);
    given_.insert(*point);
    ++waiting_;
  }
  return batch;
}

void CandidateSearch::Report(size_t point, std::optional<double> ms) {
  --waiting_;
  ++since_better_;
  if (!ms) return;
  if (!best_ || *ms < best_ms_ * (1 - options_.better_by)) since_better_ = 0;
  // Ties go to the earlier rank, whatever the order in which side-by-side evaluations end.
  if (!best_ || *ms < best_ms_ || (*ms == best_ms_ && point < *best_)) {
    best_ = point;
    best_ms_ = *ms;
  }
}

bool CandidateSearch::Ended() const { return !EndReason().empty(); }

std::string CandidateSearch::EndReason() const {
  if (best_ && best_ms_ <= options_.target_ms) return "roofline";
  if (given_.size() >= points_.size()) return "exhausted";
  if (given_.size() >= options_.budget) return "budget";
  if (given_.size() >= options_.first && since_better_ >= options_.patience) return "plateau";
  return "";
}

size_t CandidateSearch::LikelyLeft() const {
  if (Ended()) return waiting_;
  const size_t wanted = given_.size() < options_.first ? options_.first - given_.size() + options_.patience
                                                       : options_.patience - std::min(options_.patience, since_better_);
  const size_t possible = std::min(points_.size(), options_.budget) - given_.size();
  return waiting_ + std::min(wanted, possible);
}

}  // namespace kernelwright::agents
