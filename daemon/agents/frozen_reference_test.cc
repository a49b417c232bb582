#include "daemon/agents/frozen_reference.h"

#include "gtest/gtest.h"

namespace kernelwright::agents {
namespace {

FrozenReference Example() {
  FrozenReference frozen;
  frozen.original = {"/u/k.py", "f", {{"/u/k.py", "def f(x):\n  return x\n"}, {"/u/h.py", "# \xe4 latin-1\n"}}};
  frozen.reference = frozen.original;
  frozen.inputs = *kernels::ParseInputs("x=bf16[4096,4096] n=8 ids=i32[64]{0..4095} key=prng", "test");
  frozen.inputs_origin = "comment";
  frozen.ladder = {{"reduced", *kernels::ParseInputs("x=bf16[256,256] n=8 ids=i32[64]{0..4095} key=prng", "test")}};
  frozen.seeds = {1, 0xFFFFFFFFFFFFFFFFull};
  return frozen;
}

TEST(FrozenReference, RoundTripsThroughItsJson) {
  const FrozenReference frozen = Example();
  auto read = FrozenFromJson(FrozenToJson(frozen));
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(*read, frozen);
  EXPECT_EQ(FrozenHash(*read), FrozenHash(frozen));
}

TEST(FrozenReference, HashCoversEveryPart) {
  const FrozenReference base = Example();
  FrozenReference other = base;
  other.seeds[0] = 2;
  EXPECT_NE(FrozenHash(other), FrozenHash(base));
  other = base;
  other.tolerance.reference_factor = 3;
  EXPECT_NE(FrozenHash(other), FrozenHash(base));
  other = base;
  other.reference.files[0].text += "#";
  EXPECT_NE(FrozenHash(other), FrozenHash(base));
  other = base;
  other.ladder.clear();
  EXPECT_NE(FrozenHash(other), FrozenHash(base));
}

TEST(FrozenReference, DamagedRecordIsAnError) {
  EXPECT_FALSE(FrozenFromJson("{}"));
  EXPECT_FALSE(FrozenFromJson("{\"original\": 3"));
}

}  // namespace
}  // namespace kernelwright::agents
