// The lints of blocks, grid and memory on hand-made calls: what is said, in which words, and that legal calls give
// nothing. Agreement with the compiler: random_blocks_test.cc.
#include "daemon/diagnose/block_lint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "daemon/kernels/test_calls.h"

namespace kernelwright::diagnose {
namespace {

using kernels::kConstant;
using kernels::MakeBlock;
using kernels::MakeMatmul;

const cost::Chip& ChipNamed(const std::string& name) {
  static const cost::ChipTable table = [] {
    std::ifstream in(std::filesystem::path(KW_SOURCE_DIR) / "agents/chips.json");
    std::stringstream text;
    text << in.rdbuf();
    return *cost::ParseChips(text.str());
  }();
  return *table.Find(name);
}

PallasCall Copy(const std::vector<int64_t>& dims, const std::vector<int64_t>& block, std::vector<int64_t> grid,
                const std::vector<int>& axes) {
  PallasCall call;
  call.name = "copy";
  call.grid = std::move(grid);
  call.blocks.push_back(MakeBlock("x_ref", "float32", dims, block, axes, call.grid.size()));
  call.blocks.push_back(MakeBlock("o_ref", "float32", dims, block, axes, call.grid.size(), true));
  return call;
}

std::string Ids(const PallasCall& call, const std::string& chip = "v6e") {
  std::string ids;
  for (const Diagnostic& d : LintBlocks({call}, {}, ChipNamed(chip))) {
    EXPECT_FALSE(d.message.empty() || d.cause.empty() || d.advice.empty()) << d.id;
    EXPECT_EQ(d.chips, std::vector<std::string>{chip});
    EXPECT_EQ(d.stage, Stage::kBlocks);
    ids += (ids.empty() ? "" : " ") + d.id;
  }
  return ids;
}

TEST(BlockLint, Shapes) {
  EXPECT_EQ(Ids(Copy({64, 1000}, {8, 128}, {8, 8}, {0, 1})), "");
  EXPECT_EQ(Ids(Copy({64, 1000}, {4, 100}, {16, 10}, {0, 1})), "D01");
  EXPECT_EQ(Ids(Copy({16, 128}, {1, 128}, {16}, {0, kConstant})), "D02");
  EXPECT_EQ(Ids(Copy({1000}, {100}, {10}, {0})), "D03");
  EXPECT_EQ(Ids(Copy({1024}, {128}, {8}, {0})), "");
  const auto found = LintBlocks({Copy({64, 1000}, {4, 100}, {16, 10}, {0, 1})}, {}, ChipNamed("v6e"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(
      found[0].message,
      "block (4, 100) of x_ref and o_ref, an array (64, 1000) of float32: the second-last 4 is neither a multiple "
      "of 8 nor the whole 64, and the last dimension 100 is neither a multiple of 128 nor the whole 1000");
  EXPECT_EQ(found[0].advice, "End the block in (8, 128).");
}

TEST(BlockLint, Grid) {
  EXPECT_EQ(Ids(Copy({16, 128}, {8, 128}, {1}, {0, kConstant})), "D17");
  EXPECT_EQ(Ids(Copy({16, 128}, {8, 128}, {3}, {0, kConstant})), "D14 D14");
  EXPECT_EQ(Ids(Copy({20, 128}, {8, 128}, {3}, {0, kConstant})), "");
  PallasCall aliased = Copy({16, 128}, {8, 128}, {1}, {0, kConstant});
  aliased.aliases = {{0, 0}};
  EXPECT_EQ(Ids(aliased), "");
  PallasCall dynamic = Copy({16, 128}, {8, 128}, {-1}, {0, kConstant});
  EXPECT_EQ(Ids(dynamic), "");
  PallasCall without = Copy({16, 128}, {8, 128}, {}, {kConstant, kConstant});
  EXPECT_EQ(Ids(without), "D22 D22");
  PallasCall semantics = Copy({16, 256}, {8, 128}, {2, 2}, {0, 1});
  semantics.dimension_semantics = {"parallel"};
  EXPECT_EQ(Ids(semantics), "D13");
}

TEST(BlockLint, Memory) {
  EXPECT_EQ(Ids(MakeMatmul(4096, 4096, 4096, 512, 512, 512)), "");
  EXPECT_EQ(Ids(MakeMatmul(8192, 8192, 8192, 2048, 2048, 2048)), "D90");
  PallasCall raised = MakeMatmul(8192, 8192, 8192, 2048, 2048, 2048);
  raised.vmem_limit_bytes = int64_t{100} << 20;
  EXPECT_EQ(Ids(raised), "");
  EXPECT_EQ(Ids(raised, "tpu7x"), "D93");  // 64 MiB in 64 MiB: the compiler decides
  raised.scratch[0].dims = {4096, 2048};
  EXPECT_EQ(Ids(raised, "tpu7x"), "D93 D91");
  PallasCall scratch = Copy({16, 128}, {8, 128}, {2}, {0, kConstant});
  TensorType large;
  large.dtype = "float32";
  large.dims = {8192, 8192};
  scratch.scratch.push_back(large);
  EXPECT_EQ(Ids(scratch), "D92");
  PallasCall triple = MakeMatmul(4096, 4096, 4096, 512, 512, 512);
  triple.blocks[0].buffers = 3;
  EXPECT_EQ(Ids(triple), "D94");
  PallasCall empty = Copy({0, 128}, {0, 128}, {1}, {kConstant, kConstant});
  EXPECT_EQ(Ids(empty).substr(0, 3), "D83");
  PallasCall scalars = Copy({16, 128}, {8, 128}, {2}, {0, kConstant});
  TensorType table;
  table.dtype = "int32";
  table.dims = {300000};
  table.memory_space = "smem";
  scalars.scratch.push_back(table);
  EXPECT_EQ(Ids(scalars), "D82");
}

TEST(BlockLint, NamesWhatIsLarge) {
  const auto found = LintBlocks({MakeMatmul(8192, 8192, 8192, 2048, 2048, 2048)}, {}, ChipNamed("v6e"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].message,
            "matmul needs 64.1 MiB of VMEM, the default limit of v6e is 32 MiB: x_ref 16 MiB (2 buffers), y_ref 16 MiB "
            "(2 buffers), o_ref 16 MiB (2 buffers)");
}

TEST(BlockLint, BlockThatStaysHasOneBuffer) {
  // 20 MiB twice would not fit; an axis of one step changes nothing.
  EXPECT_EQ(Ids(Copy({40960, 128}, {40960, 128}, {1}, {0, kConstant}), "v6e"), "D90");
  EXPECT_EQ(Ids(Copy({20480, 128}, {20480, 128}, {1}, {0, kConstant}), "v6e"), "");
}

}  // namespace
}  // namespace kernelwright::diagnose
