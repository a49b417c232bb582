#include "daemon/cost/vmem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/cost/cost_test_util.h"
#include "daemon/cost/kernel_test_util.h"

namespace kernelwright::cost {
namespace {

using ::testing::HasSubstr;
using Dims = std::vector<int64_t>;

// Sizes that the compiler gave to windows (one buffer), the same on v5e and tpu7x.
TEST(VmemTest, WindowsMatchTheCompilersAllocations) {
  const Chip& chip = ShippedChip("v5e");
  const auto bytes = [&](Dims dims, int bits) { return PaddedWindowBytes(dims, bits, chip); };
  EXPECT_EQ(bytes({8, 256}, 32), 16384 / 2);
  EXPECT_EQ(bytes({1, 256}, 32), 2048 / 2);
  EXPECT_EQ(bytes({4, 256}, 32), 8192 / 2);
  EXPECT_EQ(bytes({4, 2, 128}, 32), 8192 / 2);
  EXPECT_EQ(bytes({2048}, 32), 16384 / 2);
  EXPECT_EQ(bytes({8, 256}, 16), 8192 / 2);
  EXPECT_EQ(bytes({16, 256}, 16), 16384 / 2);
  EXPECT_EQ(bytes({1, 256}, 16), 2048 / 2);
  EXPECT_EQ(bytes({4, 256}, 16), 4096 / 2);
  EXPECT_EQ(bytes({32, 256}, 16), 32768 / 2);
  EXPECT_EQ(bytes({8, 256}, 8), 4096 / 2);
  EXPECT_EQ(bytes({1, 256}, 8), 2048 / 2);
  EXPECT_EQ(bytes({4, 2, 128}, 8), 4096 / 2);
  EXPECT_EQ(bytes({8, 256}, 4), 2048 / 2);
  EXPECT_EQ(bytes({1, 256}, 4), 2048 / 2);
  EXPECT_EQ(bytes({4, 2, 128}, 4), 4096 / 2);
  EXPECT_EQ(bytes({2048}, 4), 2048 / 2);
  EXPECT_EQ(bytes({1, 4096}, 16), 16384) << "a single buffered row";
  EXPECT_EQ(bytes({64, 1}, 32), 64 * 128 * 4) << "one column fills all lanes";
}

TEST(VmemTest, MatmulBreakdown) {
  const Chip& chip = ShippedChip("v5e");
  const VmemUse use = ComputeVmem(MatmulCall(4096, 4096, 4096, 512, 1024, 1024), chip);
  ASSERT_EQ(use.parts.size(), 5u);
  EXPECT_EQ(use.parts[0].bytes, 2 * 512 * 1024 * 2);
  EXPECT_EQ(use.parts[1].bytes, 2 * 1024 * 1024 * 2);
  EXPECT_EQ(use.parts[2].bytes, 2 * 512 * 1024 * 2);
  EXPECT_EQ(use.parts[3].bytes, 512 * 1024 * 4);
  EXPECT_EQ(use.parts[4].bytes, 36864);
  EXPECT_EQ(use.limit, 16 << 20);
  EXPECT_TRUE(use.fits);
  EXPECT_TRUE(CheckVmem(use, chip).ok());
}

TEST(VmemTest, BuffersFollowTheIndexMap) {
  const Chip& chip = ShippedChip("v6e");
  PallasCall call = MatmulCall(1024, 1024, 1024, 256, 256, 256);
  call.blocks[0].index_map = PickMap(3, {-1, -1});
  EXPECT_EQ(ComputeVmem(call, chip).parts[0].buffers, 1) << "a constant block is brought in once";
  call.blocks[1].buffers = 1;
  EXPECT_EQ(ComputeVmem(call, chip).parts[1].buffers, 1) << "pl.Buffered(1)";
  EXPECT_EQ(ComputeVmem(call, chip).parts[2].buffers, 2);
  call.grid = {};
  for (BlockMapping& block : call.blocks) block.index_map = PickMap(0, {-1, -1});
  EXPECT_EQ(ComputeVmem(call, chip).parts[2].buffers, 1) << "no grid";
  call.blocks[0].memory_space = "any";
  EXPECT_EQ(ComputeVmem(call, chip).parts[0].what, "y_ref") << "left in place";
  call.blocks[1].memory_space = "smem";
  EXPECT_GT(ComputeVmem(call, chip).smem_total, 0);
  call.blocks[2].array.dtype = "key<fry>";
  EXPECT_EQ(ComputeVmem(call, chip).unknown, (std::vector<std::string>{"o_ref"}));
}

TEST(VmemTest, LimitsOfTheChipAndTheKernel) {
  PallasCall call = MatmulCall(8192, 8192, 8192, 1024, 1024, 1024);
  const VmemUse v5e = ComputeVmem(call, ShippedChip("v5e"));
  EXPECT_FALSE(v5e.fits) << "16 MiB by default";
  const Status status = CheckVmem(v5e, ShippedChip("v5e"));
  EXPECT_EQ(status.kind(), ErrorKind::kUserCode);
  EXPECT_THAT(status.ToString(), HasSubstr("16.04 MiB of VMEM, v5e allows 16.00 MiB (limit)"));
  EXPECT_THAT(status.ToString(), HasSubstr("x_ref 4.00 MiB"));
  EXPECT_THAT(status.remedy(), HasSubstr("vmem_limit_bytes"));
  EXPECT_TRUE(ComputeVmem(call, ShippedChip("v6e")).fits) << "32 MiB by default";
  call.vmem_limit_bytes = 60 << 20;
  EXPECT_TRUE(ComputeVmem(call, ShippedChip("v5e")).fits);
  call.vmem_limit_bytes = int64_t{1} << 30;
  const VmemUse above = ComputeVmem(call, ShippedChip("tpu7x"));
  EXPECT_TRUE(above.limit_above_physical);
  EXPECT_TRUE(above.fits);
}

std::optional<std::string> Illegal(const Dims& array, const Dims& block, const std::string& dtype = "float32") {
  const Graph map = PickMap(array.size(), std::vector<int>(array.size(), -1));
  return BlockIllegal(Blocked("x", TypeOf(dtype, array), block, map), ShippedChip("v5e"));
}

TEST(BlockRuleTest, LastTwoDimensions) {
  EXPECT_FALSE(Illegal({256, 256}, {8, 128}));
  EXPECT_FALSE(Illegal({256, 256}, {8, 256}));
  EXPECT_FALSE(Illegal({250, 250}, {250, 250})) << "whole dimensions";
  EXPECT_FALSE(Illegal({4, 256, 256}, {3, 16, 128})) << "leading dimensions are free";
  EXPECT_FALSE(Illegal({1000, 256}, {8, 128}, "bfloat16")) << "8 rows are legal for every type";
  EXPECT_THAT(Illegal({256, 256}, {4, 128}).value_or(""), HasSubstr("not a multiple of 8"));
  EXPECT_THAT(Illegal({256, 256}, {8, 64}).value_or(""), HasSubstr("not a multiple of 128"));
  EXPECT_TRUE(Illegal({256, 256}, {0, 128}));
  EXPECT_TRUE(Illegal({256, 256}, {128}));
}

TEST(BlockRuleTest, SqueezedDimensions) {
  const Chip& chip = ShippedChip("v5e");
  BlockMapping block = Blocked("x", TypeOf("float32", {4, 64, 256}), {1, 32, 256}, PickMap(3, {0, 1, 2}));
  block.block[0].kind = BlockDim::Kind::kSqueezed;
  EXPECT_FALSE(BlockIllegal(block, chip));
  block = Blocked("x", TypeOf("float32", {64, 4, 256}), {8, 1, 256}, PickMap(3, {0, 1, 2}));
  block.block[1].kind = BlockDim::Kind::kSqueezed;
  EXPECT_TRUE(BlockIllegal(block, chip)) << "the compiler refuses a squeezed second-last dimension of 4";
}

TEST(BlockRuleTest, OneDimension) {
  EXPECT_FALSE(Illegal({1000}, {1000}));
  EXPECT_FALSE(Illegal({8192}, {1024}));
  EXPECT_FALSE(Illegal({8192}, {3072}));
  EXPECT_FALSE(Illegal({8192}, {128}));
  EXPECT_TRUE(Illegal({8192}, {64}));
  EXPECT_TRUE(Illegal({8192}, {384}));
  EXPECT_TRUE(Illegal({8192}, {128}, "bfloat16")) << "packed: 256 at least";
  EXPECT_FALSE(Illegal({8192}, {256}, "bfloat16"));
}

TEST(BlockRuleTest, WholeKernels) {
  const Chip& chip = ShippedChip("v5e");
  PallasCall call = MatmulCall(4096, 4096, 4096, 128, 128, 128);
  EXPECT_TRUE(CheckBlocks(call, chip).ok());
  call.blocks[1].block[1].size = 64;
  const Status status = CheckBlocks(call, chip);
  EXPECT_THAT(status.ToString(), HasSubstr("mm, y_ref"));
  EXPECT_EQ(status.kind(), ErrorKind::kUserCode);
  EXPECT_FALSE(BlockWastesTiles(call.blocks[0], chip));
  call.blocks[0].block[0].size = 8;
  EXPECT_TRUE(BlockWastesTiles(call.blocks[0], chip)) << "8 rows of bfloat16 fill half a tile";
}

}  // namespace
}  // namespace kernelwright::cost
