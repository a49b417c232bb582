#include "daemon/agents/gate_list.h"

#include <set>

#include "gtest/gtest.h"

namespace kernelwright::agents {
namespace {

std::vector<GateResult> AllPassed() {
  std::vector<GateResult> results;
  for (const GateInfo& gate : AllGates()) results.push_back(Pass(std::string(gate.id)));
  return results;
}

TEST(GateListTest, IdsAreUniqueAndOrdered) {
  std::set<std::string_view> ids;
  std::string_view last;
  for (const GateInfo& gate : AllGates()) {
    EXPECT_TRUE(ids.insert(gate.id).second) << gate.id;
    EXPECT_LT(last, gate.id);
    last = gate.id;
  }
}

TEST(GateListTest, ClaimHoldsOnlyWhenEveryRequiredGatePassed) {
  EXPECT_TRUE(JudgeClaim(Claim::kEstimated, true, AllPassed()).holds);
  EXPECT_TRUE(JudgeClaim(Claim::kMeasured, true, AllPassed()).holds);
  for (const GateInfo& gate : AllGates()) {
    if (!gate.for_estimated) continue;
    for (GateStatus status : {GateStatus::kFail, GateStatus::kNotRun}) {
      std::vector<GateResult> results = AllPassed();
      for (GateResult& result : results) {
        if (result.gate == gate.id) result = {result.gate, status, "because"};
      }
      ClaimVerdict verdict = JudgeClaim(Claim::kEstimated, true, results);
      EXPECT_FALSE(verdict.holds) << gate.id;
      EXPECT_EQ(verdict.gate, gate.id);
      EXPECT_EQ(verdict.reason, "because");
    }
  }
}

TEST(GateListTest, MissingGateIsNotAPass) {
  std::vector<GateResult> results = AllPassed();
  std::erase_if(results, [](const GateResult& result) { return result.gate == "G43"; });
  ClaimVerdict verdict = JudgeClaim(Claim::kEstimated, true, results);
  EXPECT_FALSE(verdict.holds);
  EXPECT_EQ(verdict.gate, "G43");
}

TEST(GateListTest, GateReportedTwiceMustPassTwice) {
  std::vector<GateResult> results = AllPassed();
  results.push_back(FailGate("G31", "race"));
  EXPECT_EQ(JudgeClaim(Claim::kEstimated, true, results).reason, "race");
}

TEST(GateListTest, AFailureSaysMoreThanWhatWasNotRunBecauseOfIt) {
  std::vector<GateResult> results = AllPassed();
  for (GateResult& result : results) {
    if (result.gate == "G30") result = NotRun("G30", "stopped");
    if (result.gate == "G43") result = FailGate("G43", "wrong");
  }
  EXPECT_EQ(JudgeClaim(Claim::kEstimated, true, results).gate, "G43");
}

TEST(GateListTest, KernelGatesAreAskedOnlyOfKernels) {
  std::vector<GateResult> results = AllPassed();
  std::erase_if(results, [](const GateResult& result) { return result.gate == "G20" || result.gate == "G21"; });
  EXPECT_TRUE(JudgeClaim(Claim::kEstimated, false, results).holds);
  EXPECT_FALSE(JudgeClaim(Claim::kEstimated, true, results).holds);
}

}  // namespace
}  // namespace kernelwright::agents
