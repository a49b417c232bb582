#include "daemon/store/store.h"

#include <sys/stat.h>

#include <thread>

#include "daemon/base/files.h"
#include "daemon/base/hash.h"
#include "daemon/base/redact.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class StoreTest : public ::testing::Test {
 protected:
  TempFolder folder_ = *TempFolder::Make();
  std::filesystem::path path_ = folder_.path() / "data" / "store.db";
  FakeClock clock_;
  std::unique_ptr<Store> store_ = *Store::Open(path_, clock_);

  store::Run NewRun(RunStatus status = RunStatus::kRunning) {
    store::Run run;
    run.kind = "tune";
    run.status = status;
    run.request = {{"file", "k.py"}, {"function", "f"}};
    run.chips = {"v5e", "v6e"};
    run.client = "cli";
    clock_.Advance(std::chrono::milliseconds(1));
    EXPECT_TRUE(store_->CreateRun(run).ok());
    return run;
  }
  Candidate NewCandidate(const store::Run& run, const std::string& hash = "h") {
    Candidate candidate;
    candidate.run = run.id;
    candidate.status = "new";
    candidate.what = "blocks 128 → 512";
    candidate.edits = {{"old", "128"}, {"new", "512"}};
    candidate.content_hash = hash;
    EXPECT_TRUE(store_->PutCandidate(candidate).ok());
    return candidate;
  }
  Evaluation NewEvaluation(const Candidate& candidate, const std::string& stage = "compile") {
    Evaluation evaluation;
    evaluation.run = candidate.run;
    evaluation.candidate = candidate.id;
    evaluation.chip = "v5e";
    evaluation.stage = stage;
    evaluation.status = EvaluationStatus::kPass;
    evaluation.result = {{"ms", 0.89}};
    evaluation.evidence = {{"class", "compiled"}};
    evaluation.duration_ms = 120;
    return evaluation;
  }
};

TEST_F(StoreTest, FilesArePrivate) {
  for (const auto& [path, mode] : {std::pair(path_, 0600U), std::pair(path_.parent_path(), 0700U)}) {
    struct stat info{};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, mode);
  }
}

TEST_F(StoreTest, RunRoundTrip) {
  store::Run run = NewRun();
  EXPECT_EQ(run.id.size(), 16U);
  store::Run back = *store_->GetRun(run.id);
  EXPECT_EQ(back.kind, "tune");
  EXPECT_EQ(back.request, run.request);
  EXPECT_THAT(back.chips, ElementsAre("v5e", "v6e"));
  EXPECT_TRUE(back.reference.is_null());
  EXPECT_TRUE(back.result.is_null());
  back.status = RunStatus::kFinished;
  back.result = {{"status", "improved"}};
  clock_.Advance(std::chrono::seconds(1));
  ASSERT_TRUE(store_->UpdateRun(back));
  const store::Run again = *store_->GetRun(run.id);
  EXPECT_EQ(again.status, RunStatus::kFinished);
  EXPECT_EQ(again.result["status"], "improved");
  EXPECT_EQ(again.updated, run.created + 1000);
}

TEST_F(StoreTest, RunsAreFoundByPartOfTheirId) {
  const store::Run run = NewRun();
  EXPECT_EQ(store_->GetRun(run.id.substr(0, 12))->id, run.id);
  EXPECT_EQ(store_->GetRun(run.id.substr(11))->id, run.id);
  EXPECT_EQ(store_->GetRun("%%%%").error().kind(), ErrorKind::kNotFound);
  NewRun();
  EXPECT_EQ(store_->GetRun(run.id.substr(0, 4)).error().kind(), ErrorKind::kUsage);
  EXPECT_EQ(store_->GetRun("").error().kind(), ErrorKind::kNotFound);
}

TEST_F(StoreTest, IdsSortByTimeAlsoWithinOneMillisecond) {
  std::string last;
  for (int i = 0; i < 100; ++i) {
    const std::string id = *NewRunId(1'700'000'000'000);
    EXPECT_GT(id, last);
    last = id;
  }
}

TEST_F(StoreTest, ListPagesNewestFirst) {
  std::vector<std::string> ids;
  ids.reserve(5);
  for (int i = 0; i < 5; ++i) ids.push_back(NewRun(i % 2 == 0 ? RunStatus::kRunning : RunStatus::kFailed).id);
  RunFilter filter;
  filter.limit = 2;
  std::vector<store::Run> page = *store_->ListRuns(filter);
  ASSERT_EQ(page.size(), 2U);
  EXPECT_EQ(page[0].id, ids[4]);
  filter.before = page[1].id;
  page = *store_->ListRuns(filter);
  EXPECT_EQ(page[0].id, ids[2]);
  RunFilter failed;
  failed.status = RunStatus::kFailed;
  EXPECT_EQ(store_->ListRuns(failed)->size(), 2U);
}

// Invariant FrozenReference: once set, neither a call nor a statement past it changes the reference.
TEST_F(StoreTest, FrozenReference) {
  store::Run run = NewRun();
  run.reference = {{"source", "def f(): …"}, {"seed", 7}};
  run.reference_hash = Sha256Hex(DumpJson(run.reference));
  ASSERT_TRUE(store_->UpdateRun(run));
  run.status = RunStatus::kPaused;
  ASSERT_TRUE(store_->UpdateRun(run));
  store::Run changed = run;
  changed.reference["seed"] = 8;
  EXPECT_EQ(store_->UpdateRun(changed).kind(), ErrorKind::kConflict);
  changed = run;
  changed.reference_hash = "";
  EXPECT_EQ(store_->UpdateRun(changed).kind(), ErrorKind::kConflict);
  Database raw = *Database::Open(path_, Database::Mode::kReadWriteCreate);
  EXPECT_FALSE(raw.Execute("UPDATE runs SET reference = '{}'"));
  EXPECT_EQ(store_->GetRun(run.id)->reference, run.reference);
}

TEST_F(StoreTest, CandidatesAreNumberedPerRun) {
  const store::Run a = NewRun();
  const store::Run b = NewRun();
  EXPECT_EQ(NewCandidate(a).id, "c0");
  EXPECT_EQ(NewCandidate(a, "other").id, "c1");
  EXPECT_EQ(NewCandidate(b).id, "c0");
  Candidate candidate = *store_->GetCandidate(a.id, "c1");
  candidate.status = "best";
  candidate.parents = {"c0"};
  ASSERT_TRUE(store_->PutCandidate(candidate));
  EXPECT_EQ(store_->ListCandidates(a.id)->size(), 2U);
  EXPECT_EQ(store_->GetCandidate(a.id, "c1")->status, "best");
  EXPECT_THAT(store_->GetCandidate(a.id, "c1")->parents, ElementsAre("c0"));
  EXPECT_EQ((*store_->FindCandidateByContent(a.id, "other"))->id, "c1");
  EXPECT_FALSE(store_->FindCandidateByContent(b.id, "other")->has_value());
  EXPECT_EQ(store_->GetCandidate(a.id, "c9").error().kind(), ErrorKind::kNotFound);
  EXPECT_EQ(store_->GetCandidate(a.id, "x").error().kind(), ErrorKind::kUsage);
  candidate.run = "nosuchrun";
  EXPECT_EQ(store_->PutCandidate(candidate).kind(), ErrorKind::kNotFound);
}

TEST_F(StoreTest, ReportedEvaluationsNeverChange) {
  const Candidate candidate = NewCandidate(NewRun());
  Evaluation evaluation = NewEvaluation(candidate);
  ASSERT_TRUE(store_->PutEvaluation(evaluation));
  evaluation.status = EvaluationStatus::kFail;
  evaluation.reason = "VMEM";
  evaluation.reported = true;
  ASSERT_TRUE(store_->PutEvaluation(evaluation));
  evaluation.status = EvaluationStatus::kPass;
  EXPECT_EQ(store_->PutEvaluation(evaluation).kind(), ErrorKind::kConflict);
  evaluation.attempt = 1;
  ASSERT_TRUE(store_->PutEvaluation(evaluation));
  const std::vector<Evaluation> all = *store_->ListEvaluations(candidate.run, candidate.id);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].status, EvaluationStatus::kFail);
  EXPECT_EQ(all[0].reason, "VMEM");
  EXPECT_EQ(all[0].result["ms"], 0.89);
  EXPECT_EQ(all[1].attempt, 1);
}

TEST_F(StoreTest, TransactionIsAllOrNothing) {
  const store::Run run = NewRun();
  const int64_t before = *store_->LastSeq();
  auto result = store_->Transact([&](Writer& writer) {
    Event event{0, run.id, 0, "x", {}};
    Candidate candidate;
    candidate.run = run.id;
    EXPECT_TRUE(writer.PutCandidate(candidate));
    EXPECT_TRUE(writer.AppendEvent(event));
    return Status(ErrorKind::kInternal, "changed my mind");
  });
  EXPECT_FALSE(result.has_value());
  EXPECT_TRUE(store_->ListCandidates(run.id)->empty());
  EXPECT_EQ(*store_->LastSeq(), before);
}

TEST_F(StoreTest, EventsAreNumberedGloballyAndReadByRun) {
  const store::Run a = NewRun();
  const store::Run b = NewRun();
  EXPECT_EQ(*store_->AppendEvent({0, a.id, 0, "started", {{"n", 1}}}), 1);
  EXPECT_EQ(*store_->AppendEvent({0, b.id, 0, "started", {}}), 2);
  EXPECT_EQ(*store_->AppendEvent({0, a.id, 0, "ended", {}}), 3);
  EXPECT_EQ(store_->ReadEvents(1)->size(), 2U);
  EXPECT_EQ(store_->ReadEvents(0, "", 1)->size(), 1U);
  const std::vector<Event> events = *store_->ReadEvents(0, a.id);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].payload["n"], 1);
  EXPECT_EQ(events[1].seq, 3);
  ASSERT_TRUE(store_->DeleteRun(a.id));
  ASSERT_TRUE(store_->DeleteRun(b.id));
  EXPECT_TRUE(store_->ReadEvents(0)->empty());
  EXPECT_EQ(*store_->AppendEvent({0, "", 0, "next", {}}), 4);  // a number is never given twice
}

// C53: an approval holds for the content that it names and for nothing else.
TEST_F(StoreTest, ApprovalsAreBoundToContent) {
  const store::Run run = NewRun();
  Approval approval{run.id, "s1", "hash1", "approved", "once", "alice", 0};
  ASSERT_TRUE(store_->AddApproval(approval));
  EXPECT_EQ((*store_->FindApproval(run.id, "hash1"))->who, "alice");
  EXPECT_FALSE(store_->FindApproval(run.id, "hash2")->has_value());
  approval.decision = "rejected";
  ASSERT_TRUE(store_->AddApproval(approval));
  EXPECT_EQ((*store_->FindApproval(run.id, "hash1"))->decision, "rejected");
  EXPECT_EQ(store_->ListApprovals(run.id)->size(), 2U);
}

TEST_F(StoreTest, NoKeysInTheFile) {
  const std::string secret = "registered-secret-value";
  ProcessRedactor().AddSecret(secret);
  store::Run run = NewRun();
  run.request = {{"note", "use " + secret}};
  ASSERT_TRUE(store_->UpdateRun(run));
  ASSERT_TRUE(store_->AppendEvent({0, run.id, 0, "log", {{"list", {secret}}}}).has_value());
  ProcessRedactor().RemoveSecret(secret);
  store_.reset();
  for (const auto& entry : std::filesystem::directory_iterator(path_.parent_path())) {
    EXPECT_THAT(*ReadFile(entry.path()), Not(HasSubstr(secret))) << entry.path();
  }
}

TEST_F(StoreTest, MetaIsKept) {
  EXPECT_FALSE(store_->GetMeta("k")->has_value());
  ASSERT_TRUE(store_->SetMeta("k", "1"));
  ASSERT_TRUE(store_->SetMeta("k", "2"));
  EXPECT_EQ(**store_->GetMeta("k"), "2");
}

TEST_F(StoreTest, ExportHoldsEverything) {
  const store::Run run = NewRun();
  const Candidate candidate = NewCandidate(run);
  Evaluation evaluation = NewEvaluation(candidate);
  ASSERT_TRUE(store_->PutEvaluation(evaluation));
  Approval approval{run.id, "s1", "hash1", "approved", "once", "alice", 0};
  ASSERT_TRUE(store_->AddApproval(approval));
  ASSERT_TRUE(store_->AppendEvent({0, run.id, 0, "started", {}}).has_value());
  const Json json = *store_->Export(run.id);
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["run"]["id"], run.id);
  EXPECT_EQ(json["candidates"][0]["id"], "c0");
  EXPECT_EQ(json["evaluations"][0]["status"], "pass");
  EXPECT_EQ(json["approvals"][0]["who"], "alice");
  EXPECT_EQ(json["events"][0]["kind"], "started");
  EXPECT_FALSE(store_->Export("nosuch").has_value());
}

TEST_F(StoreTest, PruneKeepsWhatIsAliveOrNew) {
  std::vector<std::string> ids;
  for (RunStatus status : {RunStatus::kFinished, RunStatus::kRunning, RunStatus::kFailed, RunStatus::kPaused,
                           RunStatus::kCancelled, RunStatus::kFinished}) {
    const store::Run run = NewRun(status);
    ids.push_back(run.id);
    NewCandidate(run);
    ASSERT_TRUE(store_->AppendEvent({0, run.id, 0, "x", std::string(100000, 'x')}).has_value());
  }
  EXPECT_EQ(store_->Prune({}).error().kind(), ErrorKind::kUsage);
  PruneOptions options;
  options.keep_newest = 1;
  options.dry_run = true;
  EXPECT_EQ(store_->Prune(options)->runs.size(), 3U);
  EXPECT_EQ(store_->ListRuns()->size(), 6U);
  options.dry_run = false;
  const PruneResult result = *store_->Prune(options);
  EXPECT_THAT(result.runs, ElementsAre(ids[0], ids[2], ids[4]));
  EXPECT_LT(result.bytes_after, result.bytes_before);
  EXPECT_EQ(store_->ListRuns()->size(), 3U);
  EXPECT_EQ(store_->ReadEvents(0)->size(), 3U);
  PruneOptions old;
  old.older_than_ms = clock_.NowMs() - 1000;
  EXPECT_TRUE(store_->Prune(old)->runs.empty());
  old.older_than_ms = clock_.NowMs() + 1000;
  EXPECT_THAT(store_->Prune(old)->runs, ElementsAre(ids[5]));
  EXPECT_TRUE(store_->CheckIntegrity());
}

TEST_F(StoreTest, InterruptedRunsAreFoundAndClaimedOnce) {
  const ProcessIdentity self = *CurrentProcess();
  ProcessIdentity dead = self;
  ++dead.start_ticks;
  store::Run run = NewRun();
  run.owner = dead.ToString();
  ASSERT_TRUE(store_->UpdateRun(run));
  store::Run mine = NewRun();
  mine.owner = self.ToString();
  ASSERT_TRUE(store_->UpdateRun(mine));
  NewRun(RunStatus::kFinished);
  const std::vector<store::Run> interrupted = *store_->FindInterrupted();
  ASSERT_EQ(interrupted.size(), 1U);
  EXPECT_EQ(interrupted[0].id, run.id);
  EXPECT_EQ(store_->ClaimRun(run.id, self.ToString())->owner, self.ToString());
  EXPECT_TRUE(store_->FindInterrupted()->empty());
  EXPECT_EQ(store_->ClaimRun(run.id, "other:1:2").error().kind(), ErrorKind::kConflict);
}

TEST_F(StoreTest, ThreadsDoNotDisturbEachOther) {
  const store::Run run = NewRun();
  std::vector<std::jthread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 25; ++k) {
        EXPECT_TRUE(store_->AppendEvent({0, run.id, 0, "x", {{"k", k}}}).has_value());
        EXPECT_TRUE(store_->ReadEvents(0, run.id).has_value());
      }
    });
  }
  threads.clear();
  EXPECT_EQ(*store_->LastSeq(), 100);
}

TEST_F(StoreTest, FullDiskIsSaidAndLosesNothing) {
  const store::Run run = NewRun();
  ASSERT_TRUE(store_->AppendEvent({0, run.id, 0, "kept", {}}).has_value());
  // The page limit of a connection stands in for the disk; the code path is the one of ENOSPC.
  Database raw = *Database::Open(path_, Database::Mode::kReadWriteCreate);
  ASSERT_TRUE(raw.Execute("PRAGMA max_page_count = 1"));
  const Status status =
      raw.Run("INSERT INTO events (run, time, kind, payload) VALUES ('', 1, 'x', ?)", std::string(1 << 20, 'x'));
  EXPECT_EQ(status.kind(), ErrorKind::kEnvironment);
  EXPECT_THAT(status.ToString(), HasSubstr("runs prune"));
  EXPECT_EQ(store_->ReadEvents(0, run.id)->size(), 1U);
  EXPECT_TRUE(store_->CheckIntegrity());
}

}  // namespace
}  // namespace kernelwright::store
