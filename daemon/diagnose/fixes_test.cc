// Fixes of blocks, index maps, compiler parameters and grid steps: text in, text out.
#include "daemon/diagnose/fixes.h"

#include <gtest/gtest.h>

#include "daemon/diagnose/fix_test_util.h"
#include "daemon/kernels/test_calls.h"

namespace kernelwright::diagnose {
namespace {

using kernels::kConstant;
using kernels::MakeBlock;

const char kImports[] =
    "import jax\nimport jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n"
    "from jax.experimental.pallas import tpu as pltpu\n\n";

PallasCall Copy(std::vector<int64_t> grid, const std::vector<int64_t>& dims, const std::vector<int64_t>& block,
                const std::vector<int>& axes) {
  PallasCall call;
  call.grid = std::move(grid);
  call.blocks.push_back(MakeBlock("x_ref", "float32", dims, block, axes, call.grid.size()));
  call.blocks.push_back(MakeBlock("o_ref", "float32", dims, block, axes, call.grid.size(), true));
  return call;
}

TEST(RoundBlocks, RoundsEveryBlockOfTheAxisAndTheGrid) {
  const std::string code = std::string(kImports) +
                           "def f(x):\n    spec = «pl.BlockSpec((4, 100), lambda i, j: (i, j))»\n"
                           "    return pl.pallas_call(kernel, grid=(16, 10), in_specs=[spec], out_specs=spec,\n"
                           "                          out_shape=x)(x)\n";
  const std::string mended = Mend({"D01", code, "", {Copy({16, 10}, {64, 1000}, {4, 100}, {0, 1})}});
  EXPECT_NE(mended.find("pl.BlockSpec((8, 128), lambda i, j: (i, j))"), std::string::npos) << mended;
  EXPECT_NE(mended.find("grid=(8, 8)"), std::string::npos) << mended;
}

TEST(RoundBlocks, FollowsNamesAndRoundsTheQuotientUp) {
  const std::string code = std::string(kImports) +
                           "def f(x, rows=12):\n    n = x.shape[0]\n"
                           "    return pl.pallas_call(kernel, grid=(n // rows,),\n"
                           "        in_specs=[«pl.BlockSpec((rows, 128), lambda i: (i, 0))»],\n"
                           "        out_specs=pl.BlockSpec((rows, 128), lambda i: (i, 0)), out_shape=x)(x)\n";
  const std::string mended = Mend({"D01", code, "", {Copy({5}, {60, 128}, {12, 128}, {0, kConstant})}});
  EXPECT_NE(mended.find("rows=16"), std::string::npos) << mended;
  EXPECT_NE(mended.find("grid=(pl.cdiv(n, rows),)"), std::string::npos) << mended;
}

TEST(RoundBlocks, OneDimension) {
  const std::string code =
      std::string(kImports) +
      "def f(x):\n    spec = «pl.BlockSpec((100,), lambda i: (i,))»\n"
      "    return pl.pallas_call(kernel, grid=(10,), in_specs=[spec], out_specs=spec, out_shape=x)(x)\n";
  const std::string mended = Mend({"D03", code, "", {Copy({10}, {1000}, {100}, {0})}});
  EXPECT_NE(mended.find("pl.BlockSpec((128,), lambda i: (i,))"), std::string::npos) << mended;
  EXPECT_NE(mended.find("grid=(8,)"), std::string::npos) << mended;
}

TEST(RoundBlocks, LeavesOneRowAndUnknownTraces) {
  const std::string code =
      std::string(kImports) +
      "def f(x):\n    spec = «pl.BlockSpec((1, 128), lambda i: (i, 0))»\n"
      "    return pl.pallas_call(kernel, grid=(16,), in_specs=[spec], out_specs=spec, out_shape=x)(x)\n";
  EXPECT_EQ(Mend({"D01", code, "", {Copy({16}, {16, 128}, {1, 128}, {0, kConstant})}}), "none");
  EXPECT_EQ(Mend({"D01", code}), "none");
}

TEST(IndexMaps, AppendsZerosForMissingIds) {
  EXPECT_EQ(Mend({"D05", "s = pl.BlockSpec((8, 256), «lambda i: (i,)»)\n", "must return 2 values to match"}),
            "s = pl.BlockSpec((8, 256), lambda i: (i, 0))\n");
  EXPECT_EQ(Mend({"D05", "s = «pl.BlockSpec((8, 256), lambda i: i)»\n"}),
            "s = pl.BlockSpec((8, 256), lambda i: (i, 0))\n");
  EXPECT_EQ(Mend({"D05", "def rows(i):\n    return i\ns = «pl.BlockSpec((8, 256), rows)»\n"}),
            "def rows(i):\n    return (i, 0)\ns = pl.BlockSpec((8, 256), rows)\n");
}

TEST(IndexMaps, TakesOneParameterPerGridAxis) {
  EXPECT_EQ(Mend({"D06", "s = pl.BlockSpec((8, 128), «lambda i: (i, 0)»)\n",
                  "<lambda>() takes 1 positional argument but 2 were given"}),
            "s = pl.BlockSpec((8, 128), lambda i, j: (i, 0))\n");
  EXPECT_EQ(Mend({"D06", "y = pl.pallas_call(k, grid=(4,), in_specs=[pl.BlockSpec((8, 128), «lambda i, j: (i, 0)»)])\n",
                  "missing 1 required positional argument: 'j'"}),
            "y = pl.pallas_call(k, grid=(4,), in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))])\n");
  // The id that would go is used.
  EXPECT_EQ(
      Mend({"D06", "y = pl.pallas_call(k, grid=(4,), in_specs=[pl.BlockSpec((8, 128), «lambda i, j: (i, j)»)])\n"}),
      "none");
  EXPECT_EQ(
      Mend({"D07",
            "g = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(4,),\n"
            "    in_specs=[pl.BlockSpec((8, 128), «lambda i: (i, 0)»)])\ny = pl.pallas_call(k, grid_spec=g)(t, x)\n",
            "takes 1 positional argument but 2 were given"}),
      "g = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(4,),\n"
      "    in_specs=[pl.BlockSpec((8, 128), lambda i, *_: (i, 0))])\ny = pl.pallas_call(k, grid_spec=g)(t, x)\n");
}

TEST(IndexMaps, WholeDivisionAndBlockNumbers) {
  EXPECT_EQ(Mend({"D09", "s = pl.BlockSpec((8, 256), «lambda i: (i / 2, 0)»)\n"}),
            "s = pl.BlockSpec((8, 256), lambda i: (i // 2, 0))\n");
  EXPECT_EQ(Mend({"D14", "s = «pl.BlockSpec((8, 256), lambda i: (i * 8, 0))»\n"}),
            "s = pl.BlockSpec((8, 256), lambda i: (i, 0))\n");
  EXPECT_EQ(Mend({"D14", "s = «pl.BlockSpec((BM, 256), lambda i: (BM * i, 0))»\n"}),
            "s = pl.BlockSpec((BM, 256), lambda i: (i, 0))\n");
  EXPECT_EQ(Mend({"D14", "s = «pl.BlockSpec((8, 256), lambda i: (i * 2, 0))»\n"}), "none");
}

TEST(IndexMaps, MovesTheReductionLast) {
  PallasCall call;
  call.grid = {4, 2};
  call.blocks.push_back(MakeBlock("x_ref", "float32", {4, 16, 128}, {1, 8, 128}, {0, 1, kConstant}, 2));
  call.blocks.push_back(MakeBlock("o_ref", "float32", {16, 128}, {8, 128}, {1, kConstant}, 2, true));
  const std::string code =
      "def f(x):\n    def kernel(x_ref, o_ref):\n        @pl.when(pl.program_id(0) == 0)\n        def _():\n"
      "            o_ref[...] = jnp.zeros_like(o_ref)\n        o_ref[...] += x_ref[...]\n"
      "    return «pl.pallas_call»(kernel, grid=(4, 2), in_specs=[pl.BlockSpec((None, 8, 128), lambda k, i: (k, i, "
      "0))],\n"
      "        out_specs=pl.BlockSpec((8, 128), lambda k, i: (i, 0)), out_shape=s)(x)\n";
  const std::string mended = Mend({"D15", code, "", {call}});
  EXPECT_NE(mended.find("grid=(2, 4)"), std::string::npos) << mended;
  EXPECT_NE(mended.find("lambda i, k: (k, i, 0)"), std::string::npos) << mended;
  EXPECT_NE(mended.find("lambda i, k: (i, 0)"), std::string::npos) << mended;
  EXPECT_NE(mended.find("pl.program_id(1) == 0"), std::string::npos) << mended;
}

TEST(Blocks, SqueezesTheLeadingDimension) {
  EXPECT_EQ(Mend({"D08", "s = «pl.BlockSpec((64, 128), lambda i: (i, 0))»\n",
                  "must have the same number of dimensions as the array shape (4, 64, 128)"}),
            "s = pl.BlockSpec((None, 64, 128), lambda i: (i, 0, 0))\n");
  EXPECT_EQ(Mend({"D08", "s = «pl.BlockSpec((8, 128), lambda i: (i, 0))»\n",
                  "must have the same number of dimensions as the array shape (4, 64, 128)"}),
            "none");
  EXPECT_EQ(Mend({"D08", "s = «pl.BlockSpec((8, 128), lambda b, i: (b, i, 0))»\n",
                  "must have the same number of dimensions as the array shape (4, 64, 128)"}),
            "s = pl.BlockSpec((None, 8, 128), lambda b, i: (b, i, 0))\n");
}

TEST(Blocks, CoversTheOutput) {
  const std::string code =
      "def f(x):\n    s = pl.BlockSpec((8, 128), lambda i: (i, 0))\n"
      "    return «pl.pallas_call(kernel, grid=(x.shape[0] // 8,), in_specs=[s], out_specs=s, out_shape=x)»(x)\n";
  EXPECT_NE(Mend({"D17", code, "", {Copy({2}, {20, 128}, {8, 128}, {0, kConstant})}}).find("pl.cdiv(x.shape[0], 8)"),
            std::string::npos);
}

TEST(Params, SemanticsFollowTheGrid) {
  EXPECT_EQ(Mend({"D13", "p = pltpu.CompilerParams(«dimension_semantics=(\"parallel\",)»)\n",
                  "len(grid)=2, len(dimension_semantics)=1"}),
            "p = pltpu.CompilerParams(dimension_semantics=(\"parallel\", \"arbitrary\"))\n");
  EXPECT_EQ(Mend({"D13", "p = pltpu.CompilerParams(«dimension_semantics=(\"parallel\", \"arbitrary\")»)\n",
                  "len(grid)=1, len(dimension_semantics)=2"}),
            "p = pltpu.CompilerParams(dimension_semantics=(\"parallel\",))\n");
}

TEST(Params, ReductionsAreArbitrary) {
  PallasCall call = kernels::MakeMatmul(256, 256, 512, 128, 128, 128);
  const std::string code =
      "y = pl.pallas_call(k, grid=(2, 2, 4),\n"
      "    compiler_params=pltpu.CompilerParams(«dimension_semantics=(\"parallel\", \"parallel\", \"parallel\")»))(x, "
      "y)\n";
  EXPECT_NE(Mend({"D16", code, "", {call}}).find("(\"parallel\", \"parallel\", \"arbitrary\")"), std::string::npos);
}

TEST(Params, LimitOfTheSmallestChip) {
  cost::Chip big;
  big.name = "v6e";
  big.vmem_bytes.value = 128 << 20;
  cost::Chip small;
  small.name = "tpu7x";
  small.vmem_bytes.value = 64 << 20;
  const std::string code = "p = pltpu.CompilerParams(«vmem_limit_bytes=1 << 30»)\n";
  const std::string mended = Mend({"D93", code, "", {}, {&big, &small}});
  EXPECT_EQ(mended, "p = pltpu.CompilerParams(vmem_limit_bytes=64 << 20)\n");
  EXPECT_EQ(Mend({"D93", "p = f(«vmem_limit_bytes=16 << 20»)\n", "", {}, {&big}}), "none");
}

PallasCall Sum() {
  PallasCall call;
  call.grid = {4};
  call.blocks.push_back(MakeBlock("x_ref", "float32", {32, 128}, {8, 128}, {0, kConstant}, 1));
  call.blocks.push_back(MakeBlock("o_ref", "float32", {8, 128}, {8, 128}, {kConstant, kConstant}, 1, true));
  return call;
}

TEST(Steps, ZeroesTheAccumulator) {
  const std::string code = std::string(kImports) +
                           "def f(x):\n    def kernel(x_ref, o_ref):\n        «o_ref[...] += x_ref[...]»\n"
                           "    return pl.pallas_call(kernel, grid=(4,), out_shape=s)(x)\n";
  EXPECT_EQ(Mend({"D30", code, "", {Sum()}}),
            std::string(kImports) +
                "def f(x):\n    def kernel(x_ref, o_ref):\n        @pl.when(pl.program_id(0) == 0)\n"
                "        def _():\n            o_ref[...] = jnp.zeros_like(o_ref)\n\n        o_ref[...] += x_ref[...]\n"
                "    return pl.pallas_call(kernel, grid=(4,), out_shape=s)(x)\n");
}

TEST(Steps, MasksTheTail) {
  PallasCall call;
  call.grid = {2};
  call.blocks.push_back(MakeBlock("a_ref", "float32", {8, 200}, {8, 128}, {kConstant, 0}, 1));
  call.blocks.push_back(MakeBlock("b_ref", "float32", {200, 128}, {128, 128}, {0, kConstant}, 1));
  call.blocks.push_back(MakeBlock("o_ref", "float32", {8, 128}, {8, 128}, {kConstant, kConstant}, 1, true));
  const std::string code =
      std::string(kImports) +
      "def f(a, b):\n    def kernel(a_ref, b_ref, o_ref):\n        «o_ref[...] += a_ref[...] @ b_ref[...]»\n"
      "    return pl.pallas_call(kernel, grid=(2,), out_shape=s)(a, b)\n";
  const std::string mended = Mend({"D31", code, "", {call}});
  EXPECT_NE(mended.find("        left = 200 - pl.program_id(0) * 128\n        o_ref[...] += jnp.where("),
            std::string::npos)
      << mended;
  EXPECT_NE(mended.find("jax.lax.broadcasted_iota(jnp.int32, b_ref.shape, 0) < left, b_ref[...], 0)"),
            std::string::npos)
      << mended;
}

TEST(Steps, StoresInTheLastStep) {
  const std::string code =
      "def f(x):\n    def kernel(x_ref, o_ref, acc_ref):\n        «@pl.when(pl.program_id(0) == 4)»\n        def _():\n"
      "            o_ref[...] = acc_ref[...]\n    return pl.pallas_call(kernel, grid=(4,), out_shape=s)(x)\n";
  EXPECT_NE(Mend({"D33", code, "", {Sum()}}).find("@pl.when(pl.program_id(0) == pl.num_programs(0) - 1)"),
            std::string::npos);
}

TEST(Steps, WaitsForCopies) {
  EXPECT_EQ(Mend({"D34",
                  "def kernel(x_ref, o_ref, b_ref, sem):\n    «pltpu.make_async_copy(x_ref, b_ref, sem).start()»\n"
                  "    y = 1\n    o_ref[...] = b_ref[...]\n"}),
            "def kernel(x_ref, o_ref, b_ref, sem):\n    copy = pltpu.make_async_copy(x_ref, b_ref, sem)\n"
            "    copy.start()\n    y = 1\n    copy.wait()\n    o_ref[...] = b_ref[...]\n");
  EXPECT_EQ(Mend({"D34", "def kernel(x_ref, b_ref, sem):\n    «pltpu.async_copy(x_ref, b_ref, sem)»\n    f(b_ref)\n"}),
            "def kernel(x_ref, b_ref, sem):\n    pltpu.async_copy(x_ref, b_ref, sem).wait()\n    f(b_ref)\n");
  EXPECT_EQ(
      Mend({"D36", "def kernel(o_ref, sem):\n    «pltpu.semaphore_signal(sem, 1)»\n    f(o_ref)\n"}),
      "def kernel(o_ref, sem):\n    pltpu.semaphore_signal(sem, 1)\n    pltpu.semaphore_wait(sem, 1)\n    f(o_ref)\n");
}

TEST(ProposeFixes, NothingForOtherIdsAndBrokenCode) {
  EXPECT_EQ(Mend({"D000", "s = «f()»\n"}), "none");
  EXPECT_EQ(Mend({"D09", "s = pl.BlockSpec((8, 256), «lambda i: (i / 2, 0)»\ndef f(:\n"}), "none");
}

}  // namespace
}  // namespace kernelwright::diagnose
