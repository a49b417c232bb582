#include "daemon/kernels/tunables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/base/hash.h"

namespace kernelwright::kernels {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<TunableSite> Find(const SourceFile& file, const std::string& entry) {
  const auto function = file.FindFunction(entry);
  EXPECT_TRUE(function.has_value());
  return FindTunableSites({{&file, false, {}}}, file, *function);
}

// "priority kind name=text"
std::vector<std::string> Summary(const std::vector<TunableSite>& sites, int max_priority = 2) {
  std::vector<std::string> lines;
  for (const auto& site : sites) {
    if (site.priority > max_priority) continue;
    lines.push_back(std::to_string(site.priority) + " " + SiteKindName(site.kind) + " " + site.name + "=" + site.text);
  }
  return lines;
}

constexpr char kMatmul[] = R"py(
import functools
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

BK = 4 * 128
UNUSED = 77

class Config:
    block: int = 256
    other = 5

def kernel(x_ref, y_ref, o_ref, acc_ref):
    @pl.when(pl.program_id(2) == 0)
    def _():
        acc_ref[...] = jnp.zeros((128, 128), jnp.float32)
    x = x_ref[...].sum(axis=1)
    acc_ref[...] += x.reshape(x.shape[1], 2)

def unrelated(x, block=99):
    return x

@functools.partial(jax.jit, static_argnames=("bm",))
def matmul(x, y, *, bm=128, shape: tuple = (64, 32), flag=True):
    bn, note = 256, f"{x.shape[1]} ü"
    (rows := 16)
    cfg = Config()
    assert x.shape[0] % 128 == 0
    return pl.pallas_call(
        kernel,
        grid=(x.shape[0] // bm, pl.cdiv(y.shape[1], 128), x.shape[1] // BK),
        in_specs=[pl.BlockSpec((128, cfg.block), lambda i, j, k: (i + 1, k * 2)),
                  pl.BlockSpec(block_shape=(BK, 512), index_map=lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((None, -1, 1024)),
        scratch_shapes=[pltpu.VMEM((128, 96), jnp.float32)],
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=48 << 20),
    )(x, y)
)py";

TEST(Tunables, ListsPlacesWithTheirMeaning) {
  const SourceFile file("k.py", kMatmul);
  const auto sites = Find(file, "matmul");
  EXPECT_THAT(Summary(sites, 0),
              ElementsAre("0 module constant BK=4 * 128", "0 module constant block=256", "0 parameter default bm=128",
                          "0 assignment bn=256", "0 assignment rows=16", "0 grid =128", "0 block shape =128",
                          "0 block shape =512", "0 block shape =1024", "0 scratch shape =128", "0 scratch shape =96"));
  EXPECT_THAT(Summary(sites, 2), Contains("1 parameter default shape[1]=32"));
  EXPECT_THAT(Summary(sites, 2), Contains("2 expression =128"));
  EXPECT_THAT(Summary(sites, 3), Contains("3 expression vmem_limit_bytes=48 << 20"));
  EXPECT_THAT(Summary(sites, 3), Contains("3 expression =2"));
  EXPECT_THAT(Summary(sites, 3), Not(Contains(HasSubstr("99"))));
  EXPECT_THAT(Summary(sites, 3), Not(Contains(HasSubstr("77"))));
}

TEST(Tunables, ContextNamesTheFunction) {
  const SourceFile file("k.py", kMatmul);
  const auto sites = Find(file, "matmul");
  const auto bm = std::find_if(sites.begin(), sites.end(), [](const auto& site) { return site.name == "bm"; });
  ASSERT_NE(bm, sites.end());
  EXPECT_EQ(bm->context, "default of `bm` in `matmul`");
  EXPECT_EQ(bm->function, "matmul");
  EXPECT_EQ(file.text().substr(bm->range.begin, bm->range.end - bm->range.begin), "128");
}

TEST(Tunables, EditsKeepCarriageReturnsAndWideCharacters) {
  const std::string text =
      "# é\r\ndef f(x, *, bm: int = 4 * 128):\r\n\treturn pl.pallas_call(k, grid=(x // bm,))(x)\r\n";
  const SourceFile file("k.py", text);
  const auto sites = Find(file, "f");
  ASSERT_FALSE(sites.empty());
  EXPECT_EQ(sites[0].position.line, 2);
  EXPECT_EQ(sites[0].position.column, 23);
  const auto edited = ApplyEdits("k.py", text, {IntegerEdit(sites[0], 1024)});
  ASSERT_TRUE(edited.has_value());
  EXPECT_EQ(*edited, "# é\r\ndef f(x, *, bm: int = 8 * 128):\r\n\treturn pl.pallas_call(k, grid=(x // bm,))(x)\r\n");
}

TEST(Tunables, FollowsHelpersInOtherFilesAliasesPartialsAndMethods) {
  const SourceFile entry("main.py",
                         "from helpers import matmul as mm\nimport lib\n"
                         "run = functools.partial(mm, bm=512)\n"
                         "class M:\n    def __call__(self, x): return self.inner(x)\n"
                         "    def inner(self, x): return run(x)\n"
                         "def f(x):\n    return M()(x) + lib.other.work(x, 64)\n");
  const SourceFile helpers("helpers.py",
                           "def matmul(x, bm=128):\n    def spec(n=32): return n\n    return inner(x, bm)\n"
                           "def inner(x, bm, bn=256): return x\ndef no(x, bm=8): return x\n");
  const SourceFile lib("lib.py", "def work(x, block): return deco(x)\ndef deco(x, rows=24): return x\n");
  const auto function = entry.FindFunction("f");
  ASSERT_TRUE(function.has_value());
  const auto sites =
      FindTunableSites({{&entry, false, {}}, {&helpers, false, {}}, {&lib, false, {}}}, entry, *function);
  std::vector<std::string> found;
  found.reserve(sites.size());
  for (const auto& site : sites) found.push_back(site.file + ":" + site.text);
  EXPECT_THAT(found, testing::UnorderedElementsAre("main.py:512", "main.py:64", "helpers.py:128", "helpers.py:32",
                                                   "helpers.py:256", "lib.py:24"));
}

TEST(Tunables, WhatTheTraceDidNotEnterComesLater) {
  const SourceFile file("k.py",
                        "def f(x): return g(x) + h(x)\ndef g(x, bm=128): return x\ndef h(x, bm=256): return x\n");
  const auto function = file.FindFunction("f");
  ASSERT_TRUE(function.has_value());
  const auto sites = FindTunableSites({{&file, true, {"f", "h"}}}, file, *function);
  EXPECT_THAT(Summary(sites), ElementsAre("0 parameter default bm=256", "1 parameter default bm=128"));
}

TEST(Tunables, LibraryCallWithBlockArguments) {
  const SourceFile file(
      "k.py",
      "def f(x, y):\n    return ops.matmul(x, y, block_shape=(256, 128), block_k=64,\n"
      "                      opts={'block_q': 32}, sizes=BlockSizes(block_b=1, block_k_major=128))\n");
  EXPECT_THAT(Summary(Find(file, "f")),
              ElementsAre("0 argument block_shape[0]=256", "0 argument block_shape[1]=128", "0 argument block_k=64",
                          "0 argument block_q=32", "0 argument block_k_major=128", "1 argument block_b=1"));
}

}  // namespace
}  // namespace kernelwright::kernels
