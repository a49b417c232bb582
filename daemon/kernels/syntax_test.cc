#include "daemon/kernels/syntax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelwright::kernels {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string TextOf(const SourceFile& file, ByteRange range) {
  return file.text().substr(range.begin, range.end - range.begin);
}

std::vector<std::string> Names(const SourceFile& file) {
  std::vector<std::string> names;
  for (const auto& function : file.functions()) names.push_back(function.qualified_name);
  return names;
}

constexpr char kModule[] = R"py(# -*- coding: utf-8 -*-
"""Docs with ünïcode."""
from __future__ import annotations
import functools, jax.numpy as jnp
import jax.experimental.pallas
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu, triton
from .helpers import (tile,
                      other as renamed)

BLOCK: int = 128
BM, (BN, BK) = 128, (256, 4 * 128)
A = B = 64

if True:
    def guarded(x): return x

# Multiplies.
# kernelwright: x=bf16[4096,4096],
#   y=bf16[4096,4096] n=8
#   ids=i32[64]{0..4095}
# Tuned by hand.
@functools.partial(jax.jit, static_argnames=("bm",))
@other
def matmul(x: jax.Array, y, *, bm: int = 128, bn=256, **rest):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
    return pl.pallas_call(kernel, grid=(x.shape[0] // bm,))(x)

class Model:
    tile: int = 32
    # kernelwright: x=f32[8,128]
    @staticmethod
    def forward(x, scale=(n := 2)):
        return matmul(x, x, bm=BLOCK)

    async def later(self, /, a, *args):
        return f"{self.forward(a)} {BM}"

def _private(x): return matmul(x, x)
)py";

TEST(Syntax, ListsFunctionsWithQualifiedNames) {
  const SourceFile file("k.py", kModule);
  EXPECT_TRUE(file.errors().empty());
  EXPECT_THAT(Names(file),
              ElementsAre("guarded", "matmul", "matmul.kernel", "Model.forward", "Model.later", "_private"));
  EXPECT_TRUE(file.functions()[0].top_level);
  EXPECT_FALSE(file.functions()[2].top_level);
  EXPECT_TRUE(file.functions()[3].in_class);
}

TEST(Syntax, FindsDecoratedFunctionsMethodsAndNestedOnes) {
  const SourceFile file("k.py", kModule);
  const auto matmul = file.FindFunction("matmul");
  ASSERT_TRUE(matmul.has_value());
  EXPECT_TRUE(TextOf(file, matmul->range).starts_with("def matmul"));
  EXPECT_TRUE(TextOf(file, matmul->range_with_decorators).starts_with("@functools.partial"));
  EXPECT_THAT(matmul->decorators, ElementsAre("functools.partial(jax.jit, static_argnames=(\"bm\",))", "other"));
  EXPECT_EQ(file.FindFunction("matmul.<locals>.kernel")->name, "kernel");
  EXPECT_EQ(file.FindFunction("Model.later")->position.line, 37);
}

TEST(Syntax, ReadsParametersAndDefaults) {
  const SourceFile file("k.py", kModule);
  const FunctionInfo matmul = file.FindFunction("matmul").value();
  const auto& parameters = matmul.parameters;
  ASSERT_EQ(parameters.size(), 5u);
  EXPECT_EQ(parameters[0].name, "x");
  EXPECT_FALSE(parameters[1].keyword_only);
  EXPECT_EQ(parameters[2].name, "bm");
  EXPECT_TRUE(parameters[2].keyword_only);
  EXPECT_EQ(parameters[2].default_text, "128");
  EXPECT_EQ(TextOf(file, parameters[3].default_range), "256");
  EXPECT_TRUE(parameters[4].variadic);
  EXPECT_EQ(parameters[4].name, "rest");
}

TEST(Syntax, UnknownFunctionNamesTheOthersAndTheNearest) {
  const SourceFile file("k.py", kModule);
  const auto missing = file.FindFunction("matmull");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().kind(), ErrorKind::kNotFound);
  EXPECT_THAT(missing.error().message(), HasSubstr("functions here: guarded, matmul, Model.forward, Model.later"));
  EXPECT_THAT(missing.error().remedy(), HasSubstr("k.py::matmul?"));
  EXPECT_THAT(SourceFile("e.py", "").FindFunction("f").error().message(), HasSubstr("no functions"));
}

TEST(Syntax, JoinsInputsCommentAboveDecorators) {
  const SourceFile file("k.py", kModule);
  const auto inputs = file.FindFunction("matmul")->inputs;
  ASSERT_TRUE(inputs.has_value());
  EXPECT_EQ(inputs->text, "x=bf16[4096,4096], y=bf16[4096,4096] n=8 ids=i32[64]{0..4095}");
  const auto offset = inputs->FileOffset(static_cast<uint32_t>(inputs->text.find("n=8")));
  EXPECT_EQ(file.text().substr(offset, 3), "n=8");
  EXPECT_EQ(file.FindFunction("Model.forward")->inputs->text, "x=f32[8,128]");
  EXPECT_FALSE(file.FindFunction("_private")->inputs.has_value());
}

TEST(Syntax, InputsCommentStaysWithItsFunction) {
  const SourceFile file("k.py",
                        "# kernelwright: x=f32[8]\n\ndef f(x): pass\n@d\n# kernelwright: y=f32[4]\ndef g(y): pass\n");
  EXPECT_FALSE(file.FindFunction("f")->inputs.has_value());
  EXPECT_EQ(file.FindFunction("g")->inputs->text, "y=f32[4]");
}

TEST(Syntax, InputsCommentOnFirstLineAndWithCrLf) {
  const SourceFile file("k.py", "# kernelwright: x=f32[8]\r\n#  y=f32[4]\r\ndef f(x, y):\r\n    return x\r\n");
  EXPECT_EQ(file.FindFunction("f")->inputs->text, "x=f32[8] y=f32[4]");
}

TEST(Syntax, ReadsImportsAndConstants) {
  const SourceFile file("k.py", kModule);
  std::vector<std::string> imports;
  for (const auto& entry : file.imports()) imports.push_back(entry.module + ":" + entry.name + ":" + entry.alias);
  EXPECT_THAT(imports, ElementsAre("__future__:annotations:annotations", "functools::functools", "jax.numpy::jnp",
                                   "jax.experimental.pallas::jax", "jax.experimental:pallas:pl",
                                   "jax.experimental.pallas:tpu:pltpu", "jax.experimental.pallas:triton:triton",
                                   ".helpers:tile:tile", ".helpers:other:renamed"));
  std::vector<std::string> constants;
  for (const auto& constant : file.constants()) {
    constants.push_back(constant.name + "=" + TextOf(file, constant.value_range));
  }
  EXPECT_THAT(constants, ElementsAre("BLOCK=128", "BM=128", "BN=256", "BK=4 * 128", "A=64", "B=64", "Model.tile=32"));
}

TEST(Syntax, ReferencesIncludeDefaultsDecoratorsAndFStrings) {
  const SourceFile file("k.py", kModule);
  const auto matmul = file.References(*file.FindFunction("matmul"));
  EXPECT_THAT(matmul.attributes, Contains("pl.pallas_call"));
  EXPECT_THAT(matmul.attributes, Contains("functools.partial"));
  EXPECT_THAT(matmul.names, Contains("other"));
  const auto later = file.References(*file.FindFunction("Model.later"));
  EXPECT_THAT(later.names, Contains("BM"));
  EXPECT_THAT(later.attributes, Contains("self.forward"));
}

TEST(Syntax, DefaultFunctionIsTheOneThatReachesPallasCall) {
  EXPECT_EQ(SourceFile("k.py", kModule).DefaultFunction()->name, "matmul");
  const SourceFile helper(
      "k.py", "def run(x):\n    return pl.pallas_call(k)(x)\ndef entry(x): return run(x)\ndef other(x): return x\n");
  EXPECT_EQ(helper.DefaultFunction()->name, "entry");
  const SourceFile two("k.py", "def a(x): return pl.pallas_call(k)(x)\ndef b(x): return pl.pallas_call(k)(x)\n");
  const auto choice = two.DefaultFunction();
  ASSERT_FALSE(choice.has_value());
  EXPECT_EQ(choice.error().kind(), ErrorKind::kUsage);
  EXPECT_THAT(choice.error().message(), HasSubstr("a, b"));
  EXPECT_EQ(SourceFile("k.py", "def only(x): return x\n").DefaultFunction()->name, "only");
  EXPECT_FALSE(SourceFile("k.py", "x = 1\n").DefaultFunction().has_value());
}

TEST(Syntax, ErrorsHaveLineAndColumn) {
  const SourceFile open("k.py", "def f(x):\n    return g(x\n\ndef h(): pass\n");
  ASSERT_FALSE(open.errors().empty());
  EXPECT_EQ(open.errors()[0].position.line, 2);
  EXPECT_FALSE(open.CheckSyntax().ok());
  EXPECT_THAT(open.CheckSyntax().where(), HasSubstr("k.py:2:"));
  const SourceFile bad("k.py", "x = 1\ndef f(:\n    pass\n");
  ASSERT_FALSE(bad.errors().empty());
  EXPECT_EQ(bad.errors()[0].position.line, 2);
  const SourceFile print("k.py", "print \"x\"\n");
  EXPECT_THAT(print.CheckSyntax().message(), HasSubstr("print"));
  EXPECT_TRUE(SourceFile("k.py", "match = 1\nmatch x:\n    case [1, *_]: pass\n").errors().empty());
}

TEST(Syntax, PositionsCountCharactersAndBytes) {
  const SourceFile file("k.py", "s = 'é€😀'; BLOCK = 128\n");
  const auto at = static_cast<uint32_t>(file.text().find("128"));
  const SourcePosition position = file.Position(at);
  EXPECT_EQ(position.line, 1);
  EXPECT_EQ(position.column, 20);
  EXPECT_EQ(position.byte_column, 26);
  EXPECT_EQ(file.Offset(1, position.byte_column), at);
  EXPECT_EQ(file.Offset(9, 1), file.text().size());
}

TEST(Syntax, ClosestNameIsOnlyOfferedWhenNear) {
  EXPECT_EQ(ClosestName("matmul", {"matmull", "softmax"}), "matmull");
  EXPECT_EQ(ClosestName("attention", {"f", "g"}), std::nullopt);
}

}  // namespace
}  // namespace kernelwright::kernels
