#include "daemon/kernels/diff.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <vector>

namespace kernelwright::kernels {
namespace {

TEST(Diff, OneLineWithContext) {
  EXPECT_EQ(UnifiedDiff("k.py", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
            "--- a/k.py\n+++ b/k.py\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(Diff, NothingForEqualTexts) { EXPECT_EQ(UnifiedDiff("k.py", "a\n", "a\n"), ""); }

TEST(Diff, MissingNewlineAtTheEnd) {
  EXPECT_EQ(UnifiedDiff("k.py", "a\nb", "a\nc\n"),
            "--- a/k.py\n+++ b/k.py\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n");
  EXPECT_EQ(UnifiedDiff("k.py", "", "a"), "--- a/k.py\n+++ b/k.py\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n");
}

TEST(Diff, NearChangesShareAHunkFarOnesDoNot) {
  std::string old_text;
  for (int i = 0; i < 30; ++i) old_text += std::to_string(i) + "\n";
  std::string new_text = old_text;
  new_text.replace(new_text.find("5\n"), 2, "x\n");
  new_text.replace(new_text.find("11\n"), 3, "y\n");
  new_text.replace(new_text.find("25\n"), 3, "z\n");
  const std::string diff = UnifiedDiff("k.py", old_text, new_text);
  EXPECT_NE(diff.find("@@ -3,13 +3,13 @@"), std::string::npos) << diff;
  EXPECT_NE(diff.find("@@ -23,7 +23,7 @@"), std::string::npos) << diff;
  EXPECT_EQ(CountChanges(old_text, new_text).added, 3);
  EXPECT_EQ(CountChanges(old_text, new_text).removed, 3);
}

TEST(Diff, KeepsCarriageReturns) {
  EXPECT_EQ(UnifiedDiff("k.py", "a\r\n", "b\r\n"), "--- a/k.py\n+++ b/k.py\n@@ -1 +1 @@\n-a\r\n+b\r\n");
}

TEST(Diff, RewrittenFilesBeyondTheLimitAreOneReplacement) {
  std::string old_text;
  std::string new_text;
  for (int i = 0; i < 3000; ++i) {
    old_text += "old " + std::to_string(i) + "\n";
    new_text += "new " + std::to_string(i) + "\n";
  }
  EXPECT_EQ(CountChanges(old_text, new_text).added, 3000);
}

// Smallest number of added and removed lines, by dynamic programming.
int SlowDistance(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) {
      common[i + 1][j + 1] = a[i] == b[j] ? common[i][j] + 1 : std::max(common[i][j + 1], common[i + 1][j]);
    }
  }
  return static_cast<int>(a.size() + b.size()) - 2 * common[a.size()][b.size()];
}

std::string Join(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line;
  return text;
}

class DiffProperty : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "kw_diff_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(DiffProperty, IsShortestAndGitAppliesIt) {
  const bool has_git = std::system("git --version > /dev/null 2>&1") == 0;
  std::mt19937 random(11);
  // Files are applied in one call of git, which is slow to start.
  std::string all;
  std::vector<std::string> expected;
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> a;
    for (int i = 0, size = static_cast<int>(random() % 40); i < size; ++i) {
      a.push_back(std::string(1, static_cast<char>('a' + random() % 6)) + (random() % 9 == 0 ? "\r\n" : "\n"));
    }
    std::vector<std::string> b;
    for (const auto& line : a) {
      const auto choice = random() % 10;
      if (choice == 0) continue;
      b.push_back(choice == 1 ? "changed\n" : line);
      if (choice == 2) b.emplace_back("added\n");
    }
    if (!a.empty() && random() % 4 == 0) a.back().pop_back();
    if (!b.empty() && random() % 4 == 0) b.back().pop_back();
    const auto is_empty = [](std::vector<std::string>& lines) {
      if (!lines.empty() && lines.back().empty()) lines.pop_back();
      return lines.empty();
    };
    // A diff to or from an empty file means creation or deletion to git, which needs another header.
    if (is_empty(a) || is_empty(b) || a == b) continue;
    const DiffStat stat = CountChanges(Join(a), Join(b));
    ASSERT_EQ(stat.added + stat.removed, SlowDistance(a, b));
    const std::string name = "f" + std::to_string(expected.size());
    std::ofstream(folder_ / name, std::ios::binary) << Join(a);
    all += UnifiedDiff(name, Join(a), Join(b), static_cast<int>(random() % 4 == 0 ? 1 : 3));
    expected.push_back(Join(b));
  }
  ASSERT_GT(expected.size(), 100u);
  if (!has_git) GTEST_SKIP() << "git is not installed";
  std::ofstream(folder_ / "all.diff", std::ios::binary) << all;
  const std::string command =
      "cd '" + folder_.string() + "' && git -c core.autocrlf=false apply --unidiff-zero --whitespace=nowarn all.diff";
  ASSERT_EQ(std::system(command.c_str()), 0);
  for (size_t i = 0; i < expected.size(); ++i) {
    std::ifstream file(folder_ / ("f" + std::to_string(i)), std::ios::binary);
    std::stringstream got;
    got << file.rdbuf();
    ASSERT_EQ(got.str(), expected[i]) << i;
  }
}

}  // namespace
}  // namespace kernelwright::kernels
