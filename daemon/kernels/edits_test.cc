#include "daemon/kernels/edits.h"

#include <gtest/gtest.h>

#include <random>

#include "daemon/base/hash.h"

namespace kernelwright::kernels {
namespace {

TextEdit Edit(const std::string& text, uint32_t begin, uint32_t end, std::string replacement,
              std::string file = "k.py") {
  return {std::move(file), {begin, end}, std::move(replacement), Sha256Hex(text)};
}

TEST(Edits, KeepsEverythingElseByteForByte) {
  const std::string text = "# -*- coding: latin-1 -*-\r\n\tBM = 128  # caf\xe9\r\nBN = 256";
  const auto bm = static_cast<uint32_t>(text.find("128"));
  const auto bn = static_cast<uint32_t>(text.find("256"));
  const auto result = ApplyEdits("k.py", text, {Edit(text, bn, bn + 3, "1024"), Edit(text, bm, bm + 3, "8")});
  ASSERT_TRUE(result.has_value()) << result.error().ToString();
  EXPECT_EQ(*result, "# -*- coding: latin-1 -*-\r\n\tBM = 8  # caf\xe9\r\nBN = 1024");
}

TEST(Edits, RefusesAnotherTextOverlapsAndRangesOutside) {
  const std::string text = "abcdef";
  EXPECT_EQ(ApplyEdits("k.py", "abcdeg", {Edit(text, 0, 1, "x")}).error().kind(), ErrorKind::kConflict);
  EXPECT_EQ(ApplyEdits("k.py", text, {Edit(text, 0, 3, "x"), Edit(text, 2, 4, "y")}).error().kind(),
            ErrorKind::kConflict);
  EXPECT_EQ(ApplyEdits("k.py", text, {Edit(text, 0, 7, "x")}).error().kind(), ErrorKind::kInternal);
}

TEST(Edits, InsertionsAtOnePlaceKeepTheirOrder) {
  const std::string text = "ab";
  EXPECT_EQ(ApplyEdits("k.py", text, {Edit(text, 1, 1, "1"), Edit(text, 1, 1, "2"), Edit(text, 1, 2, "B")}).value(),
            "a12B");
  EXPECT_EQ(ApplyEdits("k.py", text, {Edit("other", 1, 1, "1", "other.py")}).value(), "ab");
}

TEST(Edits, SeveralFiles) {
  const std::map<std::string, std::string> texts = {{"a.py", "1"}, {"b.py", "2"}, {"c.py", "3"}};
  const auto result = ApplyEdits(texts, {Edit("1", 0, 1, "x", "a.py"), Edit("2", 1, 1, "y", "b.py")});
  EXPECT_EQ(result.value(), (std::map<std::string, std::string>{{"a.py", "x"}, {"b.py", "2y"}}));
  EXPECT_EQ(ApplyEdits(texts, {Edit("4", 0, 1, "x", "d.py")}).error().kind(), ErrorKind::kNotFound);
}

// Against applying one edit at a time from the back.
TEST(Edits, AgreesWithOneAtATime) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int i = 0, size = static_cast<int>(random() % 60); i < size; ++i)
      text += static_cast<char>('a' + random() % 26);
    std::vector<TextEdit> edits;
    std::string expected = text;
    for (uint32_t end = static_cast<uint32_t>(text.size());;) {
      const uint32_t to = end - random() % (std::min(end, 9u) + 1);
      const uint32_t from = to - random() % (std::min(to, 5u) + 1);
      const std::string replacement(random() % 4, 'X');
      edits.push_back(Edit(text, from, to, replacement));
      expected.replace(from, to - from, replacement);
      if (from == 0) break;
      end = from - 1;
    }
    std::shuffle(edits.begin(), edits.end(), random);
    const auto result = ApplyEdits("k.py", text, edits);
    ASSERT_TRUE(result.has_value()) << result.error().ToString();
    ASSERT_EQ(*result, expected);
  }
}

}  // namespace
}  // namespace kernelwright::kernels
