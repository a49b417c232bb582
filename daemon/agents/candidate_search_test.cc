#include "daemon/agents/candidate_search.h"

#include <cmath>
#include <functional>
#include <random>

#include "gtest/gtest.h"

namespace kernelwright::agents {
namespace {

std::vector<SearchPoint> Grid(const std::function<double(int64_t, int64_t)>& rank) {
  std::vector<SearchPoint> points;
  for (int64_t a : {128, 256, 512, 1024, 2048}) {
    for (int64_t b : {128, 256, 512, 1024, 2048}) points.push_back({{a, b}, rank(a, b)});
  }
  return points;
}

// Evaluates with `truth` until the search ends; returns the number of evaluations.
size_t EvaluateAll(CandidateSearch& search, const std::vector<SearchPoint>& points,
                   const std::function<std::optional<double>(const SearchPoint&)>& truth) {
  size_t evaluations = 0;
  while (true) {
    const std::vector<size_t> batch = search.Next(2);
    if (batch.empty()) return evaluations;
    for (size_t point : batch) {
      search.Report(point, truth(points[point]));
      ++evaluations;
    }
  }
}

double Distance(int64_t a, int64_t b, double best_a, double best_b) {
  return 1 + std::abs(std::log2(static_cast<double>(a)) - best_a) +
         std::abs(std::log2(static_cast<double>(b)) - best_b);
}

TEST(CandidateSearchTest, TakesTheBestRankedFirst) {
  CandidateSearch search(Grid([](int64_t a, int64_t b) { return 1e6 / static_cast<double>(a * b); }), {});
  const std::vector<size_t> batch = search.Next(1);
  ASSERT_EQ(batch.size(), 1u);
  EXPECT_EQ(batch[0], 24u);  // 2048 × 2048
}

TEST(CandidateSearchTest, FindsTheBestNearAWrongRanking) {
  // The ranking prefers large blocks, the truth is best at 512 × 256.
  const auto points = Grid([](int64_t a, int64_t b) { return 1e6 / static_cast<double>(a * b); });
  CandidateSearch search(points, {.budget = 20, .first = 6, .patience = 6});
  const size_t evaluations = EvaluateAll(search, points, [](const SearchPoint& point) {
    return std::optional<double>(Distance(point.values[0], point.values[1], 9, 8));
  });
  ASSERT_TRUE(search.Best());
  EXPECT_EQ(points[*search.Best()].values, (std::vector<int64_t>{512, 256}));
  EXPECT_LE(evaluations, 20u);
}

TEST(CandidateSearchTest, EndsAtTheRoofline) {
  const auto points = Grid([](int64_t a, int64_t b) { return Distance(a, b, 9, 9); });
  CandidateSearch search(points, {.target_ms = 1.0});
  const size_t evaluations = EvaluateAll(search, points, [](const SearchPoint& point) {
    return std::optional<double>(Distance(point.values[0], point.values[1], 9, 9));
  });
  EXPECT_LE(evaluations, 2u);
  EXPECT_EQ(search.EndReason(), "roofline");
}

TEST(CandidateSearchTest, FailuresCountAgainstThePatience) {
  const auto points = Grid([](int64_t a, int64_t b) { return static_cast<double>(a * b); });
  CandidateSearch search(points, {.budget = 25, .first = 2, .patience = 4});
  const size_t evaluations = EvaluateAll(search, points, [](const SearchPoint&) { return std::optional<double>(); });
  EXPECT_EQ(evaluations, 4u);
  EXPECT_FALSE(search.Best());
}

TEST(CandidateSearchTest, NothingToDo) {
  CandidateSearch search({}, {});
  EXPECT_TRUE(search.Next(4).empty());
  EXPECT_EQ(search.EndReason(), "exhausted");
}

// Property: no point is given out twice, the budget holds, and Best is the least time reported.
TEST(CandidateSearchTest, RandomReports) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    auto points = Grid([&](int64_t, int64_t) { return std::uniform_real_distribution<>(1, 2)(random); });
    const size_t budget = 1 + random() % 30;
    CandidateSearch search(points, {.budget = budget, .first = random() % 10, .patience = 1 + random() % 9});
    std::set<size_t> seen;
    std::optional<double> least;
    EvaluateAll(search, points, [&](const SearchPoint& point) -> std::optional<double> {
      EXPECT_TRUE(seen.insert(static_cast<size_t>(&point - points.data())).second);
      if (random() % 4 == 0) return std::nullopt;
      const double ms = std::uniform_real_distribution<>(1, 2)(random);
      if (!least || ms < *least) least = ms;
      return ms;
    });
    EXPECT_LE(seen.size(), budget);
    EXPECT_EQ(search.Best().has_value(), least.has_value());
    EXPECT_EQ(search.LikelyLeft(), 0u);
  }
}

}  // namespace
}  // namespace kernelwright::agents
