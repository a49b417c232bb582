// Frames over real pipes: split anywhere, large, broken, interrupted.
#include "daemon/worker/framing.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace kernelwright::worker {
namespace {

using std::chrono::milliseconds;

void WriteRaw(int fd, std::string_view bytes) {
  ASSERT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
}

TEST(Framing, MessagesOfAllSizesArriveWhole) {
  Pipe pipe = *MakePipe();
  ASSERT_TRUE(SetNonBlocking(pipe.write.get()).ok());
  std::mt19937 random(1);
  std::vector<std::string> messages;
  for (size_t size : {0, 1, 127, 128, 16383, 16384, 70000, 3 << 20}) {
    std::string message(size, '\0');
    for (char& c : message) c = static_cast<char>(random());
    messages.push_back(std::move(message));
  }
  std::jthread writer([&] {
    for (const std::string& message : messages) EXPECT_TRUE(WriteFrame(pipe.write.get(), message, {}).ok());
    pipe.write.reset();
  });
  FrameReader reader(pipe.read.get());
  for (const std::string& message : messages) {
    auto got = reader.Next({});
    ASSERT_TRUE(got.has_value());
    ASSERT_TRUE(got->has_value());
    EXPECT_TRUE(**got == message) << message.size();
  }
  auto end = reader.Next({});
  ASSERT_TRUE(end.has_value());
  EXPECT_FALSE(end->has_value());
}

TEST(Framing, AFrameSplitAtEveryByteIsPutTogether) {
  const std::string frame = std::string("\x82\x01") + std::string(130, 'x') + std::string("\x01y");
  for (size_t cut = 0; cut <= frame.size(); ++cut) {
    Pipe pipe = *MakePipe();
    FrameReader reader(pipe.read.get());
    WriteRaw(pipe.write.get(), std::string_view(frame).substr(0, cut));
    // What is there is taken in before the rest is written.
    std::vector<std::string> got;
    while (true) {
      auto message = reader.Next({}, Deadline::After(milliseconds(0)));
      if (!message.has_value()) break;
      got.push_back(**message);
    }
    WriteRaw(pipe.write.get(), std::string_view(frame).substr(cut));
    pipe.write.reset();
    while (true) {
      auto message = reader.Next({});
      ASSERT_TRUE(message.has_value()) << message.error().ToString();
      if (!message->has_value()) break;
      got.push_back(**message);
    }
    EXPECT_EQ(got, (std::vector<std::string>{std::string(130, 'x'), "y"})) << cut;
  }
}

TEST(Framing, EndInsideAMessageIsAnError) {
  Pipe pipe = *MakePipe();
  WriteRaw(pipe.write.get(),
           "\x05"
           "abc");
  pipe.write.reset();
  auto got = FrameReader(pipe.read.get()).Next({});
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().kind(), ErrorKind::kInternal);
  EXPECT_NE(got.error().message().find("inside a message"), std::string::npos);
}

TEST(Framing, LengthAboveTheLimitIsRefusedWithoutReservingIt) {
  Pipe pipe = *MakePipe();
  WriteRaw(pipe.write.get(), "\xff\xff\xff\xff\x7f");
  auto got = FrameReader(pipe.read.get()).Next({});
  ASSERT_FALSE(got.has_value());
  EXPECT_NE(got.error().message().find("limit"), std::string::npos);
  EXPECT_FALSE(WriteFrame(pipe.write.get(), "12345", {}, Deadline::Never(), 4).ok());
}

TEST(Framing, AnEndlessVarintIsRefused) {
  Pipe pipe = *MakePipe();
  WriteRaw(pipe.write.get(), std::string(10, '\xff'));
  EXPECT_FALSE(FrameReader(pipe.read.get()).Next({}).has_value());
}

TEST(Framing, StopWakesABlockedReader) {
  Pipe pipe = *MakePipe();
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  auto got = FrameReader(pipe.read.get()).Next(stop.get_token());
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().kind(), ErrorKind::kCancelled);
}

TEST(Framing, DeadlineAndStopEndABlockedWriter) {
  Pipe pipe = *MakePipe();
  ASSERT_TRUE(SetNonBlocking(pipe.write.get()).ok());
  const std::string large(4 << 20, 'x');
  EXPECT_EQ(WriteFrame(pipe.write.get(), large, {}, Deadline::After(milliseconds(1))).kind(), ErrorKind::kLimit);
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(WriteFrame(pipe.write.get(), large, stop.get_token()).kind(), ErrorKind::kCancelled);
}

TEST(Framing, WritingToAReaderThatIsGoneIsAnErrorAndNoSignal) {
  Pipe pipe = *MakePipe();
  pipe.read.reset();
  const Status status = WriteFrame(pipe.write.get(), "hello", {});
  EXPECT_EQ(status.kind(), ErrorKind::kInternal);
  EXPECT_NE(status.message().find("cannot send"), std::string::npos);
}

}  // namespace
}  // namespace kernelwright::worker
