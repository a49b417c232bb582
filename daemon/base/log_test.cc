#include "daemon/base/log.h"

#include <unistd.h>

#include "daemon/base/files.h"
#include "daemon/base/redact.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(RedactorTest, HidesKeyShapes) {
  const Redactor redactor;
  for (const char* secret :
       {"sk-proj-0123456789abcdefghij", "AIzaSyA1234567890abcdefghijklmnop", "ghp_abcdefghijklmnop1234",
        "github_pat_11ABCDEFG0123456789", "hf_abcdefghijklmnopqrstuvwx", "AKIAABCDEFGHIJKLMNOP"}) {
    const std::string text = redactor.Redact("key is " + std::string(secret) + ", used");
    EXPECT_THAT(text, Not(HasSubstr(secret)));
    EXPECT_EQ(text, "key is [redacted], used");
  }
}

TEST(RedactorTest, HidesNamedValues) {
  const Redactor redactor;
  EXPECT_EQ(redactor.Redact("api_key=hunter2&x=1"), "api_key=[redacted]&x=1");
  EXPECT_EQ(redactor.Redact("OPENAI_API_KEY=hunter2 next"), "OPENAI_API_KEY=[redacted] next");
  EXPECT_EQ(redactor.Redact(R"({"api-key": "hunter2", "n": 3})"), R"({"api-key": "[redacted]", "n": 3})");
  EXPECT_EQ(redactor.Redact(R"({\"apiKey\":\"hunter2\"})"), R"({\"apiKey\":\"[redacted]\"})");
  EXPECT_EQ(redactor.Redact("Authorization: Bearer abc.def==\r\nHost: x"), "Authorization: [redacted]\r\nHost: x");
  EXPECT_EQ(redactor.Redact("x-api-key: hunter2"), "x-api-key: [redacted]");
  EXPECT_EQ(redactor.Redact("sent Bearer abcdefghij to"), "sent Bearer [redacted] to");
  EXPECT_EQ(redactor.Redact("password = 'hunter 2' ok"), "password = '[redacted]' ok");
}

TEST(RedactorTest, LeavesOrdinaryTextAlone) {
  const Redactor redactor;
  for (const char* text : {"task-1234567890abcdef12", "the bearer of news", "sk-learn", "tokens used: 1200",
                           "risk-management-and-control-of-it", "block_spec=(128, 128)", "PRNGKey(0)"}) {
    EXPECT_EQ(redactor.Redact(text), text);
  }
}

TEST(RedactorTest, RegisteredValuesInEveryForm) {
  Redactor redactor;
  redactor.AddSecret("p\"ss w/rd+1");
  EXPECT_EQ(redactor.Redact("a p\"ss w/rd+1 b"), "a [redacted] b");
  EXPECT_EQ(redactor.Redact(R"("p\"ss w/rd+1")"), R"("[redacted]")");
  EXPECT_EQ(redactor.Redact("q=p%22ss%20w%2Frd%2B1"), "q=[redacted]");
  EXPECT_EQ(redactor.Redact("cCJzcyB3L3JkKzE="), "[redacted]");
  redactor.RemoveSecret("p\"ss w/rd+1");
  EXPECT_EQ(redactor.Redact("a p\"ss w/rd+1 b"), "a p\"ss w/rd+1 b");
}

TEST(RedactorTest, LongestFirst) {
  Redactor redactor;
  redactor.AddSecret("abcdef");
  redactor.AddSecret("abcdefghij");
  EXPECT_EQ(redactor.Redact("abcdefghij abcdef"), "[redacted] [redacted]");
}

class LogTest : public ::testing::Test {
 protected:
  TempFolder folder_ = *TempFolder::Make();
  std::filesystem::path file_ = folder_.path() / "log";

  void Start(LogLevel level) {
    LogOptions options;
    options.level = level;
    options.to_stderr = false;
    options.file = file_;
    ASSERT_TRUE(InitLogging(options));
  }
  std::string Written() {
    FlushLog();
    return *ReadFile(file_);
  }
  void TearDown() override { ASSERT_TRUE(InitLogging({})); }
};

// Invariant NoKeysOnDisk, the part of the log: no registered secret reaches it, whatever way it is put together.
TEST_F(LogTest, NoKeysOnDisk) {
  const std::string secret = "value-that-has-no-known-shape";
  ProcessRedactor().AddSecret(secret);
  Start(LogLevel::kDebug);
  LogInfo("whole {}", secret);
  LogInfo("split {}{}", secret.substr(0, 9), secret.substr(9));
  LogError("{0}{1}{2}", "value-that-", "has-no-", "known-shape tail");
  LogDebug("key {}", "sk-abcdefghijklmnop0123");
  const std::string text = Written();
  EXPECT_THAT(text, Not(HasSubstr(secret)));
  EXPECT_THAT(text, Not(HasSubstr("has-no-")));
  EXPECT_THAT(text, Not(HasSubstr("sk-abc")));
  EXPECT_THAT(text, HasSubstr("[redacted] tail"));
  ProcessRedactor().RemoveSecret(secret);
}

TEST_F(LogTest, LevelsFilter) {
  Start(LogLevel::kWarning);
  LogInfo("quiet");
  LogWarning("loud {}", 1);
  SetLogLevel(LogLevel::kInfo);
  LogInfo("now heard");
  const std::string text = Written();
  EXPECT_THAT(text, Not(HasSubstr("quiet")));
  EXPECT_THAT(text, HasSubstr("loud 1"));
  EXPECT_THAT(text, HasSubstr("now heard"));
  EXPECT_FALSE(ParseLogLevel("chatty").has_value());
  EXPECT_EQ(*ParseLogLevel("error"), LogLevel::kError);
}

TEST_F(LogTest, NeverOnStandardOutput) {
  LogOptions options;
  options.level = LogLevel::kInfo;
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(InitLogging(options));
  LogInfo("hello");
  FlushLog();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("hello"));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST_F(LogTest, UnwritableFileIsAnError) {
  LogOptions options;
  options.file = folder_.path() / "missing" / "log";
  EXPECT_EQ(InitLogging(options).kind(), ErrorKind::kNotFound);
}

TEST_F(LogTest, RotatesAtTheLimit) {
  LogOptions options;
  options.to_stderr = false;
  options.file = file_;
  options.max_file_bytes = 2000;
  options.max_files = 2;
  ASSERT_TRUE(InitLogging(options));
  for (int i = 0; i < 200; ++i) LogInfo("line {}", i);
  FlushLog();
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    ++files;
    EXPECT_LE(entry.file_size(), 2000U);
  }
  EXPECT_EQ(files, 3U);
}

}  // namespace
}  // namespace kernelwright
