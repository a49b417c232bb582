#include "daemon/diagnose/locate_call.h"

#include <gtest/gtest.h>

#include <string>

#include "daemon/kernels/tree.h"

namespace kernelwright::diagnose {
namespace {

using kernels::Tree;

// Text of the BlockSpec of an operand of the only pallas_call of a file.
std::string SpecText(const std::string& file, const std::string& operand) {
  const Tree tree(file);
  const auto sites = FindPallasCallSites(tree);
  if (sites.size() != 1) return "sites: " + std::to_string(sites.size());
  return std::string(sites.front().BlockSpec(*ParseOperandPath(operand)).text());
}

TEST(PallasCallSite, SpecsInTheCall) {
  const std::string file =
      "f = pl.pallas_call(k, in_specs=[pl.BlockSpec(a), pl.BlockSpec(b)], out_specs=pl.BlockSpec(c))";
  EXPECT_EQ(SpecText(file, "args[1]"), "pl.BlockSpec(b)");
  EXPECT_EQ(SpecText(file, "outputs"), "pl.BlockSpec(c)");
  EXPECT_EQ(SpecText(file, "outputs[0]"), "pl.BlockSpec(c)");
}

TEST(PallasCallSite, SpecsInVariables) {
  EXPECT_EQ(
      SpecText("def f(x):\n  s = pl.BlockSpec(a)\n  l = [s, pl.BlockSpec(b)]\n  return pallas_call(k, in_specs=l)",
               "args[0]"),
      "pl.BlockSpec(a)");
  EXPECT_EQ(
      SpecText("S = BlockSpec(a)\ndef f(x):\n  return pl.pallas_call(k, in_specs=(S, S), out_specs=S)(x)", "args[1]"),
      "BlockSpec(a)");
  EXPECT_EQ(SpecText("a, b = BlockSpec(1), BlockSpec(2)\npl.pallas_call(k, in_specs=[a, b])", "args[1]"),
            "BlockSpec(2)");
}

TEST(PallasCallSite, LastBindingBeforeTheCallCounts) {
  EXPECT_EQ(
      SpecText(
          "def f():\n  s = BlockSpec(1)\n  s = BlockSpec(2)\n  r = pallas_call(k, in_specs=[s])\n  s = BlockSpec(3)",
          "args[0]"),
      "BlockSpec(2)");
}

TEST(PallasCallSite, SpecsInAGridSpec) {
  const std::string file =
      "g = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=2, in_specs=[BlockSpec(1)], out_specs=[BlockSpec(2)])\n"
      "r = pl.pallas_call(k, grid_spec=g)";
  EXPECT_EQ(SpecText(file, "args[0]"), "BlockSpec(1)");
  EXPECT_EQ(SpecText(file, "outputs[0]"), "BlockSpec(2)");
  const Tree tree(file);
  EXPECT_EQ(FindPallasCallSites(tree).front().PrefetchCount(), 2u);
}

TEST(PallasCallSite, ListsThatAreAdded) {
  EXPECT_EQ(SpecText("pl.pallas_call(k, in_specs=[BlockSpec(1)] * 2 + [BlockSpec(2)])", "args[2]"), "BlockSpec(2)");
  EXPECT_EQ(SpecText("m = [BlockSpec(1)]\npl.pallas_call(k, in_specs=[*m, BlockSpec(2)])", "args[1]"), "BlockSpec(2)");
}

TEST(PallasCallSite, ComputedListIsShownAsAWhole) {
  EXPECT_EQ(SpecText("pl.pallas_call(k, in_specs=[spec(i) for i in range(3)])", "args[2]"),
            "[spec(i) for i in range(3)]");
}

TEST(PallasCallSite, ArgumentsBehindStars) {
  EXPECT_EQ(SpecText("o = dict(in_specs=[BlockSpec(1)])\npl.pallas_call(k, **o)", "args[0]"), "BlockSpec(1)");
  EXPECT_EQ(SpecText("pl.pallas_call(k, **{'in_specs': [BlockSpec(1)]})", "args[0]"), "BlockSpec(1)");
  EXPECT_EQ(
      SpecText(
          "def call(k, **o):\n  return pl.pallas_call(k, **o)\ndef f():\n  return call(k, in_specs=[BlockSpec(7)])",
          "args[0]"),
      "BlockSpec(7)");
}

TEST(PallasCallSite, IndexMapAndKernelThroughPartial) {
  const std::string file =
      "def kernel(x_ref, o_ref): pass\ndef rows(i): return i, 0\n"
      "r = pl.pallas_call(functools.partial(kernel), in_specs=[BlockSpec((8, 128), rows)])";
  const Tree tree(file);
  const auto sites = FindPallasCallSites(tree);
  ASSERT_EQ(sites.size(), 1u);
  EXPECT_EQ(sites[0].Kernel().Field("name").text(), "kernel");
  EXPECT_EQ(PallasCallSite::IndexMap(sites[0].BlockSpecs()[0]).Field("name").text(), "rows");
}

TEST(PallasCallSite, NamesThatLeadInACircleEnd) {
  EXPECT_EQ(SpecText("a = b\nb = a\npl.pallas_call(k, in_specs=a)", "args[0]"), "a");
}

TEST(ParseOperandPath, Forms) {
  EXPECT_TRUE(ParseOperandPath("outputs")->output);
  EXPECT_EQ(ParseOperandPath("args[2][1]")->path, (std::vector<size_t>{2, 1}));
  EXPECT_EQ(ParseOperandPath("args[0]['w']")->path, (std::vector<size_t>{0}));
  EXPECT_FALSE(ParseOperandPath("x_ref"));
}

}  // namespace
}  // namespace kernelwright::diagnose
