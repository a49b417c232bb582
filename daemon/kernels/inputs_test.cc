#include "daemon/kernels/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace kernelwright::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<InputSpec> Parse(std::string_view text) {
  auto result = ParseInputs(text, "--inputs");
  EXPECT_TRUE(result.has_value()) << result.error().ToString();
  return result.value_or(std::vector<InputSpec>());
}

InputsError ErrorOf(std::string_view text) {
  const InputsResult result = ParseInputsText(text);
  EXPECT_TRUE(std::holds_alternative<InputsError>(result)) << text;
  return std::holds_alternative<InputsError>(result) ? std::get<InputsError>(result) : InputsError{};
}

TEST(Inputs, ReadsTensorsStaticsAndKeys) {
  const auto inputs = Parse("x=bf16[4096, 4096],p.w=float32[8,8]  ids=i32[64]{0..4095}, n=8 key=prng s=f32[]");
  ASSERT_EQ(inputs.size(), 6u);
  EXPECT_EQ(inputs[0].dtype, "bfloat16");
  EXPECT_THAT(inputs[0].dims, ElementsAre(4096, 4096));
  EXPECT_EQ(inputs[1].PathText(), "p.w");
  EXPECT_EQ(inputs[2].range, (std::pair<int64_t, int64_t>(0, 4095)));
  EXPECT_EQ(inputs[3].kind, InputSpec::Kind::kStatic);
  EXPECT_EQ(inputs[3].static_json, "8");
  EXPECT_EQ(inputs[4].kind, InputSpec::Kind::kPrngKey);
  EXPECT_TRUE(inputs[5].dims.empty());
  EXPECT_TRUE(Parse("  , ").empty());
}

TEST(Inputs, ReadsStatics) {
  const auto inputs =
      Parse("a=-3 b=1e-6 c=True d=False e=None f='a b, c' g=(1, -2) h=() i=(4,) j=1_000 k=\"q\\\"q\" l=.5 m=2.");
  std::vector<std::string> values;
  values.reserve(inputs.size());
  for (const auto& input : inputs) values.push_back(input.static_json);
  EXPECT_THAT(values, ElementsAre("-3", "1e-06", "true", "false", "null", "\"a b, c\"", "[1,-2]", "[]", "[4]", "1000",
                                  "\"q\\\"q\"", "0.5", "2.0"));
}

TEST(Inputs, ReadsPaths) {
  const auto inputs = Parse("p[\"w q\"].b[0]=f32[1] args[12]=i4[8] p['v']=u4[8]");
  EXPECT_EQ(inputs[0].PathText(), "p[\"w q\"].b[0]");
  EXPECT_EQ(inputs[0].path[3].index, 0);
  EXPECT_EQ(inputs[2].PathText(), "p[\"v\"]");
}

TEST(Inputs, ErrorsPointAtTheColumnAndSayWhatIsAllowed) {
  const struct {
    std::string_view text;
    uint32_t offset;
    std::string_view message;
    std::string_view remedy;
  } cases[] = {
      {"x=complex128[8]", 2, "unsupported dtype `complex128`", "bf16, f32"},
      {"x=bf16", 6, "shape is missing", "bf16[]"},
      {"x=bf16[8,a]", 9, "dimension", "numbers"},
      {"x=bf16[8,-1]", 9, "negative", "numbers"},
      {"x=bf16[8", 8, "`]`", "numbers"},
      {"x bf16[8]", 2, "`=` is missing", "name=dtype"},
      {"x=", 2, "value is missing", "name=dtype"},
      {"x=f32[8]{0..1}", 8, "only for integers", "Leave"},
      {"x=i8[8]{0..200}", 8, "does not fit i8", "127"},
      {"x=i32[8]{5..2}", 9, "empty", "between"},
      {"x=i32[8]{5}", 10, "`..`", "{low..high}"},
      {"x=i32[8] x=i32[4]", 9, "twice", "Keep one"},
      {"x=i32[8]y=i32[4]", 8, "unexpected `y`", "spaces or commas"},
      {"p.=i32[4]", 2, "attribute name", "name=dtype"},
      {"p[w]=i32[4]", 2, "whole number", "quoted key"},
      {"s='abc", 2, "not closed", "quote"},
      {"t=(1,x)", 5, "whole number", "(1,2)"},
      {"n=99999999999999999999", 2, "too large", "integer"},
      {"3=8", 0, "name is expected", "name=dtype"},
      {"n=1.2.3", 2, "not a number", "0.5"},
  };
  for (const auto& c : cases) {
    const InputsError error = ErrorOf(c.text);
    EXPECT_EQ(error.offset, c.offset) << c.text << ": " << error.message;
    EXPECT_THAT(error.message, HasSubstr(std::string(c.message))) << c.text;
    EXPECT_THAT(error.remedy, HasSubstr(std::string(c.remedy))) << c.text;
  }
  const auto status = ParseInputs("x=c128[8]", "--inputs").error();
  EXPECT_EQ(status.kind(), ErrorKind::kUsage);
  EXPECT_EQ(status.where(), "--inputs, column 3");
}

TEST(Inputs, DtypeNames) {
  EXPECT_EQ(CanonicalDtype("f8e4m3fn"), "float8_e4m3fn");
  EXPECT_EQ(CanonicalDtype("float8_e5m2"), "float8_e5m2");
  EXPECT_EQ(CanonicalDtype("complex128"), std::nullopt);
  EXPECT_EQ(ShortDtype("uint4"), "u4");
  EXPECT_EQ(DtypeBits("bf16"), 16);
  EXPECT_EQ(DtypeBits("int4"), 4);
  EXPECT_EQ(DtypeBits("key<fry>"), 0);
}

TEST(Inputs, PrintedTextReadsBackEqual) {
  std::mt19937 random(3);
  const std::vector<std::string> dtypes = {"bfloat16", "int32", "bool", "uint8", "float8_e4m3fn", "int64"};
  const std::vector<std::string> statics = {"8",  "-1",  "0.1",    "1e-06", "true", "null", "\"a \\\"b\\\\\"",
                                            "[]", "[3]", "[1,2,3]"};
  for (int round = 0; round < 500; ++round) {
    std::vector<InputSpec> inputs;
    for (uint32_t i = 0, n = random() % 6; i < n; ++i) {
      InputSpec input;
      input.path.push_back({PathStep::Kind::kName, "x" + std::to_string(i), 0});
      for (uint32_t j = 0, steps = random() % 3; j < steps; ++j) {
        const auto kind = random() % 3;
        if (kind == 0) input.path.push_back({PathStep::Kind::kAttribute, "w", 0});
        if (kind == 1) input.path.push_back({PathStep::Kind::kKey, "a\"]\\ b", 0});
        if (kind == 2) input.path.push_back({PathStep::Kind::kIndex, "", static_cast<int64_t>(random() % 9)});
      }
      input.kind = static_cast<InputSpec::Kind>(random() % 3);
      if (input.kind == InputSpec::Kind::kTensor) {
        input.dtype = dtypes[random() % dtypes.size()];
        for (uint32_t j = 0, rank = random() % 4; j < rank; ++j) input.dims.push_back(random() % 5000);
        if (input.dtype == "int32" && random() % 2 == 0) input.range = {-5, static_cast<int64_t>(random() % 9)};
      } else if (input.kind == InputSpec::Kind::kStatic) {
        input.static_json = statics[random() % statics.size()];
      }
      inputs.push_back(std::move(input));
    }
    ASSERT_EQ(Parse(FormatInputs(inputs)), inputs) << FormatInputs(inputs);
  }
}

TEST(Inputs, AnyTextEndsInAResult) {
  std::mt19937 random(5);
  const std::string alphabet = "x=bf16[,]{0..9} p.\"'()-n8\\\xc3\xa9TrueNoneprng";
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (uint32_t i = 0, n = random() % 24; i < n; ++i) text += alphabet[random() % alphabet.size()];
    const InputsResult result = ParseInputsText(text);
    if (const auto* error = std::get_if<InputsError>(&result)) {
      ASSERT_LE(error->offset, text.size());
      ASSERT_FALSE(error->message.empty());
    }
  }
}

}  // namespace
}  // namespace kernelwright::kernels
