#include "daemon/agents/program_gate.h"
#include "gtest/gtest.h"

namespace kernelwright::agents {
namespace {

// Lines in the form that the TPU compiler prints, shortened.
constexpr const char* kModule = R"hlo(HloModule jit_f, is_scheduled=true

%fused_computation (param_0: bf16[512,256], param_1: bf16[256,128]) -> bf16[512,128] {
  %param_0 = bf16[512,256]{1,0:T(8,128)(2,1)S(1)} parameter(0)
  %param_1 = bf16[256,128]{1,0:T(8,128)(2,1)} parameter(1)
  ROOT %convolution.1 = bf16[512,128]{1,0:T(8,128)(2,1)} convolution(%param_0, %param_1), dim_labels=bf_io->bf, metadata={op_name="jit(f)/dot_general"}
}

ENTRY %main.1 (a.1: bf16[64,32], b.1: bf16[32,16]) -> f32[64,16] {
  %a.1 = bf16[64,32]{1,0} parameter(0)
  %b.1 = bf16[32,16]{1,0} parameter(1)
  %f.1 = bf16[64,16]{1,0:T(8,128)(2,1)S(1)} custom-call(%a.1, %b.1), custom_call_target="tpu_custom_call", backend_config={"x":"dot("}
  %pair = (f32[64,16]{1,0}, u32[]{:S(2)}) copy-start(%f.1)
  ROOT %dot.3 = f32[64,16]{1,0} dot(%a.1, %b.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)hlo";

TEST(HloContentsTest, CountsKernelsAndProductsOutsideThem) {
  const HloContents contents = ReadHlo(kModule);
  EXPECT_EQ(contents.kernels, 1);
  EXPECT_EQ(contents.host_callbacks, 0);
  EXPECT_DOUBLE_EQ(contents.outside_flops, 2.0 * 512 * 128 * 256 + 2.0 * 64 * 16 * 32);
}

TEST(HloContentsTest, HostCallsAreSeen) {
  EXPECT_EQ(
      ReadHlo("  %c = (f32[8]{0}) custom-call(%x), custom_call_target=\"xla_python_cpu_callback\"\n").host_callbacks,
      1);
  EXPECT_EQ(ReadHlo("  %o = token[] outfeed(%x, %t)\n").host_callbacks, 1);
}

TEST(HloContentsTest, TornTextIsNotACrash) {
  const std::string text = kModule;
  for (size_t length = 0; length < text.size(); ++length) ReadHlo(text.substr(0, length));
}

TEST(CheckHloTest, KernelMustBeThereAndDoTheWork) {
  EXPECT_EQ(CheckHlo({1, 0, 0}, true, 1e9).status, GateStatus::kPass);
  EXPECT_EQ(CheckHlo({0, 0, 0}, true, 1e9).status, GateStatus::kFail);
  EXPECT_EQ(CheckHlo({0, 0, 0}, false, 1e9).status, GateStatus::kPass);
  EXPECT_EQ(CheckHlo({1, 0, 2e8}, true, 1e9).status, GateStatus::kFail);
  EXPECT_EQ(CheckHlo({1, 1, 0}, true, 1e9).status, GateStatus::kFail);
}

}  // namespace
}  // namespace kernelwright::agents
