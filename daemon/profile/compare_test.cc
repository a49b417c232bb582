#include "daemon/profile/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/profile/profile_test_util.h"

namespace kernelwright::profile {
namespace {

// Lines of one file by their numbers, each with cycles; the text of line n is `text[n - 1]`.
ProfileReport Made(const std::string& file, const std::vector<std::string>& text,
                   const std::vector<std::pair<int, double>>& lines) {
  ProfileReport report;
  report.file = file;
  report.chip = "v5e";
  report.cycles_per_ms = 1000;
  cost::Estimate estimate;
  std::string all;
  for (const std::string& line : text) all += line + "\n";
  report.sources = {{file, all}};
  for (const auto& [number, cycles] : lines) {
    LineProfile line;
    line.file = number > 0 ? file : "";
    line.line = number;
    if (number > 0) line.text = text[static_cast<size_t>(number) - 1];
    line.cycles = cycles;
    estimate.total_cycles += cycles;
    report.lines.push_back(line);
  }
  estimate.milliseconds = estimate.total_cycles / 1000;
  report.cost = estimate;
  return report;
}

TEST(CompareTest, ADumpAgainstItselfIsATie) {
  const ProfileReport report = Report("v5e", "mms");
  const Comparison same = Compare(report, report);
  EXPECT_EQ(same.ratio, 1);
  EXPECT_EQ(same.verdict, "tie");
  for (const LineDifference& line : same.lines) {
    EXPECT_EQ(line.cycles, line.other_cycles);
    EXPECT_EQ(line.line, line.other_line);
  }
  for (const KernelDifference& kernel : same.kernels) {
    EXPECT_EQ(kernel.name, kernel.other_name);
    EXPECT_EQ(kernel.cycles, kernel.other_cycles);
  }
}

TEST(CompareTest, LinesKeepTheirPartnerWhenNumbersMove) {
  const ProfileReport now =
      Made("new.py", {"import x", "", "a = 1", "b = 2", "c = 4"}, {{0, 5}, {3, 10}, {4, 20}, {5, 1}});
  const ProfileReport then = Made("old.py", {"a = 1", "b = 2", "c = 3"}, {{0, 5}, {1, 10}, {2, 60}, {3, 7}});
  const Comparison c = Compare(now, then);
  EXPECT_NEAR(c.ratio, 82.0 / 36, 1e-9);
  EXPECT_EQ(c.verdict, "faster");
  ASSERT_EQ(c.lines.size(), 5);
  EXPECT_EQ(c.lines[0].text, "b = 2") << "largest difference first";
  EXPECT_EQ(c.lines[0].line, 4);
  EXPECT_EQ(c.lines[0].other_line, 2);
  EXPECT_EQ(c.lines[0].other_cycles, 60);
  const auto only_then =
      std::find_if(c.lines.begin(), c.lines.end(), [](const auto& line) { return line.text == "c = 3"; });
  ASSERT_NE(only_then, c.lines.end());
  EXPECT_EQ(only_then->line, 0);
  EXPECT_EQ(only_then->other_line, 3);
  const auto only_now =
      std::find_if(c.lines.begin(), c.lines.end(), [](const auto& line) { return line.text == "c = 4"; });
  ASSERT_NE(only_now, c.lines.end());
  EXPECT_EQ(only_now->other_line, 0);
  double now_cycles = 0;
  double then_cycles = 0;
  for (const LineDifference& line : c.lines) {
    now_cycles += line.cycles;
    then_cycles += line.other_cycles;
  }
  EXPECT_EQ(now_cycles, 36);
  EXPECT_EQ(then_cycles, 82);
}

TEST(CompareTest, TwoChipsAreComparedInTime) {
  const Comparison c = Compare(Report("v5e", "mms"), Report("v6e", "mms"));
  EXPECT_FALSE(c.same_chip);
  EXPECT_GT(c.ratio, 0);
  ASSERT_FALSE(c.kernels.empty());
  const KernelDifference& kernel =
      *std::find_if(c.kernels.begin(), c.kernels.end(), [](const auto& k) { return k.name == "mm.1"; });
  EXPECT_EQ(kernel.other_name, "mm.1");
  EXPECT_NEAR(kernel.milliseconds, kernel.cycles / 1.5e6, 1e-9);
  EXPECT_NEAR(kernel.other_milliseconds, kernel.other_cycles / 1.75e6, 1e-9);
}

TEST(CompareTest, WithoutATimeThereIsNoRatio) {
  const Comparison c = Compare(Report("v5e", "mms"), Report("v5e", "when"));
  EXPECT_EQ(c.ratio, 0);
  EXPECT_TRUE(c.verdict.empty());
  EXPECT_TRUE(c.lines.empty()) << "executed and static counts do not compare";
}

}  // namespace
}  // namespace kernelwright::profile
