// One worker process against a scripted one: every way to start, answer, hang and die.
#include "daemon/worker/worker_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "daemon/base/files.h"
#include "daemon/worker/marshal_jobs.h"

namespace kernelwright::worker {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

WorkerCommand Fake(std::vector<std::string> arguments = {"ok"}) {
  WorkerCommand command;
  command.argv = {KW_FAKE_WORKER};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.environment = {{"ONLY", "this"}};
  command.interpreter_reason = "the nearest .venv above the file";
  return command;
}

v1::Job Probe(const std::string& how) { return ProbeToProto({how}, {}); }

Status StartError(const WorkerCommand& command, const std::stop_token& stop = {}) {
  auto worker = WorkerProcess::Start(command, stop);
  return worker ? Status() : worker.error();
}

std::unique_ptr<WorkerProcess> StartFake() {
  auto worker = WorkerProcess::Start(Fake(), {});
  EXPECT_TRUE(worker.has_value()) << worker.error().ToString();
  return std::move(*worker);
}

TEST(WorkerProcess, AnswersHelloAndJobs) {
  auto worker = StartFake();
  EXPECT_EQ(worker->identity().sandbox, "landlock");
  EXPECT_EQ(worker->identity().versions.at("jax"), "0.0");
  auto result = worker->Run(Probe("ok"), {});
  ASSERT_TRUE(result.has_value()) << result.error().ToString();
  EXPECT_EQ(result->probe().chips(0).detail(), "ok");
  EXPECT_EQ(worker->Run(Probe("log"), {})->probe().chips(0).detail(), "logged");
  EXPECT_EQ(worker->Run(Probe("big"), {})->probe().chips(0).detail().size(), size_t{5} << 20);
  EXPECT_EQ(worker->jobs(), 0U);
}

TEST(WorkerProcess, GetsNothingOfOurEnvironment) {
  ::setenv("KW_TEST_SECRET", "do-not-pass", 1);
  EXPECT_EQ(StartFake()->Run(Probe("env"), {})->probe().chips(0).detail(), "ONLY=this\n");
}

TEST(WorkerProcess, ManyThreadsShareIt) {
  auto worker = StartFake();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int j = 0; j < 25; ++j) {
        const std::string name = "job " + std::to_string(i) + "/" + std::to_string(j);
        auto result = worker->Run(Probe(name), {});
        ASSERT_TRUE(result.has_value());
        EXPECT_EQ(result->probe().chips(0).detail(), name);
      }
    });
  }
}

TEST(WorkerProcess, WhatItLacksIsAnEnvironmentErrorWithARemedy) {
  const Status missing = StartError(Fake({"missing"}));
  EXPECT_EQ(missing.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(missing.message(), "jax is not installed in this interpreter");
  EXPECT_THAT(missing.remedy(), HasSubstr("the nearest .venv above the file"));
  EXPECT_THAT(missing.remedy(), HasSubstr("--python"));

  const Status problem = StartError(Fake({"problem"}));
  EXPECT_EQ(problem.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(problem.message(), "jax 0.4.1 is too old");
  EXPECT_THAT(problem.remedy(), HasSubstr("the nearest .venv above the file"));

  const Status module = StartError(Fake({"no_module"}));
  EXPECT_EQ(module.kind(), ErrorKind::kEnvironment);
  EXPECT_THAT(module.message(), HasSubstr("protobuf"));

  const Status syntax = StartError(Fake({"syntax"}));
  EXPECT_EQ(syntax.kind(), ErrorKind::kEnvironment);
  EXPECT_THAT(syntax.message(), HasSubstr("too old"));

  const Status version = StartError(Fake({"old_version"}));
  EXPECT_EQ(version.kind(), ErrorKind::kEnvironment);
  EXPECT_THAT(version.message(), HasSubstr("version 7"));

  WorkerCommand nowhere = Fake();
  nowhere.argv[0] = "/nonexistent/python";
  EXPECT_EQ(StartError(nowhere).kind(), ErrorKind::kEnvironment);
}

TEST(WorkerProcess, AHelloThatNeverComesIsALimit) {
  WorkerCommand command = Fake({"silent"});
  command.hello_deadline = milliseconds(50);
  const Status status = StartError(command);
  EXPECT_EQ(status.kind(), ErrorKind::kLimit);
  EXPECT_THAT(status.message(), HasSubstr("did not answer"));
}

TEST(WorkerProcess, StartingCanBeCancelled) {
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(StartError(Fake({"silent"}), stop.get_token()).kind(), ErrorKind::kCancelled);
}

TEST(WorkerProcess, GarbageInsteadOfAHelloIsReported) {
  const Status status = StartError(Fake({"garbage"}));
  EXPECT_EQ(status.kind(), ErrorKind::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("not a message"));
}

TEST(WorkerProcess, DeathFailsEveryJobWithItsReason) {
  auto worker = StartFake();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      auto result = worker->Run(Probe("deaf"), {});
      ASSERT_FALSE(result.has_value());
      EXPECT_THAT(result.error().message(), HasSubstr("signal 9"));
    });
  }
  while (worker->jobs() < 3) std::this_thread::yield();
  auto result = worker->Run(Probe("crash"), {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind(), ErrorKind::kInternal);
  EXPECT_THAT(result.error().message(), HasSubstr("Segmentation fault"));
  EXPECT_FALSE(worker->alive());
  EXPECT_FALSE(worker->Run(Probe("ok"), {}).has_value());
}

TEST(WorkerProcess, ItsLastWordsAreKeptWithoutSecrets) {
  auto result = StartFake()->Run(Probe("exit"), {});
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message(), HasSubstr("exit code 7"));
  EXPECT_THAT(result.error().message(), HasSubstr("last words"));
  EXPECT_THAT(result.error().message(), Not(HasSubstr("abcdefghijklmnopqrstuvwxyz")));
}

TEST(WorkerProcess, GarbageEndsIt) {
  auto worker = StartFake();
  auto result = worker->Run(Probe("garbage"), {});
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message(), HasSubstr("not a message"));
  EXPECT_FALSE(worker->alive());
}

TEST(WorkerProcess, ARefusedRequestLeavesItAlive) {
  auto worker = StartFake();
  auto result = worker->Run(Probe("refuse"), {});
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message(), HasSubstr("I do not know that job"));
  EXPECT_TRUE(worker->Run(Probe("ok"), {}).has_value());
}

TEST(WorkerProcess, CancellingEndsTheJobAndNothingElse) {
  auto worker = StartFake();
  std::stop_source stop;
  std::jthread canceller([&] {
    while (worker->jobs() < 1) std::this_thread::yield();
    stop.request_stop();
  });
  auto result = worker->Run(Probe("hang"), stop.get_token());
  ASSERT_TRUE(result.has_value()) << result.error().ToString();
  EXPECT_EQ(result->outcome(), v1::JobResult::CANCELLED);
  EXPECT_TRUE(worker->Run(Probe("ok"), {}).has_value());
  // A request that was cancelled before it began is never sent.
  EXPECT_EQ(worker->Run(Probe("crash"), stop.get_token())->outcome(), v1::JobResult::CANCELLED);
  EXPECT_TRUE(worker->alive());
}

TEST(WorkerProcess, OneThatIgnoresACancellationIsEnded) {
  WorkerCommand command = Fake();
  command.cancel_grace = milliseconds(50);
  auto worker = std::move(*WorkerProcess::Start(command, {}));
  std::stop_source stop;
  std::jthread canceller([&] {
    while (worker->jobs() < 1) std::this_thread::yield();
    stop.request_stop();
  });
  auto result = worker->Run(Probe("deaf"), stop.get_token());
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->outcome(), v1::JobResult::CANCELLED);
  EXPECT_FALSE(worker->alive());
}

TEST(WorkerProcess, OneThatStopsReadingIsEnded) {
  WorkerCommand command = Fake();
  command.send_deadline = milliseconds(100);
  auto worker = std::move(*WorkerProcess::Start(command, {}));
  std::jthread muted([&] { EXPECT_FALSE(worker->Run(Probe("mute"), {}).has_value()); });
  while (worker->jobs() < 1) std::this_thread::yield();
  agents::CompileRequest large;
  large.artefact.exported.assign(8 << 20, 'x');
  auto result = worker->Run(ToProto(large), {});
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message(), HasSubstr("does not take requests"));
}

TEST(WorkerProcess, AnEscapedProcessThatHoldsThePipesDoesNotHideTheEnd) {
  auto result = StartFake()->Run(Probe("hold"), {});
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message(), HasSubstr("exit code 0"));
}

TEST(WorkerProcess, ShutdownCancelsWhatRunsAndLeavesNoProcess) {
  auto worker = StartFake();
  const pid_t pid = worker->pid();
  std::jthread waiter([&] {
    auto result = worker->Run(Probe("hang"), {});
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().kind(), ErrorKind::kCancelled);
  });
  while (worker->jobs() < 1) std::this_thread::yield();
  std::jthread other([&] { worker->Shutdown(); });
  worker->Shutdown();
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_FALSE(worker->alive());
}

TEST(WorkerProcess, ShutdownOfOneThatHangsTakesItsGraceOnly) {
  WorkerCommand command = Fake();
  command.shutdown_grace = milliseconds(50);
  auto worker = std::move(*WorkerProcess::Start(command, {}));
  std::jthread muted([&] { EXPECT_FALSE(worker->Run(Probe("mute"), {}).has_value()); });
  while (worker->jobs() < 1) std::this_thread::yield();
  const pid_t pid = worker->pid();
  worker->Shutdown();
  EXPECT_EQ(::kill(pid, 0), -1);
}

}  // namespace
}  // namespace kernelwright::worker
