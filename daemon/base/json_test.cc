#include "daemon/base/json.h"

#include "daemon/base/deadline.h"
#include "daemon/base/gzip.h"
#include "daemon/base/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(JsonTest, ErrorsNameThePlace) {
  const Status status = ParseJson("{\"a\": }", "request").error();
  EXPECT_EQ(status.where(), "request");
  EXPECT_THAT(status.message(), HasSubstr("line 1, column 7"));
  EXPECT_FALSE(ParseJson("").has_value());
  EXPECT_FALSE(ParseJson("{} x").has_value());
}

TEST(JsonTest, DeepNestingIsRefused) {
  EXPECT_FALSE(ParseJson(std::string(100000, '[')).has_value());
  EXPECT_TRUE(ParseJson("\"" + std::string(1000, '[') + "\"").has_value());
  EXPECT_TRUE(ParseJson(std::string(200, '[') + std::string(200, ']')).has_value());
}

TEST(JsonTest, TypedReadsNameThePath) {
  const Json value = *ParseJson(R"({"s":"x","n":3,"f":2.5,"b":true,"list":["a","b"],"deep":[{"k":1}],"none":null})");
  const JsonReader reader(value);
  EXPECT_EQ(*reader.String("s"), "x");
  EXPECT_EQ(*reader.Int("n"), 3);
  EXPECT_EQ(*reader.Double("n"), 3.0);
  EXPECT_EQ(*reader.Bool("b"), true);
  EXPECT_THAT(*reader.Strings("list"), ElementsAre("a", "b"));
  EXPECT_EQ(*reader.IntOr("none", 7), 7);
  EXPECT_EQ(*reader.StringOr("missing", "d"), "d");
  EXPECT_EQ(reader.Int("f").error().message(), "$.f must be an integer, not number");
  EXPECT_EQ(reader.String("missing").error().message(), "$.missing is missing");
  EXPECT_EQ(reader.IntOr("s", 1).error().message(), "$.s must be an integer, not string");
  EXPECT_EQ(reader.At("deep")->At(0)->String("k").error().message(), "$.deep[0].k must be a string, not number");
  EXPECT_EQ(reader.At("deep")->At(1).error().message(), "$.deep[1] is missing");
  EXPECT_EQ(JsonReader(Json(18446744073709551615U)).AsInt().error().kind(), ErrorKind::kUsage);
}

TEST(JsonTest, DumpNeverThrows) { EXPECT_EQ(DumpJson(Json("a\xFF")), "\"a\xEF\xBF\xBD\""); }

TEST(GzipTest, RoundTrip) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{1000}, size_t{3} << 20}) {
    const std::string bytes = *RandomBytes(size) + std::string(size, 'x');
    EXPECT_EQ(*GzipDecompress(*GzipCompress(bytes)), bytes);
  }
}

TEST(GzipTest, DamageIsAnError) {
  const std::string packed = *GzipCompress("hello hello hello hello");
  EXPECT_FALSE(GzipDecompress("").has_value());
  EXPECT_FALSE(GzipDecompress("not gzip").has_value());
  EXPECT_FALSE(GzipDecompress(packed + "x").has_value());
  for (size_t length = 0; length < packed.size(); ++length) {
    EXPECT_FALSE(GzipDecompress(packed.substr(0, length)).has_value()) << length;
  }
}

TEST(GzipTest, BombIsStopped) {
  const std::string packed = *GzipCompress(std::string(10 << 20, '\0'));
  EXPECT_EQ(GzipDecompress(packed, 1 << 20).error().kind(), ErrorKind::kLimit);
}

TEST(DeadlineTest, ChecksStopAndTime) {
  std::stop_source stop;
  EXPECT_TRUE(CheckRunning(stop.get_token(), Deadline::Never(), "work").ok());
  EXPECT_EQ(CheckRunning({}, Deadline::After(std::chrono::milliseconds(0)), "work").kind(), ErrorKind::kLimit);
  stop.request_stop();
  EXPECT_EQ(CheckRunning(stop.get_token(), Deadline(), "work").kind(), ErrorKind::kCancelled);
  EXPECT_TRUE(Deadline::After(std::chrono::milliseconds::max()).never());
  EXPECT_EQ(Deadline().PollTimeout(), -1);
}

}  // namespace
}  // namespace kernelwright
