// The pool, with a shell script in the place of the interpreter that runs the scripted worker.
#include "daemon/worker/provider.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "daemon/base/files.h"

namespace kernelwright::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Provider : public ::testing::Test {
 protected:
  Provider() {
    fs::create_directories(folder_.path() / "agents/worker/kernelwright_worker");
    fs::create_directories(folder_.path() / "proto/kernelwright");
    provider_ = MakeLocalToolchains({.agents_folder = folder_.path() / "agents",
                                     .proto_python_folder = folder_.path() / "proto",
                                     .parallel_jobs = 2,
                                     .max_idle_workers = 2},
                                    clock_);
  }
  // An environment folder whose interpreter is the scripted worker, started in the given way.
  std::string Environment(const std::string& name, const std::string& start = "ok") const {
    const fs::path python = folder_.path() / name / "bin" / "python";
    fs::create_directories(python.parent_path());
    std::ofstream(python) << "#!/bin/sh\nexec " << KW_FAKE_WORKER << " " << start << "\n";
    fs::permissions(python, fs::perms::owner_all);
    return folder_.path() / name;
  }
  Expected<std::shared_ptr<agents::Toolchain>> Get(const std::string& environment, const std::stop_token& stop = {}) {
    agents::ToolchainOptions options;
    options.python = environment;
    options.working_directory = folder_.path();
    return provider_->Get(options, stop);
  }
  // Waits for the pool's own thread to have done its work.
  void AwaitWorkers(size_t count) const {
    while (provider_->Describe().size() != count) std::this_thread::yield();
  }

  TempFolder folder_ = *TempFolder::Make("kw-provider-");
  FakeClock clock_;
  std::unique_ptr<agents::ToolchainProvider> provider_;
};

TEST_F(Provider, TheSameNeedSharesAWorkerAndAnotherGetsItsOwn) {
  const std::string a = Environment("a");
  const std::string b = Environment("b");
  auto first = *Get(a);
  EXPECT_EQ(first.get(), Get(a)->get());
  EXPECT_NE(first.get(), Get(b)->get());
  EXPECT_THAT(provider_->Describe(), SizeIs(2));
  EXPECT_THAT(provider_->Describe()[0], HasSubstr("a/bin/python, sandbox landlock, idle"));
  EXPECT_TRUE(first->Probe({"ok"}, {}, {}).has_value());
}

TEST_F(Provider, ThoseWhoAskAtOnceGetOneWorker) {
  const std::string a = Environment("a", "slow " + (folder_.path() / "go").string());
  std::vector<agents::Toolchain*> got(4);
  std::vector<std::jthread> threads;
  for (agents::Toolchain*& slot : got) {
    threads.emplace_back([&] { slot = Get(a)->get(); });
  }
  AwaitWorkers(1);
  EXPECT_THAT(provider_->Describe(), ElementsAre(HasSubstr("starting")));
  std::ofstream(folder_.path() / "go").close();
  threads.clear();
  EXPECT_THAT(got, ::testing::Each(got[0]));
  EXPECT_THAT(provider_->Describe(), SizeIs(1));
}

TEST_F(Provider, AFailedStartIsForgotten) {
  const std::string a = Environment("a", "missing");
  auto failed = Get(a);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().kind(), ErrorKind::kEnvironment);
  EXPECT_THAT(provider_->Describe(), SizeIs(0));
  Environment("a");
  EXPECT_TRUE(Get(a).has_value());
}

TEST_F(Provider, CancellingAWaitLeavesTheStartToTheOthers) {
  const std::string a = Environment("a", "slow " + (folder_.path() / "go").string());
  std::jthread starter([&] { EXPECT_TRUE(Get(a).has_value()); });
  AwaitWorkers(1);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(Get(a, stop.get_token()).error().kind(), ErrorKind::kCancelled);
  std::ofstream(folder_.path() / "go").close();
}

TEST_F(Provider, TheLongestIdleGoesWhenThereAreTooMany) {
  for (const char* name : {"a", "b", "c"}) {
    Get(Environment(name)).value().reset();
    clock_.Advance(std::chrono::seconds(1));
  }
  AwaitWorkers(2);
  for (const std::string& line : provider_->Describe()) EXPECT_THAT(line, ::testing::Not(HasSubstr("/a/bin")));
}

TEST_F(Provider, IdleWorkersEndAfterTheirTimeAndBusyOnesDoNot) {
  auto kept = *Get(Environment("a"));
  Get(Environment("b")).value().reset();
  clock_.Advance(std::chrono::minutes(11));
  Get(Environment("c")).value().reset();  // its end makes the pool look
  AwaitWorkers(2);
  EXPECT_TRUE(kept->Probe({"ok"}, {}, {}).has_value());
}

TEST_F(Provider, QueuedJobsAreCounted) {
  auto toolchain = *Get(Environment("a"));
  const std::string go = "wait:" + (folder_.path() / "go").string();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(toolchain->Probe({go}, {}, {}).has_value()); });
  }
  while (provider_->QueuedJobs() < 3) std::this_thread::yield();
  EXPECT_THAT(provider_->Describe()[0], HasSubstr("2 running, 3 queued"));
  std::ofstream(folder_.path() / "go").close();
  threads.clear();
  EXPECT_EQ(provider_->QueuedJobs(), 0U);
}

TEST_F(Provider, ShutdownCancelsAStartAndALeaseMayOutliveThePool) {
  auto lease = *Get(Environment("a"));
  const std::string b = Environment("b", "silent");
  std::jthread starter([&] { EXPECT_EQ(Get(b).error().kind(), ErrorKind::kCancelled); });
  AwaitWorkers(2);
  provider_->Shutdown();
  starter.join();
  EXPECT_THAT(provider_->Describe(), SizeIs(0));
  EXPECT_EQ(Get(b).error().kind(), ErrorKind::kCancelled);
  provider_.reset();
  EXPECT_EQ(lease->Probe({"ok"}, {}, {}).error().kind(), ErrorKind::kCancelled);
}

}  // namespace
}  // namespace kernelwright::worker
