// What was tried, read from the store.
#include "daemon/tools/store_history.h"

#include "daemon/base/files.h"
#include "gtest/gtest.h"

namespace kernelwright::tools {
namespace {

TEST(StoreHistoryTest, EachCandidateWithItsReason) {
  const TempFolder folder = TempFolder::Make().value();
  const auto store = store::Store::Open(folder.path() / "store" / "s.db").value();
  store::Run run;
  run.kind = "auto";
  ASSERT_TRUE(store->CreateRun(run).ok());
  store::Candidate failed;
  failed.run = run.id;
  failed.status = "failed";
  failed.what = "fuse the epilogue";
  ASSERT_TRUE(store->PutCandidate(failed).ok());
  store::Evaluation evaluation;
  evaluation.run = run.id;
  evaluation.candidate = failed.id;
  evaluation.chip = "v5e";
  evaluation.stage = "compile";
  evaluation.status = store::EvaluationStatus::kFail;
  evaluation.gate = "compile";
  evaluation.reason = "D07: VMEM";
  ASSERT_TRUE(store->PutEvaluation(evaluation).ok());
  store::Candidate passed;
  passed.run = run.id;
  passed.status = "passed";
  passed.what = "bm=512";
  passed.result = {{"estimate_ms", 1.5}, {"gate", ""}, {"why", ""}};
  ASSERT_TRUE(store->PutCandidate(passed).ok());

  const auto history = MakeStoreHistory(*store, run.id);
  const auto entries = history->Entries();
  ASSERT_TRUE(entries) << entries.error().ToString();
  ASSERT_EQ(entries->size(), 2);
  EXPECT_EQ((*entries)[0].why, "D07: VMEM");
  EXPECT_EQ((*entries)[0].chip, "v5e");
  EXPECT_FALSE((*entries)[0].estimate_ms);
  EXPECT_EQ((*entries)[1].estimate_ms, 1.5);
  EXPECT_EQ((*entries)[1].evidence, "estimated");
  EXPECT_TRUE(MakeStoreHistory(*store, "no-such-run")->Entries()->empty());
}

}  // namespace
}  // namespace kernelwright::tools
