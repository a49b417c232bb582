#include "daemon/base/lock_file.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "daemon/base/files.h"
#include "daemon/base/process_identity.h"
#include "daemon/base/subprocess.h"
#include "gtest/gtest.h"

namespace kernelwright {
namespace {

class LockFileTest : public ::testing::Test {
 protected:
  TempFolder folder_ = *TempFolder::Make();
  std::filesystem::path path_ = folder_.path() / "lock";
};

TEST_F(LockFileTest, SecondTakerLearnsTheHolder) {
  auto first = LockFile::TryLock(path_);
  ASSERT_TRUE(first.has_value());
  ASSERT_TRUE(std::holds_alternative<LockFile>(*first));
  auto second = LockFile::TryLock(path_);
  ASSERT_TRUE(std::holds_alternative<LockFile::Held>(*second));
  EXPECT_EQ(std::get<LockFile::Held>(*second).pid, ::getpid());
  EXPECT_EQ(*LockFile::Holder(path_), ::getpid());
  EXPECT_EQ(LockFile::Lock(path_, Deadline::After(std::chrono::milliseconds(5))).error().kind(), ErrorKind::kConflict);
}

TEST_F(LockFileTest, FreedWithTheObject) {
  {
    auto lock = LockFile::TryLock(path_);
  }
  EXPECT_EQ(*LockFile::Holder(path_), 0);
  EXPECT_TRUE(LockFile::Lock(path_, Deadline::Never()).has_value());
}

// C05: of many takers at once exactly one has the lock.
TEST_F(LockFileTest, OneOfTwentyWins) {
  std::atomic<int> winners = 0;
  std::vector<LockFile::Attempt> results(20);
  std::vector<std::jthread> threads;
  threads.reserve(20);
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&, i] {
      auto result = LockFile::TryLock(path_);
      if (result && std::holds_alternative<LockFile>(*result)) ++winners;
      if (result) results[static_cast<size_t>(i)] = std::move(*result);
    });
  }
  threads.clear();
  EXPECT_EQ(winners, 1);
}

TEST_F(LockFileTest, KernelFreesItWhenTheHolderIsKilled) {
  SubprocessOptions options;
  options.argv = {"flock", "-x", path_.string(), "sh", "-c", "echo held; exec sleep 100"};
  options.env = {{"PATH", "/usr/bin:/bin"}};
  options.output = Stdio::Pipe();
  Expected<Subprocess> holder = Subprocess::Spawn(options);
  ASSERT_TRUE(holder.has_value()) << holder.error().ToString();
  char byte = 0;
  ASSERT_EQ(::read(holder->output().get(), &byte, 1), 1);
  EXPECT_TRUE(std::holds_alternative<LockFile::Held>(*LockFile::TryLock(path_)));
  holder->Signal(SIGKILL);
  EXPECT_TRUE(LockFile::Lock(path_, Deadline::After(std::chrono::seconds(10))).has_value());
}

TEST(ProcessIdentityTest, OwnProcessIsAliveAndRoundTrips) {
  const ProcessIdentity self = *CurrentProcess();
  EXPECT_EQ(self.pid, ::getpid());
  EXPECT_TRUE(IsAlive(self));
  EXPECT_EQ(*ProcessIdentity::Parse(self.ToString()), self);
  ProcessIdentity reused = self;
  ++reused.start_ticks;
  EXPECT_FALSE(IsAlive(reused));
  ProcessIdentity rebooted = self;
  rebooted.boot_id = "other";
  EXPECT_FALSE(IsAlive(rebooted));
  for (const char* text : {"", "x", "a:b", "a:1:x", "a:1:2x", ":"}) {
    EXPECT_FALSE(ProcessIdentity::Parse(text).has_value()) << text;
  }
}

TEST(ProcessIdentityTest, DeadProcessIsNotAlive) {
  SubprocessOptions options;
  options.argv = {"sleep", "100"};
  Expected<Subprocess> process = Subprocess::Spawn(options);
  ASSERT_TRUE(process.has_value());
  const ProcessIdentity identity = *IdentifyProcess(process->pid());
  EXPECT_TRUE(IsAlive(identity));
  process->Terminate(std::chrono::milliseconds(0));
  EXPECT_FALSE(IsAlive(identity));
}

}  // namespace
}  // namespace kernelwright
