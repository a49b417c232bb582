#include "daemon/agents/run_result.h"

#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

namespace kernelwright::agents {
namespace {

using nlohmann::json;

cost::Estimate Milliseconds(double ms) {
  cost::Estimate estimate;
  estimate.milliseconds = ms;
  estimate.low_milliseconds = ms * 0.65;
  estimate.high_milliseconds = ms * 1.35;
  estimate.evidence = {cost::EvidenceClass::kEstimated, "v5e", {{"jax", "0.10.2"}}, "replay"};
  return estimate;
}

RunResult Improved() {
  RunResult result;
  result.command = "optimize";
  result.run = "01R";
  ChipResult chip;
  chip.chip = "v5e";
  chip.status = "improved";
  chip.original = Milliseconds(11);
  BestCandidate best;
  best.id = "c2";
  best.estimate = Milliseconds(1);
  best.changes = {{"/u/k.py", "aa", "new"}};
  best.diff = "--- a/k.py\n";
  chip.best = best;
  chip.speedup = 11;
  chip.verdict = "faster";
  CandidateRow row;
  row.id = "c1";
  row.status = "failed";
  row.gate = "G23";
  row.why = "exceeded scoped vmem limit";
  chip.candidates = {row};
  result.results = {chip};
  return result;
}

TEST(RunResultTest, OneChipRepeatsItsFieldsAtTheTop) {
  const json object = json::parse(ResultJson(Improved()));
  EXPECT_EQ(object["schema_version"], 1);
  EXPECT_EQ(object["status"], "improved");
  EXPECT_EQ(object["chip"], "v5e");
  EXPECT_EQ(object["original"]["estimate_ms"], 11.0);
  EXPECT_EQ(object["best"]["estimate_ms"], 1.0);
  EXPECT_EQ(object["best"]["file"], "/u/k.py");
  EXPECT_EQ(object["speedup"], 11.0);
  EXPECT_EQ(object["verdict"], "faster");
  EXPECT_EQ(object["evidence"]["class"], "estimated");
  EXPECT_EQ(object["evidence"]["versions"]["jax"], "0.10.2");
  EXPECT_EQ(object["candidates"][0]["gate"], "G23");
  EXPECT_EQ(object["results"].size(), 1u);
}

TEST(RunResultTest, SeveralChipsStayInResults) {
  RunResult result = Improved();
  ChipResult other;
  other.chip = "v6e";
  other.status = "no_improvement";
  result.results.push_back(other);
  const json object = json::parse(ResultJson(result));
  EXPECT_FALSE(object.contains("chip"));
  EXPECT_EQ(object["status"], "improved");
  EXPECT_EQ(object["exit_code"], 0);
}

// No number leaves without its class, chip and versions.
TEST(EvidenceClass, EveryEstimateInTheResultCarriesItsEvidence) {
  const json object = json::parse(ResultJson(Improved()));
  for (const char* part : {"original", "best"}) {
    const json& evidence = object[part]["evidence"];
    EXPECT_EQ(evidence["class"], "estimated") << part;
    EXPECT_EQ(evidence["chip"], "v5e") << part;
    EXPECT_FALSE(evidence["versions"].empty()) << part;
  }
}

TEST(RunResultTest, ExitCodes) {
  RunResult result = Improved();
  EXPECT_EQ(OverallExitCode(result), 0);
  result.results[0].status = "failed";
  EXPECT_EQ(OverallExitCode(result), 1);
  result.results[0].error = ErrorKind::kEnvironment;
  EXPECT_EQ(OverallExitCode(result), 3);
  result.results[0].status = "cancelled";
  EXPECT_EQ(OverallExitCode(result), 4);
  result.results.clear();
  EXPECT_EQ(OverallStatus(result), "failed");
}

TEST(RunResultTest, VerdictWords) {
  EXPECT_EQ(VerdictWord(1.10), "faster");
  EXPECT_EQ(VerdictWord(1.05), "probably");
  EXPECT_EQ(VerdictWord(1.01), "tie");
  EXPECT_EQ(VerdictWord(0.5), "tie");
}

}  // namespace
}  // namespace kernelwright::agents
