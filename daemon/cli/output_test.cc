#include "daemon/cli/output.h"

#include "gtest/gtest.h"

namespace kernelwright::cli {
namespace {

TEST(Output, WidthsCountCharactersNotBytes) {
  EXPECT_EQ(DisplayWidth("43 µs"), 5U);
  EXPECT_EQ(FitWidth("abcdef", 4), "abc…");
  EXPECT_EQ(FitWidth("µµµµ", 4), "µµµµ");
  EXPECT_EQ(FitWidth("µµµµµ", 4), "µµµ…");
  EXPECT_EQ(FitWidth("abc", 0), "");
  EXPECT_EQ(PadWidth("µ", 3), "µ  ");
  EXPECT_EQ(PadWidth("abcd", 3), "abcd");
}

TEST(Output, ColoursOnlyWhenAsked) {
  Style style;
  EXPECT_EQ(Paint(style, "31", "x"), "x");
  style.color = true;
  EXPECT_EQ(Paint(style, "31", "x"), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(Paint(style, "31", ""), "");
}

TEST(Output, ErrorObjectHasTheDocumentedFields) {
  const nlohmann::json object = ErrorObject(Status(ErrorKind::kEnvironment, "no jax", "python", "Install it."));
  EXPECT_EQ(object.dump(),
            R"({"error":{"kind":"environment","message":"no jax","remedy":"Install it.","where":"python"},)"
            R"("exit_code":3,"schema_version":1})");
}

}  // namespace
}  // namespace kernelwright::cli
