// Which candidates of a retune to evaluate next: the ranking's best first, then the neighbours of the best found, then
// on in order of rank until nothing has improved for a while. Pure and deterministic: the same reports give the same
// order, so that a resumed run takes the same path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kernelwright::agents {

// One point of the space: a value per parameter and the ranking's time.
struct SearchPoint {
  std::vector<int64_t> values;
  double ranked_ms = 0;
};

class CandidateSearch {
 public:
  struct Options {
    size_t budget = 39;        // evaluations at most
    size_t first = 12;         // taken by rank before neighbours count
    size_t patience = 10;      // evaluations without a better one, after which the search ends
    double target_ms = 0;      // a time at which it may end at once: nothing can be much better
    double better_by = 0.005;  // an improvement smaller than this share resets no patience
  };

  // `points` in any order; their index names them.
  CandidateSearch(std::vector<SearchPoint> points, Options options);

  // At most `count` points to evaluate now, in order; empty when the search has ended or waits for reports.
  std::vector<size_t> Next(size_t count);

  // The time of a point that Next gave out, or nothing when it failed.
  void Report(size_t point, std::optional<double> ms);

  bool Ended() const;
  // Why it ended: "budget", "plateau", "roofline", "exhausted"; empty before.
  std::string EndReason() const;
  std::optional<size_t> Best() const { return best_; }
  // How many more evaluations are likely; for an estimate of the time left.
  size_t LikelyLeft() const;

 private:
  std::optional<size_t> Pick() const;
  bool AreNeighbours(size_t a, size_t b) const;

  std::vector<SearchPoint> points_;
  Options options_;
  std::vector<size_t> by_rank_;
  std::vector<std::vector<int64_t>> levels_;  // per parameter: its values in order
  std::set<size_t> given_;
  size_t waiting_ = 0;
  size_t since_better_ = 0;
  std::optional<size_t> best_;
  double best_ms_ = 0;
};

}  // namespace kernelwright::agents
