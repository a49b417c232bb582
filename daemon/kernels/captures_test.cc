// Records of calls as inputs.
#include "daemon/kernels/captures.h"

#include "gtest/gtest.h"

namespace kernelwright::kernels {
namespace {

TEST(Captures, LeavesBecomeInputs) {
  const auto summary = ReadCapture(R"({"version": 1, "file": "/k.py", "function": "f", "calls": [
      {"leaves": [
        {"path": "x", "kind": "array", "dtype": "bfloat16", "shape": [8, 128], "key": "0"},
        {"path": "p[\"w\"]", "kind": "array", "dtype": "float32", "shape": []},
        {"path": "ids", "kind": "array", "dtype": "int32", "shape": [4], "range": [0, 9]},
        {"path": "n", "kind": "static", "value": 8},
        {"path": "flag", "kind": "static", "value": true},
        {"path": "key", "kind": "key", "shape": []}]},
      {"leaves": []}]})",
                                   "r.json");
  ASSERT_TRUE(summary) << summary.error().ToString();
  EXPECT_EQ(FormatInputs(summary->inputs), "x=bf16[8,128] p[\"w\"]=f32[] ids=i32[4]{0..9} n=8 flag=True key=prng");
  EXPECT_EQ(summary->calls, 2);
  EXPECT_EQ(summary->values, 1);
}

TEST(Captures, WhatCannotBeDescribedIsNamed) {
  const auto summary = ReadCapture(
      R"({"version": 1, "calls": [{"leaves": [{"path": "g", "kind": "other", "type": "function"}]}]})", "r.json");
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().kind(), ErrorKind::kUserCode);
  EXPECT_NE(summary.error().message().find("g is a function"), std::string::npos);
}

TEST(Captures, DamagedRecordsSaySo) {
  for (const char* text : {"", "[]", R"({"version": 1, "calls": []})", R"({"version": 2, "calls": [{"leaves": []}]})",
                           R"({"version": 1, "calls": [{"leaves": [{"path": 1}]}]})"}) {
    const auto summary = ReadCapture(text, "r.json");
    ASSERT_FALSE(summary) << text;
    EXPECT_EQ(summary.error().remedy(), "Capture the function again.");
  }
}

TEST(Captures, NothingIsRecordedAtFirst) {
  const auto none = CapturedInputs("/nonexistent", "/k.py", "f");
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
}

}  // namespace
}  // namespace kernelwright::kernels
