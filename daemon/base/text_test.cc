#include "daemon/base/text.h"

#include <random>

#include "daemon/base/clock.h"
#include "daemon/base/units.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

TEST(TextTest, SplitJoinTrim) {
  EXPECT_THAT(Split("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_THAT(Split("", ','), ElementsAre(""));
  EXPECT_THAT(SplitLines("a\r\nb\n\nc"), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(SplitLines("a\n"), ElementsAre("a"));
  EXPECT_TRUE(SplitLines("").empty());
  EXPECT_EQ(Trim(" \t a b\n"), "a b");
  EXPECT_EQ(Trim("  "), "");
  EXPECT_EQ(Join({"a", "b"}, ", "), "a, b");
  EXPECT_EQ(ReplaceAll("aaa", "a", "aa"), "aaaaaa");
  EXPECT_EQ(ReplaceAll("aaa", "", "x"), "aaa");
}

// The textbook recursion, slow and obviously right.
size_t SlowDistance(std::string_view a, std::string_view b) {
  if (a.empty()) return b.size();
  if (b.empty()) return a.size();
  if (a[0] == b[0]) return SlowDistance(a.substr(1), b.substr(1));
  return 1 +
         std::min({SlowDistance(a.substr(1), b), SlowDistance(a, b.substr(1)), SlowDistance(a.substr(1), b.substr(1))});
}

TEST(TextTest, EditDistanceEqualsTheSlowReference) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string a;
    std::string b;
    for (unsigned i = random() % 6; i > 0; --i) a += static_cast<char>('a' + random() % 3);
    for (unsigned i = random() % 6; i > 0; --i) b += static_cast<char>('a' + random() % 3);
    EXPECT_EQ(EditDistance(a, b), SlowDistance(a, b)) << a << " " << b;
  }
}

TEST(TextTest, ClosestMatchOnlyWhenClose) {
  const std::vector<std::string> names = {"matmul", "softmax", "rms_norm"};
  EXPECT_EQ(ClosestMatch("matmull", names), "matmul");
  EXPECT_EQ(ClosestMatch("SoftMax", names), "softmax");
  EXPECT_EQ(ClosestMatch("attention", names), std::nullopt);
}

TEST(TextTest, SanitizeMakesValidUtf8) {
  EXPECT_EQ(SanitizeUtf8("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(SanitizeUtf8("a\xFF"
                         "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(SanitizeUtf8("\x1B[31mred\tx\n"), "[31mred\tx\n");
  EXPECT_EQ(SanitizeUtf8("\xC2\x9B"
                         "x"),
            "x");
  EXPECT_EQ(SanitizeUtf8("cut \xE2\x82"), "cut \xEF\xBF\xBD\xEF\xBF\xBD");
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = 0; i < 12; ++i) bytes += static_cast<char>(random() % 4 == 0 ? random() % 128 : 0x80 + random() % 128);
    EXPECT_TRUE(IsValidUtf8(SanitizeUtf8(bytes)));
  }
  for (const char* bad : {"\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80", "\xE0\x80\x80"}) {
    EXPECT_FALSE(IsValidUtf8(bad));
  }
}

TEST(TextTest, TruncateCutsAtACharacter) {
  EXPECT_EQ(Truncate("abc", 3), "abc");
  EXPECT_EQ(Truncate("abcdef", 5), "ab\xE2\x80\xA6");
  EXPECT_EQ(Truncate("\xC3\xBC\xC3\xBC\xC3\xBC", 4), "\xE2\x80\xA6");
}

TEST(UnitsTest, DurationText) {
  EXPECT_EQ(FormatDuration(milliseconds(0)), "0 ms");
  EXPECT_EQ(FormatDuration(milliseconds(340)), "340 ms");
  EXPECT_EQ(FormatDuration(milliseconds(1200)), "1.2 s");
  EXPECT_EQ(FormatDuration(milliseconds(59960)), "1 min");
  EXPECT_EQ(FormatDuration(milliseconds(185000)), "3 min 5 s");
  EXPECT_EQ(FormatDuration(milliseconds(7800000)), "2 h 10 min");
}

TEST(UnitsTest, ParseDuration) {
  EXPECT_EQ(*ParseDuration("90s"), milliseconds(90000));
  EXPECT_EQ(*ParseDuration("10m"), milliseconds(600000));
  EXPECT_EQ(*ParseDuration("1h30m"), milliseconds(5400000));
  EXPECT_EQ(*ParseDuration("1h 30min"), milliseconds(5400000));
  EXPECT_EQ(*ParseDuration("1.5h"), milliseconds(5400000));
  EXPECT_EQ(*ParseDuration("250ms"), milliseconds(250));
  EXPECT_EQ(*ParseDuration(" 5 "), milliseconds(5000));
  for (const char* bad :
       {"", "m", "-5s", "5x", "30m1h", "5 6", "1h30", "1e9s", "nan", "inf", "5s5s", "999999999999d", "1..5s"}) {
    EXPECT_EQ(ParseDuration(bad).error().kind(), ErrorKind::kUsage) << bad;
  }
}

TEST(UnitsTest, Bytes) {
  EXPECT_EQ(FormatBytes(512), "512 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(16 << 20), "16 MiB");
  EXPECT_EQ(FormatBytes((1 << 20) - 1), "1 MiB");
  EXPECT_EQ(*ParseBytes("512"), 512U);
  EXPECT_EQ(*ParseBytes("64k"), 65536U);
  EXPECT_EQ(*ParseBytes("16MiB"), 16777216U);
  EXPECT_EQ(*ParseBytes("1.5 GB"), 1500000000U);
  for (const char* bad : {"", "x", "-1", "5q", "5kk", "99999999999999T"}) {
    EXPECT_EQ(ParseBytes(bad).error().kind(), ErrorKind::kUsage) << bad;
  }
}

TEST(ClockTest, UtcTextAndFakeClock) {
  EXPECT_EQ(FormatTimeUtc(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatTimeUtc(1700000000123), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(FormatTimeUtc(-1), "1969-12-31T23:59:59.999Z");
  FakeClock clock(1000);
  const auto before = clock.Monotonic();
  clock.Advance(milliseconds(5));
  EXPECT_EQ(clock.NowMs(), 1005);
  EXPECT_EQ(clock.Monotonic() - before, milliseconds(5));
  EXPECT_GT(SystemClock().NowMs(), 1700000000000);
}

}  // namespace
}  // namespace kernelwright
