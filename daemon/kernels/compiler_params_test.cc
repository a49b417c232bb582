#include "daemon/kernels/compiler_params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelwright::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kHeader[] = "import jax\nfrom jax.experimental import pallas as pl\n";
constexpr char kTpu[] = "from jax.experimental.pallas import tpu as pltpu\n";

std::vector<CompilerParamsSite> Find(const std::string& text) {
  const SourceFile file("k.py", text);
  const auto function = file.FindFunction("f");
  EXPECT_TRUE(function.has_value());
  return FindCompilerParams(FindReachable({{&file, false, {}}}, file, *function));
}

std::string Edited(const std::string& text, const CompilerParamsChange& change) {
  const auto sites = Find(text);
  EXPECT_EQ(sites.size(), 1u);
  const auto edits = CompilerParamsEdits(sites.at(0), change);
  if (edits.empty()) return "refused";
  const auto result = ApplyEdits("k.py", text, edits);
  EXPECT_TRUE(result.has_value());
  EXPECT_TRUE(SourceFile("k.py", *result).errors().empty()) << *result;
  return *result;
}

TEST(CompilerParams, AddsArgumentOnOneLineWithImport) {
  const std::string text = std::string(kHeader) + "def f(x):\n    return pl.pallas_call(k, out_shape=x)(x)\n";
  EXPECT_EQ(Edited(text, {.semantics = std::nullopt, .vmem_limit_bytes = 64 << 20}),
            std::string(kHeader) + kTpu +
                "def f(x):\n    return pl.pallas_call(k, out_shape=x, "
                "compiler_params=pltpu.CompilerParams(vmem_limit_bytes=64 * 1024 * 1024))(x)\n");
}

TEST(CompilerParams, AddsArgumentOnItsOwnLine) {
  const std::string text =
      std::string(kHeader) + kTpu +
      "def f(x):\n    return pl.pallas_call(\n        k,\n        out_shape=x,  # the result\n    )(x)\n";
  EXPECT_THAT(Edited(text, {.semantics = {{"parallel", "arbitrary"}}, .vmem_limit_bytes = 1000}),
              HasSubstr("        out_shape=x,\n        compiler_params=pltpu.CompilerParams(dimension_semantics="
                        "(\"parallel\", \"arbitrary\"), vmem_limit_bytes=1000),  # the result\n    )(x)\n"));
}

TEST(CompilerParams, ChangesWhatIsWritten) {
  const std::string text =
      std::string(kHeader) + kTpu +
      "def f(x):\n    return pl.pallas_call(k, compiler_params=pltpu.CompilerParams(\n"
      "        dimension_semantics=(pltpu.PARALLEL, 'arbitrary'), vmem_limit_bytes=48 << 20))(x)\n";
  const auto sites = Find(text);
  EXPECT_THAT(sites.at(0).semantics, ElementsAre("parallel", "arbitrary"));
  EXPECT_EQ(sites.at(0).limit, 48 << 20);
  const std::string edited = Edited(text, {.semantics = {{"parallel", "parallel"}}, .vmem_limit_bytes = 96 << 20});
  EXPECT_THAT(edited, HasSubstr("dimension_semantics=(\"parallel\", \"parallel\"), vmem_limit_bytes=96 << 20))(x)"));
}

TEST(CompilerParams, AddsToAnEmptyOrPartialCall) {
  const std::string start =
      std::string(kHeader) + kTpu + "def f(x):\n    return pl.pallas_call(k, compiler_params=pltpu.";
  EXPECT_THAT(Edited(start + "CompilerParams())(x)\n", {.semantics = {{"parallel"}}, .vmem_limit_bytes = std::nullopt}),
              HasSubstr("CompilerParams(dimension_semantics=(\"parallel\",)))(x)"));
  EXPECT_THAT(Edited(start + "TPUCompilerParams(has_side_effects=True))(x)\n",
                     {.semantics = std::nullopt, .vmem_limit_bytes = 7}),
              HasSubstr("(has_side_effects=True, vmem_limit_bytes=7))(x)"));
  EXPECT_THAT(Edited(start + "CompilerParams(vmem_limit_bytes=None))(x)\n",
                     {.semantics = std::nullopt, .vmem_limit_bytes = 32 << 20}),
              HasSubstr("vmem_limit_bytes=32 * 1024 * 1024))(x)"));
}

TEST(CompilerParams, RefusesWhatItCannotSee) {
  const std::string start = std::string(kHeader) + "def f(x, params, kw):\n    return pl.pallas_call(k, ";
  const CompilerParamsChange change = {.semantics = std::nullopt, .vmem_limit_bytes = 1 << 20};
  EXPECT_EQ(Edited(start + "compiler_params=params)(x)\n", change), "refused");
  EXPECT_EQ(Edited(start + "**kw)(x)\n", change), "refused");
  EXPECT_EQ(Edited(start + "compiler_params=pltpu.CompilerParams(vmem_limit_bytes=params.limit))(x)\n", change),
            "refused");
}

TEST(CompilerParams, KeepsCarriageReturnsAndAliases) {
  const std::string text =
      "from jax.experimental import pallas as pl\r\nimport jax.experimental.pallas.tpu as tpu\r\n"
      "def f(x):\r\n    return pl.pallas_call(\r\n        k,\r\n        grid=(4,))(x)\r\n";
  EXPECT_THAT(Edited(text, {.semantics = {{"parallel"}}, .vmem_limit_bytes = std::nullopt}),
              HasSubstr("        grid=(4,),\r\n        compiler_params=tpu.CompilerParams("));
}

TEST(CompilerParams, MatchesTracedOperationsByLine) {
  const std::string text = std::string(kHeader) +
                           "def f(x):\n    a = pl.pallas_call(k,\n        grid=(1,))(x)\n    g = pl.pallas_call(k)\n"
                           "    return g(a)\n";
  const auto sites = Find(text);
  ASSERT_EQ(sites.size(), 2u);
  const auto span = [](int line) { return SourceSpan{"k.py", line, 1, line, 9, "f"}; };
  EXPECT_EQ(MatchCompilerParams(sites, {SourceSpan{"lib.py", 4, 1, 4, 2, "g"}, span(4)}), 0);
  EXPECT_EQ(MatchCompilerParams(sites, {span(7)}), 1);
  EXPECT_EQ(MatchCompilerParams(sites, {SourceSpan{"other.py", 4, 1, 4, 2, "f"}}), -1);
}

}  // namespace
}  // namespace kernelwright::kernels
