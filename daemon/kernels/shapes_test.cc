#include "daemon/kernels/shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/kernels/program_json.h"
#include "daemon/kernels/test_calls.h"

namespace kernelwright::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<InputSpec> Inputs(const std::string& text) {
  auto inputs = ParseInputs(text, "test");
  EXPECT_TRUE(inputs.has_value()) << inputs.error().ToString();
  return *inputs;
}

// f(x, y) = matmul(x, y) below a jit.
Program MatmulProgram(const PallasCall& call) {
  Program program;
  program.front_end = "jax";
  const auto value = [&](uint32_t id, size_t block) { return GraphValue{id, call.blocks[block].array, ""}; };
  Operation kernel;
  kernel.name = "pallas_call";
  kernel.inputs = {Operand{11, {}, {}}, Operand{12, {}, {}}};
  kernel.outputs = {value(13, 2)};
  kernel.pallas.push_back(call);
  Graph inner;
  inner.inputs = {value(11, 0), value(12, 1)};
  inner.operations.push_back(kernel);
  inner.outputs = {Operand{13, {}, {}}};
  Operation jit;
  jit.name = "jit";
  jit.inputs = {Operand{1, {}, {}}, Operand{2, {}, {}}};
  jit.outputs = {value(3, 2)};
  jit.regions.push_back(inner);
  jit.region_names = {"jaxpr"};
  program.main.inputs = {value(1, 0), value(2, 1)};
  program.main.operations.push_back(jit);
  program.main.outputs = {Operand{3, {}, {}}};
  return program;
}

TEST(Shapes, DimensionsOfOneSizeAreOneClass) {
  const auto inputs = Inputs("x=bf16[4096,4096] y=bf16[4096,4096] n=4096 flag=4");
  const auto classes = DimClassesBySize(inputs, MatmulProgram(MakeMatmul(4096, 4096, 4096, 128, 256, 512)));
  ASSERT_THAT(classes, SizeIs(1));
  EXPECT_THAT(classes[0].dims, SizeIs(4));
  EXPECT_THAT(classes[0].blocks, ElementsAre(128, 256, 512));
  EXPECT_THAT(classes[0].statics, ElementsAre(2));
}

TEST(Shapes, AxesTellEqualSizesApart) {
  const auto inputs = Inputs("x=bf16[4096,4096] y=bf16[4096,4096]");
  const auto classes = DimClassesByAxis(inputs, MatmulProgram(MakeMatmul(4096, 4096, 4096, 128, 256, 512)));
  ASSERT_THAT(classes, SizeIs(3));
  EXPECT_THAT(classes[0].dims, ElementsAre(std::pair<size_t, size_t>(0, 0)));
  EXPECT_THAT(classes[0].blocks, ElementsAre(128));
  EXPECT_THAT(classes[1].dims, ElementsAre(std::pair<size_t, size_t>(0, 1), std::pair<size_t, size_t>(1, 0)));
  EXPECT_THAT(classes[1].blocks, ElementsAre(512));
  EXPECT_THAT(classes[2].blocks, ElementsAre(256));
}

TEST(Shapes, OperandsThatAreNotInputsTieBySize) {
  const auto inputs = Inputs("x=bf16[4096,4096] y=bf16[4096,4096]");
  Program program = MatmulProgram(MakeMatmul(4096, 4096, 4096, 128, 256, 512));
  program.main.operations[0].regions[0].operations[0].inputs[1] = Operand{99, {}, {}};
  const auto classes = DimClassesByAxis(inputs, program);
  ASSERT_THAT(classes, SizeIs(1));
  EXPECT_THAT(classes[0].blocks, ElementsAre(128, 256, 512));
}

TEST(Shapes, LadderKeepsTwoBlocksAndTails) {
  const auto inputs = Inputs("x=bf16[4100,1024] y=bf16[1024,4096]");
  const auto classes = DimClassesByAxis(inputs, MatmulProgram(MakeMatmul(4100, 4096, 1024, 128, 128, 256)));
  const ShapeLadder ladder = ProposeShapes(inputs, classes, {.max_elements = 1 << 23, .largest_block = 1024});
  ASSERT_GE(ladder.shapes.size(), 3u);
  EXPECT_EQ(FormatInputs(ladder.shapes[0].inputs), "x=bf16[260,512] y=bf16[512,256]");
  EXPECT_EQ(FormatInputs(ladder.shapes[1].inputs), "x=bf16[516,1024] y=bf16[1024,512]");
  EXPECT_EQ(ladder.shapes[0].sizes.at(4100), 260);
  for (size_t i = 1; i < ladder.shapes.size(); ++i) {
    EXPECT_GT(ladder.shapes[i].elements, ladder.shapes[i - 1].elements);
    EXPECT_LE(ladder.shapes[i].elements, 1 << 23);
    EXPECT_EQ(ladder.shapes[i].inputs[0].dims[0] % 128, 4);
  }
  ASSERT_TRUE(ladder.with_tails.has_value());
  EXPECT_EQ(FormatInputs(ladder.with_tails->inputs), "x=bf16[321,641] y=bf16[641,321]");
  EXPECT_TRUE(ladder.with_tails->tails);
}

TEST(Shapes, SmallOrUncutInputsStayAsTheyAre) {
  const auto inputs = Inputs("x=bf16[128,128] y=bf16[128,128]");
  const auto classes = DimClassesByAxis(inputs, MatmulProgram(MakeMatmul(128, 128, 128, 128, 128, 128)));
  const ShapeLadder ladder = ProposeShapes(inputs, classes, {});
  ASSERT_THAT(ladder.shapes, SizeIs(1));
  EXPECT_TRUE(ladder.shapes[0].full);
  EXPECT_FALSE(ladder.with_tails.has_value());
}

TEST(Shapes, CoverageOfTheFullShape) {
  const std::vector<PallasCall> full = {MakeMatmul(4100, 4096, 1024, 128, 1024, 256)};
  EXPECT_TRUE(CoversFullShape({MakeMatmul(260, 2048, 512, 128, 1024, 256)}, full, 2));
  EXPECT_FALSE(CoversFullShape({MakeMatmul(260, 1024, 512, 128, 1024, 256)}, full, 2)) << "one block only";
  EXPECT_FALSE(CoversFullShape({MakeMatmul(256, 2048, 512, 128, 1024, 256)}, full, 2)) << "the tail is missing";
  EXPECT_FALSE(CoversFullShape({}, full, 2));
}

TEST(Program, FindsNestedKernelsAndPrintsThem) {
  const Program program = MatmulProgram(MakeMatmul(256, 256, 256, 128, 128, 128));
  const auto calls = FindPallasCalls(program);
  ASSERT_THAT(calls, SizeIs(1));
  EXPECT_EQ(calls[0]->name, "matmul");
  const std::string text = ProgramJson(program);
  EXPECT_THAT(text, HasSubstr("\"op\": \"pallas_call\""));
  EXPECT_THAT(text, HasSubstr("\"array\": \"bfloat16[256,256]\""));
  EXPECT_THAT(PallasCallJson(*calls[0]), HasSubstr("\"scratch\": [\n    \"float32[128,128]\""));
}

}  // namespace
}  // namespace kernelwright::kernels
