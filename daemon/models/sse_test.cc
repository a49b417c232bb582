// Events of a stream, however the network cut it.
#include "daemon/models/sse.h"

#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright::models {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<SseEvent> ParseAll(std::string_view text) {
  SseParser parser;
  std::vector<SseEvent> events = parser.Feed(text);
  for (SseEvent& event : parser.Finish()) events.push_back(std::move(event));
  return events;
}

TEST(SseTest, EventsEndWithAnEmptyLine) {
  EXPECT_THAT(ParseAll("data: a\n\ndata: b\n\n"), ElementsAre(SseEvent{"", "a"}, SseEvent{"", "b"}));
}

TEST(SseTest, TypeAndSeveralLinesOfData) {
  EXPECT_THAT(ParseAll("event: delta\ndata: {\ndata: }\n\n"), ElementsAre(SseEvent{"delta", "{\n}"}));
}

TEST(SseTest, OnlyOneBlankAfterTheColonIsDropped) {
  EXPECT_THAT(ParseAll("data:x\n\ndata:  y\n\n"), ElementsAre(SseEvent{"", "x"}, SseEvent{"", " y"}));
}

TEST(SseTest, CommentsAndUnknownFieldsAreNoEvents) {
  EXPECT_THAT(ParseAll(": ping\n\nid: 3\nretry: 10\nfoo: bar\n\n"), IsEmpty());
  SseParser parser;
  (void)parser.Feed(": ping\n");
  EXPECT_TRUE(parser.saw_field());
}

TEST(SseTest, TextThatIsNoStreamHasNoField) {
  SseParser parser;
  (void)parser.Feed("{\"error\": {\"message\": \"no\"}}\n");
  EXPECT_THAT(parser.Finish(), IsEmpty());
  EXPECT_FALSE(parser.saw_field());
}

TEST(SseTest, EveryLineEnd) {
  EXPECT_THAT(ParseAll("data: a\r\n\r\ndata: b\r\rdata: c\n\n"),
              ElementsAre(SseEvent{"", "a"}, SseEvent{"", "b"}, SseEvent{"", "c"}));
}

TEST(SseTest, ByteOrderMarkIsSkipped) {
  EXPECT_THAT(ParseAll("\xEF\xBB\xBF"
                       "data: a\n\n"),
              ElementsAre(SseEvent{"", "a"}));
}

TEST(SseTest, LastEventWithoutItsEmptyLineIsGiven) {
  EXPECT_THAT(ParseAll("data: a\n\ndata: b\n"), ElementsAre(SseEvent{"", "a"}, SseEvent{"", "b"}));
  EXPECT_THAT(ParseAll("data: a"), ElementsAre(SseEvent{"", "a"}));
}

TEST(SseTest, TooLargeAnEventStopsTheParser) {
  SseParser parser(100);
  EXPECT_THAT(parser.Feed("data: " + std::string(200, 'x') + "\n\n"), IsEmpty());
  EXPECT_TRUE(parser.too_large());
  EXPECT_THAT(parser.Feed("data: a\n\n"), IsEmpty());
}

TEST(SseTest, CutAnywhereTheEventsAreTheSame) {
  const std::string text =
      "event: a\r\ndata: one\r\ndata: two\r\n\r\n: note\n\ndata: \xE2\x82\xAC\n\nevent: b\rdata: x\r\rdata:last\n\n";
  const std::vector<SseEvent> whole = ParseAll(text);
  ASSERT_EQ(whole.size(), 4);
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    SseParser parser;
    std::vector<SseEvent> events;
    size_t at = 0;
    while (at < text.size()) {
      const size_t length = 1 + random() % 9;
      for (SseEvent& event : parser.Feed(std::string_view(text).substr(at, length))) events.push_back(std::move(event));
      at += length;
    }
    for (SseEvent& event : parser.Finish()) events.push_back(std::move(event));
    ASSERT_EQ(events, whole);
  }
}

}  // namespace
}  // namespace kernelwright::models
