// The lint of changed names on small files: what is found, where, and what the edits make of it.
#include "daemon/diagnose/api_lint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "daemon/kernels/edits.h"

namespace kernelwright::diagnose {
namespace {

const ApiNames& Names() {
  static const ApiNames names = [] {
    std::ifstream in(std::filesystem::path(KW_SOURCE_DIR) / "agents/api_names.json");
    std::stringstream text;
    text << in.rdbuf();
    auto parsed = ParseApiNames(text.str());
    EXPECT_TRUE(parsed) << parsed.error().ToString();
    return *parsed;
  }();
  return names;
}

constexpr const char* kImports =
    "import jax\nimport jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n"
    "from jax.experimental.pallas import tpu as pltpu\n";

std::vector<Diagnostic> Lint(const std::string& text, const std::string& version = "0.10.2") {
  return LintApi(kernels::SourceFile("k.py", text), Names(), version);
}

// "ID LINE:COLUMN-COLUMN" of what is found below the imports, one a line.
std::string Found(const std::string& body, const std::string& version = "0.10.2") {
  std::string out;
  for (const Diagnostic& d : Lint(kImports + body, version)) {
    out += d.id + " " + std::to_string(d.place.line - 4) + ":" + std::to_string(d.place.column) + "-" +
           std::to_string(d.place.end_column) + "\n";
  }
  return out;
}

// The body with every fix applied.
std::string Fixed(const std::string& body, const std::string& imports = kImports) {
  const std::string text = imports + body;
  std::vector<kernels::TextEdit> edits;
  for (const Diagnostic& d : Lint(text)) {
    if (!d.fixes.empty()) edits.insert(edits.end(), d.fixes[0].edits.begin(), d.fixes[0].edits.end());
  }
  const auto fixed = kernels::ApplyEdits("k.py", text, edits);
  EXPECT_TRUE(fixed) << fixed.error().ToString();
  return fixed ? fixed->substr(imports.size()) : "";
}

TEST(ApiLint, Renames) {
  EXPECT_EQ(Found("p = pltpu.TPUCompilerParams(vmem_limit_bytes=1)\n"), "D150 1:11-28\n");
  EXPECT_EQ(Fixed("p = pltpu.TPUCompilerParams(vmem_limit_bytes=1)\n"),
            "p = pltpu.CompilerParams(vmem_limit_bytes=1)\n");
  EXPECT_EQ(Fixed("s = pl.BlockSpec(memory_space=pltpu.ANY)\n"), "s = pl.BlockSpec(memory_space=pl.ANY)\n");
  EXPECT_EQ(Fixed("s = pltpu.TPUMemorySpace.ANY\n"), "s = pl.ANY\n");
  EXPECT_EQ(Fixed("s = pltpu.TPUMemorySpace.SMEM\n"), "s = pltpu.MemorySpace.SMEM\n");
  EXPECT_EQ(Fixed("pltpu.run_scoped(f, x)\npltpu.delay(4)\nc = pltpu.CostEstimate(flops=1)\n"),
            "pl.run_scoped(f, x)\npl.delay(4)\nc = pl.CostEstimate(flops=1)\n");
}

TEST(ApiLint, OtherWaysToImport) {
  const std::string whole = "import jax.experimental.pallas as pl\nimport jax.experimental.pallas.tpu as tpu\n";
  EXPECT_EQ(Fixed("p = tpu.TPUCompilerParams()\nq = tpu.ANY\n", whole), "p = tpu.CompilerParams()\nq = pl.ANY\n");
  const std::string path = "import jax.experimental.pallas.tpu\n";
  EXPECT_EQ(Fixed("p = jax.experimental.pallas.tpu.TPUCompilerParams()\n", path),
            "p = jax.experimental.pallas.tpu.CompilerParams()\n");
  const std::string text =
      "from jax.experimental.pallas.tpu import (\n    TPUCompilerParams, VMEM)\np = TPUCompilerParams(a=1)\n";
  const auto found = Lint(text);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].place.line, 2);
  const auto fixed = kernels::ApplyEdits("k.py", text, found[0].fixes.at(0).edits);
  ASSERT_TRUE(fixed);
  EXPECT_EQ(*fixed, "from jax.experimental.pallas.tpu import (\n    CompilerParams, VMEM)\np = CompilerParams(a=1)\n");
}

TEST(ApiLint, LoadsAndStores) {
  EXPECT_EQ(Fixed("x = pl.load(x_ref, (slice(None), pl.ds(i, 8)))\n"), "x = x_ref[:, pl.ds(i, 8)]\n");
  EXPECT_EQ(Fixed("pl.store(o_ref, (0, pl.dslice(0, 8)), x + 1)\n"), "o_ref[0, pl.dslice(0, 8)] = x + 1\n");
  EXPECT_EQ(Found("x = pl.load(x_ref, (0,), mask=m)\n"), "D151 1:8-12\n");
  EXPECT_EQ(Fixed("x = pl.load(x_ref, (0,), mask=m)\n"), "x = pl.load(x_ref, (0,), mask=m)\n");
  EXPECT_EQ(Found("pl.atomic_add(o_ref, (0,), x)\n"), "D152 1:4-14\n");
}

TEST(ApiLint, Arguments) {
  EXPECT_EQ(Fixed("s = pl.BlockSpec(lambda i: (i, 0), (8, 128))\n"), "s = pl.BlockSpec((8, 128), lambda i: (i, 0))\n");
  EXPECT_EQ(Found("s = pl.BlockSpec((8, 128), lambda i: (i, 0))\n"), "");
  EXPECT_EQ(Fixed("s = pl.BlockSpec((8, None), lambda i: (i, 0), indexing_mode=pl.Unblocked())\n"),
            "s = pl.BlockSpec((pl.Element(8), None), lambda i: (i, 0))\n");
  EXPECT_EQ(Fixed("f = pl.pallas_call(k, compiler_params=dict(mosaic=dict(dimension_semantics=('parallel',))))\n"),
            "f = pl.pallas_call(k, compiler_params=pltpu.CompilerParams(dimension_semantics=('parallel',)))\n");
  EXPECT_EQ(Fixed("f = pl.pallas_call(k, compiler_params={'mosaic': {'vmem_limit_bytes': 1 << 20}}, grid=(2,))\n"),
            "f = pl.pallas_call(k, compiler_params=pltpu.CompilerParams(vmem_limit_bytes=1 << 20), grid=(2,))\n");
  EXPECT_EQ(Fixed("f = pl.pallas_call(k, backend='mosaic_tpu', grid=(2,))\n"), "f = pl.pallas_call(k, grid=(2,))\n");
  EXPECT_EQ(Fixed("f = pl.kernel(k, out_shape=o, mesh=m, scratch_shapes=[])\n"),
            "f = pl.kernel(k, out_type=o, mesh=m, scratch_types=[])\n");
  EXPECT_EQ(Fixed("y = pltpu.repeat(x, n // 2, axis=1)\n"), "y = jnp.concatenate([x] * (n // 2), axis=1)\n");
}

TEST(ApiLint, SilentAboutWhatStillWorks) {
  EXPECT_EQ(Found("p = pltpu.TPUCompilerParams()\n", "0.7.0"), "");
  EXPECT_EQ(Found("p = pltpu.CompilerParams()\npltpu.semaphore_signal(s)\npltpu.load(r)\npl.dot(x, y)\n"), "");
  EXPECT_EQ(Found("x = self.pl.load(x)\nload = 1\nother.TPUCompilerParams()\n"), "");
}

TEST(ApiLint, SilentAboutCodeThatAsks) {
  EXPECT_EQ(Found("try:\n    P = pltpu.CompilerParams\nexcept AttributeError:\n    P = pltpu.TPUCompilerParams\n"), "");
  EXPECT_EQ(Found("P = pltpu.CompilerParams if hasattr(pltpu, 'CompilerParams') else pltpu.TPUCompilerParams\n"), "");
  EXPECT_EQ(Found("if jax.__version__ < '0.7':\n    P = pltpu.TPUCompilerParams\n"), "");
  EXPECT_EQ(Found("def f(pltpu):\n    return pltpu.TPUCompilerParams\n"), "");
}

TEST(ApiNames, Versions) {
  EXPECT_LT(CompareVersions("0.9.0", "0.10.2"), 0);
  EXPECT_EQ(CompareVersions("0.10", "0.10.0"), 0);
  EXPECT_GT(CompareVersions("0.10.2.dev3", "0.10.1"), 0);
}

TEST(ApiNames, WrongTablesAreNamed) {
  EXPECT_FALSE(ParseApiNames("[]"));
  EXPECT_FALSE(ParseApiNames(R"({"names": [{"id": "D1"}]})"));
  const auto kind = ParseApiNames(
      R"({"names": [{"id": "D1", "name": "n", "kind": "odd", "module": "m", "old": "o", "removed": "1.0"}]})");
  ASSERT_FALSE(kind);
  EXPECT_NE(kind.error().message().find("odd"), std::string::npos);
}

}  // namespace
}  // namespace kernelwright::diagnose
