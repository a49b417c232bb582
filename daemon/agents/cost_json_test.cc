#include "daemon/agents/cost_json.h"

#include "gtest/gtest.h"

namespace kernelwright::agents {
namespace {

cost::Estimate Example() {
  cost::Estimate estimate;
  estimate.milliseconds = 11.5;
  estimate.low_milliseconds = 8;
  estimate.high_milliseconds = 15;
  estimate.confidence = cost::Confidence::kHigh;
  estimate.evidence = {cost::EvidenceClass::kEstimated, "v5e", {{"jax", "0.10.2"}}, "replay"};
  estimate.bound = cost::Bound::kLatency;
  estimate.kernels = {{"mm.1", 211, 1, 1.5e7, 3e6, 2e9, 32768, cost::Bound::kLatency}};
  estimate.lines = {{"k.py", 9, 100, {{"MXU", 16}}, 2, 4096}};
  estimate.warnings = {"cross-check differs by 30 %"};
  return estimate;
}

TEST(CostJsonTest, EstimateRoundTrips) {
  const nlohmann::json value = CostToJson(Example(), true);
  auto read = CostFromJson(value);
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(CostToJson(*read, true), value);
  EXPECT_EQ(value["estimate"]["evidence"]["evidence_class"], "ESTIMATED");
}

TEST(CostJsonTest, LinesAreLeftOutOnRequest) {
  EXPECT_FALSE(CostToJson(Example(), false)["estimate"].contains("lines"));
}

TEST(CostJsonTest, RefusalRoundTrips) {
  const cost::CostResult refusal = cost::Refusal{"a branch depends on a value from memory",
                                                 "sbr.rel (%p1)",
                                                 {cost::EvidenceClass::kEstimated, "v6e", {}, "replay"}};
  auto read = CostFromJson(CostToJson(refusal, false));
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<cost::Refusal>(*read).reason, std::get<cost::Refusal>(refusal).reason);
}

TEST(CostJsonTest, OtherJsonIsAnError) { EXPECT_FALSE(CostFromJson(nlohmann::json::object())); }

}  // namespace
}  // namespace kernelwright::agents
