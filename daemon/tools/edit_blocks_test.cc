// Blocks are applied where they can mean one place, and nowhere else.
#include "daemon/tools/edit_blocks.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright::tools {
namespace {

using ::testing::HasSubstr;

constexpr const char* kText =
    "import jax\n"
    "\n"
    "def f(x):\n"
    "    y = x + 1  \n"
    "    return y\n"
    "\n"
    "def g(x):\n"
    "    if x:\n"
    "        y = x + 1\n"
    "    return y\n";

EditOutcome One(const std::string& search, const std::string& replace, int line = 0) {
  return ApplyBlocks(kText, {{search, replace, line}});
}

TEST(EditBlocksTest, ExactLines) {
  const EditOutcome outcome = One("def f(x):\n    y = x + 1  \n", "def f(x):\n    y = x + 2\n");
  ASSERT_TRUE(outcome.all_applied()) << outcome.outcomes[0].why;
  EXPECT_THAT(outcome.text, HasSubstr("def f(x):\n    y = x + 2\n    return y\n"));
  EXPECT_EQ(outcome.outcomes[0].first_line, 3);
  EXPECT_EQ(outcome.outcomes[0].last_line, 4);
}

TEST(EditBlocksTest, BlanksAtLineEndsDoNotMatter) {
  const EditOutcome outcome = One("def f(x):\n    y = x + 1", "def f(x):\n    y = x");
  ASSERT_TRUE(outcome.all_applied()) << outcome.outcomes[0].why;
  EXPECT_EQ(outcome.outcomes[0].how, "blanks");
}

TEST(EditBlocksTest, AShiftedBlockIsShiftedBack) {
  const EditOutcome outcome = One("if x:\n    y = x + 1\n", "if x > 0:\n    y = x + 1\nelse:\n    y = 0\n");
  ASSERT_TRUE(outcome.all_applied()) << outcome.outcomes[0].why;
  EXPECT_EQ(outcome.outcomes[0].how, "indentation");
  EXPECT_THAT(outcome.text, HasSubstr("    if x > 0:\n        y = x + 1\n    else:\n        y = 0\n    return y\n"));
}

TEST(EditBlocksTest, AmbiguousLinesAreNotGuessed) {
  const EditOutcome outcome = One("    return y\n", "    return x\n");
  EXPECT_FALSE(outcome.all_applied());
  EXPECT_EQ(outcome.text, kText) << "a failed edit changes no byte";
  EXPECT_THAT(outcome.outcomes[0].why, HasSubstr("2 times, at lines 5, 10"));
  const EditOutcome told = One("    return y\n", "    return x\n", 10);
  ASSERT_TRUE(told.all_applied());
  EXPECT_THAT(told.text, HasSubstr("        y = x + 1\n    return x\n"));
}

TEST(EditBlocksTest, C35ATextThatMerelyLooksAlikeIsNotReplaced) {
  const EditOutcome outcome = One("def f(x):\n    y = x + 3\n", "pass\n");
  EXPECT_FALSE(outcome.all_applied());
  EXPECT_EQ(outcome.text, kText);
  EXPECT_THAT(outcome.outcomes[0].why, HasSubstr("3| def f(x):"));
}

TEST(EditBlocksTest, C36OneBadBlockDoesNotDiscardTheOthers) {
  const EditOutcome outcome = ApplyBlocks(
      kText, {{"import jax\n", "import jax.numpy as jnp\n"}, {"nowhere\n", ""}, {"def g(x):\n", "def h(x):\n"}});
  EXPECT_TRUE(outcome.outcomes[0].applied);
  EXPECT_FALSE(outcome.outcomes[1].applied);
  EXPECT_TRUE(outcome.outcomes[2].applied);
  EXPECT_THAT(outcome.text, HasSubstr("jnp"));
  EXPECT_THAT(outcome.text, HasSubstr("def h(x)"));
}

TEST(EditBlocksTest, OverlappingBlocksAreRefused) {
  const EditOutcome outcome =
      ApplyBlocks(kText, {{"def f(x):\n    y = x + 1\n", "a = 1\n"}, {"import jax\n\ndef f(x):\n", ""}});
  EXPECT_TRUE(outcome.outcomes[0].applied);
  EXPECT_THAT(outcome.outcomes[1].why, HasSubstr("overlaps block 1"));
}

TEST(EditBlocksTest, LineEndsAndTheMissingLastOneStay) {
  const EditOutcome outcome = ApplyBlocks("a\r\nb\r\nc", {{"a\n", "x\ny\n"}, {"c", "z\n"}});
  ASSERT_TRUE(outcome.all_applied());
  EXPECT_EQ(outcome.text, "x\r\ny\r\nb\r\nz");
}

TEST(EditBlocksTest, LinesCanGo) { EXPECT_EQ(ApplyBlocks("a\nb\nc\n", {{"b\n", ""}}).text, "a\nc\n"); }

TEST(EditBlocksTest, NewFilesHaveOneBlockWithoutSearch) {
  EXPECT_EQ(ApplyBlocks("", {{"", "a = 1"}}).text, "a = 1\n");
  EXPECT_FALSE(ApplyBlocks("a\n", {{"", "b\n"}}).all_applied());
}

TEST(EditBlocksTest, AWholeLongFileIsNotRestated) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "line_" + std::to_string(i) + "\n";
  const EditOutcome outcome = ApplyBlocks(text, {{text, text + "more\n"}});
  EXPECT_FALSE(outcome.all_applied());
  EXPECT_THAT(outcome.outcomes[0].why, HasSubstr("more than half"));
}

// Against a slow reference: for exact, unique blocks the result is what replacing the text gives; else nothing changes.
TEST(EditBlocksTest, RandomBlocksAgreeWithPlainReplacement) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> lines;
    for (int i = 0; i < 12; ++i)
      lines.push_back("v" + std::to_string(random() % 6) + " = " + std::to_string(random() % 3));
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    const size_t first = random() % 12;
    const size_t count = 1 + random() % (12 - first);
    std::string search;
    for (size_t i = first; i < first + count; ++i) search += lines[i] + "\n";
    const std::string replace = "new = " + std::to_string(round) + "\n";
    size_t places = 0;
    std::string expected = text;
    for (size_t at = 0; (at = ("\n" + text).find("\n" + search, at)) != std::string::npos; ++at) {
      if (++places == 1) expected = text.substr(0, at) + replace + text.substr(at + search.size());
    }
    const EditOutcome outcome = ApplyBlocks(text, {{search, replace}});
    ASSERT_EQ(outcome.all_applied(), places == 1) << text << "---\n" << search;
    ASSERT_EQ(outcome.text, places == 1 ? expected : text);
  }
}

}  // namespace
}  // namespace kernelwright::tools
