// Restarts, repetition and the limit on both.
#include "daemon/worker/worker_toolchain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "daemon/base/files.h"

namespace kernelwright::worker {
namespace {

using ::testing::HasSubstr;

class WorkerToolchainTest : public ::testing::Test {
 protected:
  Expected<std::unique_ptr<WorkerProcess>> Start(const std::stop_token& stop) {
    ++starts_;
    WorkerCommand command;
    command.argv = {KW_FAKE_WORKER, start_};
    if (start_ == "slow") command.argv.push_back((folder_.path() / "go").string());
    return WorkerProcess::Start(command, stop);
  }
  std::unique_ptr<WorkerToolchain> Make() {
    return std::make_unique<WorkerToolchain>(
        *Start({}), [this](const std::stop_token& stop) { return Start(stop); }, 2, clock_);
  }
  static Expected<agents::ProbeReport> Ask(WorkerToolchain& toolchain, const std::string& how,
                                           const std::stop_token& stop = {}) {
    return toolchain.Probe({how}, {}, stop);
  }

  TempFolder folder_ = *TempFolder::Make("kw-toolchain-");
  FakeClock clock_;
  std::string start_ = "ok";
  std::atomic<int> starts_ = 0;
};

TEST_F(WorkerToolchainTest, AJobLostWithItsWorkerIsRepeatedOnce) {
  auto toolchain = Make();
  auto report = Ask(*toolchain, "crash_unless:" + (folder_.path() / "marker").string());
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  EXPECT_EQ(report->chips.at(0).detail, "second time");
  EXPECT_EQ(starts_, 2);
}

TEST_F(WorkerToolchainTest, AJobThatKillsTwoWorkersIsReported) {
  auto toolchain = Make();
  auto report = Ask(*toolchain, "crash");
  ASSERT_FALSE(report.has_value());
  EXPECT_THAT(report.error().message(), HasSubstr("signal 9"));
  EXPECT_EQ(starts_, 2);
  EXPECT_EQ(Ask(*toolchain, "ok")->chips.at(0).detail, "ok");
}

TEST_F(WorkerToolchainTest, AWorkerThatKeepsDyingIsGivenUpForAWhile) {
  auto toolchain = Make();
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(Ask(*toolchain, "crash").has_value());
  EXPECT_FALSE(Ask(*toolchain, "crash").has_value());
  auto refused = Ask(*toolchain, "ok");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::kInternal);
  EXPECT_THAT(refused.error().message(), HasSubstr("5 times within 3 minutes"));
  EXPECT_EQ(starts_, 5);
  clock_.Advance(std::chrono::minutes(4));
  EXPECT_TRUE(Ask(*toolchain, "ok").has_value());
}

TEST_F(WorkerToolchainTest, ManyJobsThatLoseTheirWorkerShareTheNextOne) {
  auto toolchain = Make();
  const std::string go = (folder_.path() / "go").string();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      auto report = Ask(*toolchain, "wait:" + go);
      ASSERT_TRUE(report.has_value()) << report.error().ToString();
      EXPECT_EQ(report->chips.at(0).detail, "waited");
    });
  }
  while (toolchain->running_jobs() + toolchain->queued_jobs() < 4) std::this_thread::yield();
  EXPECT_EQ(toolchain->queued_jobs(), 2U);
  EXPECT_EQ(Ask(*toolchain, "crash_unless:" + (folder_.path() / "marker").string())->chips.at(0).detail, "second time");
  std::ofstream(go).close();
  threads.clear();
  EXPECT_EQ(starts_, 2);
}

TEST_F(WorkerToolchainTest, ADoneJobWithoutAResultIsAnErrorAndNotRepeated) {
  auto toolchain = Make();
  auto report = Ask(*toolchain, "no_payload");
  ASSERT_FALSE(report.has_value());
  EXPECT_THAT(report.error().message(), HasSubstr("without its result"));
  EXPECT_EQ(starts_, 1);
}

TEST_F(WorkerToolchainTest, CancelledJobsAreReportsAndNotErrors) {
  auto toolchain = Make();
  std::stop_source stop;
  stop.request_stop();
  auto report = Ask(*toolchain, "ok", stop.get_token());
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->outcome, agents::JobOutcome::kCancelled);
}

TEST_F(WorkerToolchainTest, ShutdownEndsARestartToo) {
  auto toolchain = Make();
  EXPECT_FALSE(Ask(*toolchain, "exit").has_value());
  start_ = "slow";
  std::jthread asker([&] { EXPECT_EQ(Ask(*toolchain, "ok").error().kind(), ErrorKind::kCancelled); });
  while (starts_ < 3) std::this_thread::yield();
  toolchain->Shutdown();
  asker.join();
  EXPECT_EQ(Ask(*toolchain, "ok").error().kind(), ErrorKind::kCancelled);
}

TEST_F(WorkerToolchainTest, IdentityOutlivesRestarts) {
  auto toolchain = Make();
  const agents::WorkerIdentity& before = toolchain->identity();
  const int pid = before.pid;
  EXPECT_FALSE(Ask(*toolchain, "crash").has_value());
  EXPECT_TRUE(Ask(*toolchain, "ok").has_value());
  EXPECT_EQ(before.pid, pid);
  EXPECT_NE(toolchain->identity().pid, pid);
}

}  // namespace
}  // namespace kernelwright::worker
