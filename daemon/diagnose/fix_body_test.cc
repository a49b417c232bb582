// Fixes of kernel bodies, operations and types: text in, text out.
#include <gtest/gtest.h>

#include "daemon/diagnose/fix_test_util.h"

namespace kernelwright::diagnose {
namespace {

// A kernel whose operations lie on the given line.
PallasCall WithOperation(const std::string& primitive, const std::string& dtype, int line) {
  PallasCall call;
  GraphValue value;
  value.id = 1;
  value.type.dtype = dtype;
  call.kernel.inputs.push_back(value);
  Operation operation;
  operation.name = primitive;
  Operand operand;
  operand.value = 1;
  operation.inputs.push_back(operand);
  operation.spans.push_back({"k.py", line, 1, line, 2, "kernel"});
  call.kernel.operations.push_back(operation);
  return call;
}

TEST(Body, StoresOrDropsTheReturnedValue) {
  EXPECT_EQ(Mend({"D50", "def kernel(x_ref, o_ref):\n    o_ref[...] = x_ref[...]\n    «return x_ref[...]»\n"}),
            "def kernel(x_ref, o_ref):\n    o_ref[...] = x_ref[...]\n");
  EXPECT_EQ(Mend({"D50", "def kernel(x_ref, o_ref):\n    «return x_ref[...] * 2»\n"}),
            "def kernel(x_ref, o_ref):\n    o_ref[...] = x_ref[...] * 2\n");
}

TEST(Body, BranchesOnTracedValues) {
  EXPECT_EQ(
      Mend({"D52",
            "def kernel(x_ref, o_ref):\n    if «pl.program_id(0) == 0»:\n        o_ref[...] = x_ref[...]\n"
            "    else:\n        o_ref[...] += 1\n"}),
      "from jax.experimental import pallas as pl\nimport jax.numpy as jnp\n"
      "def kernel(x_ref, o_ref):\n    @pl.when(pl.program_id(0) == 0)\n    def _():\n        o_ref[...] = x_ref[...]\n"
      "\n    @pl.when(jnp.logical_not(pl.program_id(0) == 0))\n    def _():\n        o_ref[...] += 1\n");
  const std::string imports = "import jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n";
  EXPECT_EQ(Mend({"D52", imports + "def kernel(x_ref, o_ref):\n    «if x and y: o_ref[...] = x_ref[...]»\n"}),
            imports +
                "def kernel(x_ref, o_ref):\n    @pl.when(jnp.logical_and(x, y))\n    def _():\n        o_ref[...] = "
                "x_ref[...]\n");
  EXPECT_EQ(Mend({"D52", imports + "def kernel(x_ref, o_ref):\n    if «c»:\n        v = 1\n    else:\n        v = 2\n  "
                                   "  o_ref[...] = v\n"}),
            imports + "def kernel(x_ref, o_ref):\n    v = jnp.where(c, 1, 2)\n    o_ref[...] = v\n");
  EXPECT_EQ(Mend({"D52", imports + "def kernel(x_ref, o_ref):\n    o_ref[...] = «1 if c else 2»\n"}),
            imports + "def kernel(x_ref, o_ref):\n    o_ref[...] = jnp.where(c, 1, 2)\n");
  // A name that is read afterwards cannot move into a function; neither can a return.
  EXPECT_EQ(Mend({"D52", imports + "def kernel(x_ref, o_ref):\n    if «c»:\n        v = 1\n    o_ref[...] = v\n"}),
            "none");
  EXPECT_EQ(Mend({"D52", imports + "def kernel(x_ref, o_ref):\n    if «c»:\n        return\n    o_ref[...] = 1\n"}),
            "none");
}

TEST(Body, CastsAndKeepsDimensions) {
  EXPECT_EQ(Mend({"D53", "def kernel(x_ref, o_ref):\n    «o_ref[...] = x_ref[...] * 2.0»\n"}),
            "def kernel(x_ref, o_ref):\n    o_ref[...] = (x_ref[...] * 2.0).astype(o_ref.dtype)\n");
  EXPECT_EQ(Mend({"D53", "def kernel(x_ref, o_ref):\n    «o_ref[...] = x_ref[...].astype(jnp.float32)»\n"}),
            "def kernel(x_ref, o_ref):\n    o_ref[...] = x_ref[...].astype(o_ref.dtype)\n");
  EXPECT_EQ(Mend({"D53", "def kernel(x_ref, o_ref):\n    «o_ref[...] += f(x_ref)»\n"}),
            "def kernel(x_ref, o_ref):\n    o_ref[...] = (o_ref[...] + f(x_ref)).astype(o_ref.dtype)\n");
  EXPECT_EQ(Mend({"D54", "def kernel(x_ref, o_ref):\n    «o_ref[...] = jnp.sum(x_ref[...], axis=1)»\n"}),
            "def kernel(x_ref, o_ref):\n    o_ref[...] = jnp.sum(x_ref[...], axis=1, keepdims=True)\n");
}

TEST(Body, LoopsOverRows) {
  const std::string mended =
      Mend({"D57",
            "from jax import lax\n\n\ndef kernel(x_ref, o_ref):\n"
            "    _, ys = «lax.scan(lambda c, v: (c + v, c + v), start, x_ref[...])»\n    o_ref[...] = ys\n"});
  EXPECT_EQ(
      mended,
      "from jax import lax\n\n\ndef kernel(x_ref, o_ref):\n    step = lambda c, v: (c + v, c + v)\n\n"
      "    def scan_row(row, carry):\n        carry, value = step(carry, x_ref[row])\n        o_ref[row] = value\n"
      "        return carry\n\n    lax.fori_loop(0, x_ref.shape[0], scan_row, start)\n");
}

TEST(Body, PrintsIndicesAndCheckpoints) {
  EXPECT_EQ(Mend({"D58", "def k(x_ref):\n    «pl.debug_print(\"x {}\", x_ref[0, 0])»\n"}),
            "def k(x_ref):\n    pl.debug_print(\"x\", x_ref[0, 0])\n");
  EXPECT_EQ(
      Mend({"D77",
            "def k(x_ref, o_ref):\n    v = x_ref[...]\n    def body(i, c):\n        return c + «v[i]»\n    f(body)\n"}),
      "def k(x_ref, o_ref):\n    v = x_ref[...]\n    def body(i, c):\n        return c + x_ref[i]\n    f(body)\n");
  const std::string imports = "import jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n";
  EXPECT_EQ(
      Mend({"D77", imports + "def k(i_ref, x_ref, o_ref):\n    o_ref[...] = «lax.dynamic_slice(x_ref[...], (i_ref[0], "
                             "0), (8, 128))»\n"}),
      imports +
          "def k(i_ref, x_ref, o_ref):\n    o_ref[...] = x_ref[pl.ds(jnp.clip(i_ref[0], 0, x_ref.shape[0] - 8), 8), "
          "pl.ds(0, 128)]\n");
  EXPECT_EQ(Mend({"D110", "def k(x_ref, o_ref):\n    o_ref[...] = «jax.checkpoint(f)(x_ref[...])»\n"}),
            "def k(x_ref, o_ref):\n    o_ref[...] = f(x_ref[...])\n");
  EXPECT_EQ(Mend({"D110", "@jax.checkpoint\ndef f(x):\n    return «x * 2»\n"}), "def f(x):\n    return x * 2\n");
}

TEST(Operations, HelpersStandInFrontOfTheFunction) {
  const std::string mended =
      Mend({"D100",
            "import jax\nimport jax.numpy as jnp\n\n\n# kernelwright: x=f32[8,128]\ndef f(x):\n"
            "    def kernel(x_ref, o_ref):\n        o_ref[...] = «jnp.cumsum(x_ref[...], axis=-1)»\n"});
  EXPECT_NE(mended.find("jnp\n\n\ndef _cumsum(x, axis=-1):\n"), std::string::npos) << mended;
  EXPECT_NE(mended.find("    return total.astype(x.dtype)\n\n\n# kernelwright: x=f32[8,128]\ndef f(x):"),
            std::string::npos);
  EXPECT_NE(mended.find("o_ref[...] = _cumsum(x_ref[...], axis=-1)"), std::string::npos);
  EXPECT_NE(mended.find("jax.lax.broadcasted_iota"), std::string::npos);
  // Flattened: another function.
  EXPECT_EQ(Mend({"D100", "def f(x_ref):\n    return «jnp.cumsum(x_ref[...])»\n"}), "none");
}

TEST(Operations, HelpersOfHelpersAndGelu) {
  const std::string elu = Mend(
      {"D105",
       "import jax\nimport jax.numpy as jnp\n\ndef k(x_ref, o_ref):\n    o_ref[...] = «jax.nn.elu(x_ref[...])»\n"});
  EXPECT_NE(elu.find("def _expm1(x)"), std::string::npos);
  EXPECT_NE(elu.find("def _elu(x, alpha=1.0)"), std::string::npos);
  EXPECT_LT(elu.find("def _expm1(x)"), elu.find("def _elu("));
  const std::string gelu = Mend({"D104",
                                 "import jax\nimport jax.numpy as jnp\n\ndef k(x_ref, o_ref):\n"
                                 "    o_ref[...] = «jax.nn.gelu(x_ref[...], approximate=False)»\n"});
  EXPECT_NE(gelu.find("o_ref[...] = _exact_gelu(x_ref[...])\n"), std::string::npos) << gelu;
  EXPECT_EQ(Mend({"D104", "def k(x_ref, o_ref):\n    o_ref[...] = «jax.nn.gelu(x_ref[...])»\n"}), "none");
}

TEST(Operations, SelectsInsteadOfScattering) {
  const std::string imports = "import jax.numpy as jnp\nfrom jax import lax\n";
  EXPECT_EQ(
      Mend({"D102", imports + "def k(x_ref, o_ref):\n    o_ref[...] = «x_ref[...].at[0, :].set(0.)»\n"}),
      imports +
          "def k(x_ref, o_ref):\n    o_ref[...] = jnp.where(lax.broadcasted_iota(jnp.int32, x_ref.shape, 0) == 0, 0., "
          "x_ref[...])\n");
  EXPECT_EQ(Mend({"D102", imports + "def k(x_ref, o_ref):\n    o_ref[...] = «x_ref[...].at[:, 1].set(v)»\n"}), "none");
}

TEST(Operations, IntegerIota) {
  const std::string imports = "import jax.numpy as jnp\n";
  EXPECT_EQ(Mend({"D112", imports + "y = «jnp.arange(128, dtype=jnp.float32)»\n"}),
            imports + "y = jnp.arange(128, dtype=jnp.int32).astype(jnp.float32)\n");
  EXPECT_EQ(Mend({"D112", imports + "y = «jnp.arange(8.0)»\n"}),
            imports + "y = jnp.arange(8, dtype=jnp.int32).astype(jnp.float32)\n");
  EXPECT_EQ(Mend({"D112", imports + "y = «jnp.arange(8.5)»\n"}), "none");
}

TEST(Types, ProductsAccumulateIn32Bits) {
  const std::string imports = "import jax.numpy as jnp\n";
  EXPECT_EQ(
      Mend({"D124", imports + "def k(x_ref, y_ref, o_ref):\n    o_ref[...] = «jnp.dot(x_ref[...], y_ref[...])»\n"}),
      imports +
          "def k(x_ref, y_ref, o_ref):\n    o_ref[...] = jnp.dot(x_ref[...], y_ref[...], "
          "preferred_element_type=jnp.float32).astype(jnp.bfloat16)\n");
  EXPECT_EQ(
      Mend({"D124",
            imports +
                "def k(x_ref, y_ref, o_ref):\n    o_ref[...] = (x_ref[...] «@» y_ref[...]).astype(jnp.float32)\n"}),
      imports +
          "def k(x_ref, y_ref, o_ref):\n    o_ref[...] = (jnp.matmul(x_ref[...], y_ref[...], "
          "preferred_element_type=jnp.float32)).astype(jnp.float32)\n");
  EXPECT_EQ(Mend({"D123", "y = «jnp.dot(a, b, precision=lax.Precision.HIGHEST, preferred_element_type=F32)»\n"}),
            "y = jnp.dot(a, b, preferred_element_type=F32)\n");
  EXPECT_EQ(Mend({"D125", "y = «jnp.dot(a, b, precision=lax.Precision.HIGH)»\n"}),
            "y = jnp.dot(a, b, precision=lax.Precision.HIGHEST)\n");
}

TEST(Types, ComputesWide) {
  const std::string imports = "import jax.numpy as jnp\n";
  EXPECT_EQ(Mend({"D132",
                  imports + "def k(x_ref):\n    return «x_ref[...] * x_ref[...]»\n",
                  "",
                  {WithOperation("mul", "uint8", 3)}}),
            imports +
                "def k(x_ref):\n    return (x_ref[...].astype(jnp.int32) * "
                "x_ref[...].astype(jnp.int32)).astype(jnp.uint8)\n");
  EXPECT_EQ(Mend({"D134", imports + "y = «jnp.log2(x)»\n"}),
            imports + "y = jnp.log2(x.astype(jnp.float32)).astype(jnp.bfloat16)\n");
  EXPECT_EQ(Mend({"D135", imports + "y = «jnp.argmax(x, axis=1)»\n", "", {WithOperation("argmax", "bfloat16", 2)}}),
            imports + "y = jnp.argmax(x.astype(jnp.float32), axis=1)\n");
  const std::string exact = Mend(
      {"D135", imports + "y = «jnp.argmax(x, axis=1, keepdims=True)»\n", "", {WithOperation("argmax", "int32", 2)}});
  EXPECT_NE(exact.find("y = _first_max(x, axis=1, keepdims=True)"), std::string::npos) << exact;
  EXPECT_EQ(
      Mend({"D136", imports + "y = «jnp.sum(x, axis=1, keepdims=True, dtype=jnp.int8)»\n", "Reductions over int8"}),
      imports + "y = jnp.sum(x.astype(jnp.int32), axis=1, keepdims=True).astype(jnp.int8)\n");
  EXPECT_EQ(Mend({"D137", imports + "o_ref[0] = «jnp.sum(x)»\n"}),
            imports + "o_ref[0] = jnp.sum(x.astype(jnp.float32))\n");
}

TEST(Types, Masks) {
  const std::string imports = "import jax.numpy as jnp\n";
  EXPECT_EQ(Mend({"D138", imports + "y = «mask[:, None]».astype(F32)\n"}),
            imports + "y = (mask.astype(jnp.int32)[:, None] != 0).astype(F32)\n");
  EXPECT_EQ(
      Mend({"D139",
            imports +
                "def k(x_ref, o_ref):\n    def body(state):\n        return state[0] + 1, jnp.logical_not(state[1])\n"
                "    _, mask = «lax.while_loop(cond, body, (0, x_ref[...] > 0))»\n    o_ref[...] = mask\n"}),
      imports +
          "def k(x_ref, o_ref):\n    def body(state):\n        return state[0] + 1, (jnp.logical_not((state[1] != "
          "0))).astype(jnp.int32)\n    _, mask = lax.while_loop(cond, body, (0, (x_ref[...] > "
          "0).astype(jnp.int32)))\n    mask = mask != 0\n    o_ref[...] = mask\n");
}

}  // namespace
}  // namespace kernelwright::diagnose
