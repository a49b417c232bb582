// Lifts the traced functions of testdata and compares what is generated with the files there. With KW_UPDATE_GOLDEN set
// the files are written anew: read the difference before keeping it.
#include "daemon/kernels/lift/lift.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "daemon/base/files.h"
#include "daemon/cost/chips.h"
#include "daemon/kernels/lift/traced_case.h"
#include "gtest/gtest.h"

namespace kernelwright::kernels::lift {
namespace {

struct Case {
  std::filesystem::path folder;
  std::string source;
  nlohmann::json traced;
};

Case ReadCase(const std::string& name) {
  const auto folder = std::filesystem::path(KW_SOURCE_DIR) / "daemon/kernels/lift/testdata" / name;
  return {folder, *ReadFile(folder / "source.py"), nlohmann::json::parse(*ReadFile(folder / "program.json"))};
}

struct Lifted {
  Proposals proposals;
  std::vector<std::string> texts;  // of the user's file, one per proposal
};

Lifted Lift(const Case& test, const std::string& module_path = "") {
  std::vector<std::unique_ptr<SourceFile>> files;
  files.push_back(std::make_unique<SourceFile>("/k.py", test.source));
  const Program program = ProgramOf(test.traced.at("program"));
  const Program other = ProgramOf(test.traced.at("other"));
  const std::vector<InputSpec> inputs = *ParseInputs(test.traced.at("inputs").get<std::string>(), "test");
  const cost::Chip chip;  // lifts do not look at it
  const ProposalContext context{files, "/k.py", test.traced.at("function"), program, inputs, chip};
  Lifted lifted;
  lifted.proposals = ProposeLifts({context, test.traced.at("tree"), &other, module_path, false});
  for (const Proposal& proposal : lifted.proposals.proposals) {
    auto text = ApplyEdits("/k.py", test.source, proposal.edits);
    EXPECT_TRUE(text) << text.error().ToString();
    lifted.texts.push_back(text ? *text : "");
  }
  return lifted;
}

void Expect(const std::filesystem::path& path, const std::string& text) {
  if (std::getenv("KW_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
  }
  auto expected = ReadFile(path);
  ASSERT_TRUE(expected) << path;
  EXPECT_EQ(text, *expected) << path;
}

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, GeneratedSource) {
  const Case test = ReadCase(GetParam());
  const Lifted lifted = Lift(test);
  ASSERT_FALSE(lifted.texts.empty()) << (lifted.proposals.refusals.empty() ? "" : lifted.proposals.refusals[0].reason);
  for (size_t i = 0; i < lifted.texts.size(); ++i) {
    const std::string name = i == 0 ? "expected.py" : "expected_" + std::to_string(i + 1) + ".py";
    Expect(test.folder / name, lifted.texts[i]);
    const SourceFile file("/k.py", lifted.texts[i]);
    EXPECT_TRUE(file.CheckSyntax().ok()) << file.CheckSyntax().ToString();
  }
}

INSTANTIATE_TEST_SUITE_P(Lift, Golden,
                         testing::Values("rms_norm", "softmax", "norm_matmul_swiglu", "mlp", "matmul_softmax"));

TEST(LiftTest, KernelsGoIntoAModuleOfTheirOwn) {
  const Case test = ReadCase("rms_norm");
  const Lifted lifted = Lift(test, "/rms_norm_kernels.py");
  ASSERT_EQ(lifted.texts.size(), 1u);
  ASSERT_EQ(lifted.proposals.proposals[0].new_files.size(), 1u);
  EXPECT_EQ(lifted.proposals.proposals[0].new_files[0].path, "/rms_norm_kernels.py");
  Expect(test.folder / "module_user.py", lifted.texts[0]);
  Expect(test.folder / "module_kernels.py", lifted.proposals.proposals[0].new_files[0].text);
}

}  // namespace
}  // namespace kernelwright::kernels::lift
