#include "daemon/kernels/literals.h"

#include <gtest/gtest.h>

namespace kernelwright::kernels {
namespace {

TEST(Literals, Evaluates) {
  EXPECT_EQ(EvaluateInteger("128"), 128);
  EXPECT_EQ(EvaluateInteger("0x80"), 128);
  EXPECT_EQ(EvaluateInteger("1_024"), 1024);
  EXPECT_EQ(EvaluateInteger("(4 * 128)"), 512);
  EXPECT_EQ(EvaluateInteger("2 ** 9 // 3"), 170);
  EXPECT_EQ(EvaluateInteger("48 << 20"), 48 << 20);
  EXPECT_EQ(EvaluateInteger("n * 2"), std::nullopt);
  EXPECT_EQ(EvaluateInteger("3.0"), std::nullopt);
  EXPECT_EQ(EvaluateInteger("1 - 2"), std::nullopt);
  EXPECT_EQ(EvaluateInteger("4 // 0"), std::nullopt);
  EXPECT_EQ(EvaluateInteger("10 ** 40"), std::nullopt);
  EXPECT_EQ(EvaluateInteger("99999999999999999999"), std::nullopt);
  EXPECT_EQ(EvaluateInteger("128j"), std::nullopt);
  EXPECT_EQ(EvaluateInteger(""), std::nullopt);
}

TEST(Literals, KeepsTheForm) {
  EXPECT_EQ(FormatInteger("128", 512), "512");
  EXPECT_EQ(FormatInteger("4 * 128", 1024), "8 * 128");
  EXPECT_EQ(FormatInteger("128*4", 256), "128*2");
  EXPECT_EQ(FormatInteger("48 * 1024 * 1024", 64 << 20), "64 * 1024 * 1024");
  EXPECT_EQ(FormatInteger("48 << 20", 96 << 20), "96 << 20");
  EXPECT_EQ(FormatInteger("2**9", 1024), "2**10");
  EXPECT_EQ(FormatInteger("4 * 128", 200), "200");
  EXPECT_EQ(FormatInteger("0x80", 256), "256");
  EXPECT_EQ(FormatInteger("100 + 28", 256), "256");
}

// Whatever form is chosen, it evaluates to the value asked for.
TEST(Literals, NewTextHasTheValue) {
  for (const char* text : {"128", "4 * 128", "128 * 4", "2 ** 7", "1 << 7", "(2 * 8) * 8", "256 // 2", "8 * (2 * 8)"}) {
    for (const int64_t value : {1, 8, 100, 128, 384, 1024, 4096, 65536}) {
      EXPECT_EQ(EvaluateInteger(FormatInteger(text, value)), value) << text << " -> " << FormatInteger(text, value);
    }
  }
}

}  // namespace
}  // namespace kernelwright::kernels
