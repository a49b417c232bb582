#include "daemon/base/status.h"

#include "gtest/gtest.h"

namespace kernelwright {
namespace {

TEST(StatusTest, DefaultIsOk) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().ToString(), "ok");
}

TEST(StatusTest, TextHasWhereMessageAndRemedy) {
  Status status(ErrorKind::kNotFound, "no function `f`", "k.py", "Functions here: g.");
  EXPECT_EQ(status.ToString(), "k.py: no function `f`. Functions here: g.");
}

TEST(StatusTest, ExitCodesFollowTheContract) {
  EXPECT_EQ(ExitCode(ErrorKind::kUserCode), 1);
  EXPECT_EQ(ExitCode(ErrorKind::kUsage), 2);
  EXPECT_EQ(ExitCode(ErrorKind::kNotFound), 2);
  EXPECT_EQ(ExitCode(ErrorKind::kEnvironment), 3);
  EXPECT_EQ(ExitCode(ErrorKind::kCancelled), 4);
  EXPECT_EQ(ExitCode(ErrorKind::kLimit), 4);
  EXPECT_EQ(ExitCode(ErrorKind::kInternal), 5);
}

TEST(StatusTest, ExpectedCarriesTheError) {
  Expected<int> result = Fail(ErrorKind::kLimit, "too slow");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind(), ErrorKind::kLimit);
}

}  // namespace
}  // namespace kernelwright
