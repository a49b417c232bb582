#include "daemon/cost/index_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "daemon/cost/kernel_test_util.h"

namespace kernelwright::cost {
namespace {

using ::testing::HasSubstr;

std::vector<int64_t> At(const IndexMap& map, std::vector<int64_t> point) {
  std::vector<int64_t> scratch;
  std::vector<int64_t> out(map.outputs());
  EXPECT_TRUE(map.Evaluate(point, &scratch, out));
  return out;
}

// Walks the grid point by point: the reference of CountBlockChanges.
int64_t SlowCount(const IndexMap& map, const std::vector<int64_t>& grid) {
  std::vector<int64_t> point(grid.size(), 0);
  std::vector<int64_t> last;
  int64_t changes = 0;
  while (true) {
    std::vector<int64_t> now = At(map, point);
    if (now != last) ++changes;
    last = now;
    size_t axis = grid.size();
    while (axis-- > 0) {
      if (++point[axis] < grid[axis]) break;
      point[axis] = 0;
    }
    if (axis == static_cast<size_t>(-1)) return changes;
  }
}

// jnp's floor division: a truncating division, corrected when the signs differ and there is a remainder.
Operation FloorDivide(uint32_t a, int64_t divisor, uint32_t output, uint32_t id) {
  Graph body;
  body.inputs = {{id, TypeOf("int32", {}), ""}, {id + 1, TypeOf("int32", {}), ""}};
  const auto v = [&](uint32_t i) { return ValueOperand(id + i); };
  body.operations = {IntOp("div", {v(0), v(1)}, id + 2),
                     IntOp("sign", {v(0)}, id + 3),
                     IntOp("sign", {v(1)}, id + 4),
                     IntOp("ne", {v(3), v(4)}, id + 5, "bool"),
                     IntOp("rem", {v(0), v(1)}, id + 6),
                     IntOp("ne", {v(6), IntOperand(0)}, id + 7, "bool"),
                     IntOp("and", {v(5), v(7)}, id + 8, "bool"),
                     IntOp("sub", {v(2), IntOperand(1)}, id + 9),
                     IntOp("select_n", {v(8), v(2), v(9)}, id + 10)};
  body.outputs = {v(10)};
  Operation call = IntOp("pjit", {ValueOperand(a), IntOperand(divisor)}, output);
  call.regions = {body};
  call.region_names = {"jaxpr"};
  return call;
}

TEST(IndexMapTest, PicksAndLiterals) {
  const auto map = IndexMap::Compile(PickMap(3, {0, -1, 2}), 3);
  ASSERT_TRUE(map) << map.error().ToString();
  EXPECT_EQ(At(*map, {4, 5, 6}), (std::vector<int64_t>{4, 0, 6}));
  ASSERT_NE(map->affine(), nullptr);
  EXPECT_FALSE(map->affine()->is_constant());
  EXPECT_TRUE(IndexMap::Compile(PickMap(3, {-1, -1}), 3)->affine()->is_constant());
}

TEST(IndexMapTest, FloorDivisionThroughACall) {
  Graph graph = PickMap(1, {});
  graph.operations = {IntOp("sub", {ValueOperand(0), IntOperand(8)}, 50), FloorDivide(50, 3, 51, 100)};
  graph.outputs = {ValueOperand(51)};
  const auto map = IndexMap::Compile(graph, 1);
  ASSERT_TRUE(map) << map.error().ToString();
  EXPECT_EQ(map->affine(), nullptr);
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(At(*map, {i})[0], static_cast<int64_t>(std::floor(static_cast<double>(i - 8) / 3))) << i;
  }
  const std::vector<int64_t> grid = {20};
  EXPECT_EQ(*CountBlockChanges(*map, grid), SlowCount(*map, grid));
}

TEST(IndexMapTest, AffineCountsEqualAWalk) {
  uint64_t state = 7;
  const auto next = [&](int64_t n) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(n));
  };
  for (int round = 0; round < 300; ++round) {
    const std::vector<int64_t> grid = {1 + next(4), 1 + next(4), 1 + next(5)};
    Graph graph = PickMap(3, {});
    uint32_t id = 10;
    for (int output = 0; output < 2; ++output) {
      Operand sum = IntOperand(next(3));
      for (uint32_t axis = 0; axis < 3; ++axis) {
        graph.operations.push_back(IntOp("mul", {ValueOperand(axis), IntOperand(next(5) - 2)}, id));
        graph.operations.push_back(IntOp(next(2) == 0 ? "add" : "sub", {sum, ValueOperand(id)}, id + 1));
        sum = ValueOperand(id + 1);
        id += 2;
      }
      graph.outputs.push_back(sum);
    }
    const auto map = IndexMap::Compile(graph, 3);
    ASSERT_TRUE(map);
    ASSERT_NE(map->affine(), nullptr);
    EXPECT_EQ(*CountBlockChanges(*map, grid), SlowCount(*map, grid));
  }
}

TEST(IndexMapTest, MatmulOperandsAreClosedForm) {
  const std::vector<int64_t> grid = {32, 32, 32};
  EXPECT_EQ(*CountBlockChanges(*IndexMap::Compile(PickMap(3, {0, 2}), 3), grid), 32 * 32 * 32);
  EXPECT_EQ(*CountBlockChanges(*IndexMap::Compile(PickMap(3, {0, 1}), 3), grid), 32 * 32);
  EXPECT_EQ(*CountBlockChanges(*IndexMap::Compile(PickMap(3, {0, -1}), 3), grid), 32);
  EXPECT_EQ(*CountBlockChanges(*IndexMap::Compile(PickMap(3, {-1, -1}), 3), grid), 1);
  const std::vector<int64_t> one_k = {32, 32, 1};
  EXPECT_EQ(*CountBlockChanges(*IndexMap::Compile(PickMap(3, {0, 2}), 3), one_k), 32) << "the block stays over j";
}

TEST(IndexMapTest, RefusesWhatItCannotKnow) {
  Graph prefetch = PickMap(1, {});
  prefetch.inputs.push_back({1, TypeOf("int32", {8}, "smem"), ""});
  prefetch.operations = {IntOp("get", {ValueOperand(1), ValueOperand(0)}, 2)};
  prefetch.outputs = {ValueOperand(2)};
  EXPECT_THAT(IndexMap::Compile(prefetch, 1).error().ToString(), HasSubstr("'get' is not known"));
  Graph direct = PickMap(1, {});
  direct.inputs.push_back({1, TypeOf("int32", {}, "smem"), ""});
  direct.outputs = {ValueOperand(1)};
  EXPECT_THAT(IndexMap::Compile(direct, 1).error().ToString(), HasSubstr("scalar-prefetch"));
  Graph floating = PickMap(1, {});
  floating.operations = {IntOp("convert_element_type", {ValueOperand(0)}, 2, "float32")};
  floating.outputs = {ValueOperand(2)};
  EXPECT_FALSE(IndexMap::Compile(floating, 1));
  EXPECT_FALSE(IndexMap::Compile(PickMap(1, {0}), 2)) << "fewer inputs than axes";
  const auto map = IndexMap::Compile(PickMap(1, {0}), 1);
  EXPECT_FALSE(CountBlockChanges(*map, std::vector<int64_t>{-1}));
  Graph zero = PickMap(1, {});
  zero.operations = {IntOp("rem", {IntOperand(5), ValueOperand(0)}, 2)};
  zero.outputs = {ValueOperand(2)};
  EXPECT_FALSE(CountBlockChanges(*IndexMap::Compile(zero, 1), std::vector<int64_t>{4}));
}

TEST(IndexMapTest, WrapsLikeTheDevice) {
  Graph graph = PickMap(1, {});
  graph.operations = {IntOp("mul", {ValueOperand(0), IntOperand(0x7fffffff)}, 2)};
  graph.outputs = {ValueOperand(2)};
  EXPECT_EQ(At(*IndexMap::Compile(graph, 1), {2})[0], -2);
}

}  // namespace
}  // namespace kernelwright::cost
