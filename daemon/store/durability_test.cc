// kill -9 at any moment: every event and evaluation whose number was printed is there afterwards, and the file is
// sound.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <set>

#include "daemon/base/files.h"
#include "daemon/base/unique_fd.h"
#include "daemon/store/event_log.h"
#include "gtest/gtest.h"

namespace kernelwright::store {
namespace {

// Writes evaluations with their events for ever and prints the number of each after its commit.
[[noreturn]] void WriteForEver(const std::filesystem::path& path, const std::string& run, int report) {
  Expected<std::unique_ptr<Store>> store = Store::Open(path);
  if (!store) ::_exit(1);
  EventLog log(**store);
  while (true) {
    Event event{0, run, 0, "evaluated", {}};
    const auto work = [&](Writer& writer) {
      Candidate candidate;
      candidate.run = run;
      Status status = writer.PutCandidate(candidate);
      Evaluation evaluation;
      evaluation.run = run;
      evaluation.candidate = candidate.id;
      evaluation.stage = "compile";
      evaluation.status = EvaluationStatus::kPass;
      evaluation.reported = true;
      evaluation.result = {{"text", std::string(500, 'x')}};
      if (status) status = writer.PutEvaluation(evaluation);
      event.payload = {{"candidate", candidate.id}};
      if (status) status = writer.AppendEvent(event);
      return status;
    };
    if (!log.Commit(work)) ::_exit(1);
    const std::string line = std::to_string(event.seq) + "\n";
    if (::write(report, line.data(), line.size()) != static_cast<ssize_t>(line.size())) ::_exit(1);
  }
}

TEST(DurabilityTest, KillAtAnyMomentLosesNothingThatWasReported) {
  constexpr int kRounds = 25;
  TempFolder folder = *TempFolder::Make();
  const std::filesystem::path path = folder.path() / "store.db";
  store::Run run;
  {
    ASSERT_TRUE((*Store::Open(path))->CreateRun(run));
  }
  std::set<int64_t> printed;
  std::mt19937 random(11);
  for (int round = 0; round < kRounds; ++round) {
    Pipe pipe = *MakePipe();
    const pid_t child = ::fork();
    if (child == 0) WriteForEver(path, run.id, pipe.write.get());
    pipe.write.reset();
    // Some rounds kill during the opening, before the first number; others after a random count of bytes.
    std::string text;
    const size_t wanted = round % 5 == 0 ? 0 : 1 + random() % 40;
    char byte = 0;
    while (text.size() < wanted && ::read(pipe.read.get(), &byte, 1) == 1) text += byte;
    // Spreads the kill over all points of a transaction.
    volatile unsigned spin = random() % 2'000'000;
    while (spin > 0) spin = spin - 1;
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";
    while (::read(pipe.read.get(), &byte, 1) == 1) text += byte;

    size_t at = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; at = end + 1, end = text.find('\n', at)) {
      printed.insert(std::stoll(text.substr(at, end - at)));
    }
    std::unique_ptr<Store> store = *Store::Open(path);
    ASSERT_TRUE(store->CheckIntegrity()) << store->CheckIntegrity().ToString();
    std::set<std::string> evaluated;
    const std::vector<Evaluation> evaluations = *store->ListEvaluations(run.id);
    for (const Evaluation& evaluation : evaluations) evaluated.insert(evaluation.candidate);
    std::set<int64_t> stored;
    const std::vector<Event> events = *store->ReadEvents(0, run.id, 1'000'000);
    for (const Event& event : events) {
      stored.insert(event.seq);
      EXPECT_TRUE(evaluated.contains(event.payload["candidate"].get<std::string>()));
    }
    EXPECT_EQ(stored.size(), evaluated.size());
    for (const int64_t seq : printed) ASSERT_TRUE(stored.contains(seq)) << "event " << seq << " was lost";
  }
  EXPECT_GT(printed.size(), 20U);
}

}  // namespace
}  // namespace kernelwright::store
