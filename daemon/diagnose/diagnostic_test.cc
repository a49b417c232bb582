#include "daemon/diagnose/diagnostic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelwright::diagnose {
namespace {

using ::testing::ElementsAre;

Diagnostic At(std::string id, int line, Stage stage, std::vector<std::string> chips) {
  Diagnostic diagnostic;
  diagnostic.id = std::move(id);
  diagnostic.stage = stage;
  diagnostic.place = {"k.py", line, 1, line, 9};
  diagnostic.chips = std::move(chips);
  return diagnostic;
}

TEST(DiagnosticTest, OneProblemOnTwoChipsIsOneDiagnostic) {
  const auto merged = MergeChips({At("D01", 3, Stage::kCompile, {"v5e"}), At("D01", 3, Stage::kCompile, {"v6e", "v5e"}),
                                  At("D01", 4, Stage::kCompile, {"v6e"})});
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_THAT(merged[0].chips, ElementsAre("v5e", "v6e"));
  EXPECT_THAT(merged[1].chips, ElementsAre("v6e"));
}

TEST(DiagnosticTest, WhatAnEarlierStageSaidIsNotSaidAgain) {
  const auto settled = Settle({At("D90", 7, Stage::kCompile, {"v5e"}), At("D01", 3, Stage::kCompile, {"v5e"}),
                               At("D01", 3, Stage::kBlocks, {"v5e"}), At("D02", 3, Stage::kCompile, {"v5e"})});
  ASSERT_EQ(settled.size(), 3U);
  EXPECT_EQ(settled[0].id, "D01");
  EXPECT_EQ(settled[0].stage, Stage::kBlocks);
  EXPECT_EQ(settled[1].id, "D02");
  EXPECT_EQ(settled[2].id, "D90");
}

}  // namespace
}  // namespace kernelwright::diagnose
