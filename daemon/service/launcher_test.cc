// The rule of versions as a table, and the start of daemons that fail. Real daemons are started in tests/daemon.
#include "daemon/service/launcher.h"

#include <signal.h>

#include <fstream>

#include "daemon/base/files.h"
#include "daemon/base/unique_fd.h"
#include "gtest/gtest.h"

namespace kernelwright::service {
namespace {

VersionChoice Choose(int64_t client_build, ProtocolRange client, int64_t daemon_build, ProtocolRange daemon,
                     uint32_t runs = 0, uint32_t streams = 0) {
  HandshakeResult result;
  result.peer.build = {"0.1.0", daemon_build, "c"};
  result.protocol = daemon;
  result.active_runs = runs;
  result.active_streams = streams;
  return ChooseByVersion({{"0.1.0", client_build, "c"}, client}, result);
}

TEST(ChooseByVersion, FollowsTheOrderOfBuilds) {
  EXPECT_EQ(Choose(5, {1, 1}, 5, {1, 1}), VersionChoice::kUse);
  EXPECT_EQ(Choose(4, {1, 1}, 5, {1, 1}), VersionChoice::kUse);
  EXPECT_EQ(Choose(6, {1, 1}, 5, {1, 1}), VersionChoice::kReplace);  // C02: not by protocol alone
}

TEST(ChooseByVersion, C03BusyDaemonIsNeverReplaced) {
  EXPECT_EQ(Choose(6, {1, 1}, 5, {1, 1}, 1), VersionChoice::kUse);
  EXPECT_EQ(Choose(6, {1, 1}, 5, {1, 1}, 0, 1), VersionChoice::kUse);
  EXPECT_EQ(Choose(6, {2, 2}, 5, {1, 1}, 1), VersionChoice::kWait);
}

TEST(ChooseByVersion, C10SaysWhichSideToUpdate) {
  EXPECT_EQ(Choose(4, {1, 1}, 5, {2, 3}), VersionChoice::kUpdateClient);
  EXPECT_EQ(Choose(6, {2, 2}, 5, {1, 1}, 1), VersionChoice::kWait);
}

TEST(ChooseByVersion, C11WindowHoldsAtBothEnds) {
  EXPECT_EQ(Choose(4, {1, 2}, 5, {2, 4}), VersionChoice::kUse);
  EXPECT_EQ(Choose(4, {4, 5}, 5, {2, 4}), VersionChoice::kUse);
  EXPECT_EQ(Choose(4, {1, 1}, 5, {2, 4}), VersionChoice::kUpdateClient);
  EXPECT_EQ(Choose(4, {5, 5}, 5, {2, 4}), VersionChoice::kUpdateClient);
}

// C01: whatever two builds do, at most one of the two directions replaces.
TEST(ChooseByVersion, C01NeverStopsEachOther) {
  for (int64_t a = 0; a < 4; ++a) {
    for (int64_t b = 0; b < 4; ++b) {
      const bool forward = Choose(a, {1, 1}, b, {1, 1}) == VersionChoice::kReplace;
      const bool back = Choose(b, {1, 1}, a, {1, 1}) == VersionChoice::kReplace;
      EXPECT_FALSE(forward && back);
    }
  }
}

class SpawnTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Expected<TempFolder> made = TempFolder::Make("kw-");
    ASSERT_TRUE(made);
    temp_ = std::make_unique<TempFolder>(std::move(*made));
  }
  Expected<StartupReport> Spawn(const std::string& script,
                                Deadline deadline = Deadline::After(std::chrono::seconds(20))) {
    return SpawnDaemon({.argv = {"/bin/sh", "-c", script, "sh"}, .env = {{"A", "b"}}, .stderr_file = log()}, deadline);
  }
  std::filesystem::path log() const { return temp_->path() / "log"; }
  std::unique_ptr<TempFolder> temp_;
};

TEST_F(SpawnTest, C07TheExitCodeEndsTheWait) {
  const auto before = std::chrono::steady_clock::now();
  const Expected<StartupReport> report = Spawn("echo out; echo broken library >&2; exit 41");
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message().find("exit code 41"), std::string::npos) << report.error().ToString();
  EXPECT_NE(report.error().message().find("broken library"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
  const Expected<StartupReport> killed = Spawn("kill -9 $$");
  EXPECT_NE(killed.error().message().find("signal 9"), std::string::npos);
}

TEST_F(SpawnTest, ReportsArrive) {
  EXPECT_EQ(Spawn(R"(echo '{"status":"ready"}' >&3)")->kind, StartupReport::Kind::kReady);
  EXPECT_EQ(Spawn(R"(echo '{"status":"held","pid":5}' >&3)")->held_by, 5);
  const auto failed = Spawn(
      R"(echo '{"status":"failed","error":{"kind":"environment","message":"no room","where":"/x","remedy":"Tidy."}}' >&3)");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().ToString(), "/x: no room. Tidy.");
  EXPECT_EQ(failed.error().kind(), ErrorKind::kEnvironment);
}

TEST_F(SpawnTest, ADaemonThatHangsIsEnded) {
  const Expected<StartupReport> report = Spawn("echo $$ > " + (temp_->path() / "pid").string() + "; exec sleep 100",
                                               Deadline::After(std::chrono::seconds(1)));
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message().find("in time"), std::string::npos);
  pid_t pid = 0;
  std::ifstream(temp_->path() / "pid") >> pid;
  ASSERT_GT(pid, 0);
  EXPECT_NE(::kill(pid, 0), 0);
}

// The pipe's end once got a number that the child's streams were moved over, so that its end-of-file never came.
TEST_F(SpawnTest, AnyDescriptorNumbersWork) {
  std::vector<UniqueFd> taken;
  for (int i = 0; i < 12; ++i) {
    const Expected<StartupReport> report =
        Spawn("echo noise; echo noise >&2; exit 7", Deadline::After(std::chrono::seconds(10)));
    ASSERT_FALSE(report);
    EXPECT_NE(report.error().message().find("exit code 7: noise noise"), std::string::npos)
        << report.error().ToString();
    taken.emplace_back(::dup(0));
  }
}

TEST_F(SpawnTest, TheDaemonInheritsNothing) {
  ASSERT_TRUE(Spawn("{ env; ls /proc/self/fd; pwd; cat; } > " + (temp_->path() / "seen").string() +
                    R"( 2>&1; ps -o sid= -p $$ >> )" + (temp_->path() / "seen").string() +
                    R"(; echo '{"status":"ready"}' >&3)"));
  const std::string seen = *ReadFile(temp_->path() / "seen");
  EXPECT_NE(seen.find("A=b\n"), std::string::npos) << seen;
  EXPECT_EQ(seen.find("HOME="), std::string::npos) << seen;
  EXPECT_NE(seen.find("\n/\n"), std::string::npos) << seen;
  EXPECT_EQ(seen.find("\n5\n"), std::string::npos) << seen;  // 0 to 3, and 4 of ls itself
}

TEST(DaemonEnvironment, HasNoKeys) {
  std::string entries[] = {"HOME=/h",          "PATH=/bin",         "LC_ALL=C",     "XDG_RUNTIME_DIR=/r",
                           "GEMINI_API_KEY=k", "ANTHROPIC_TOKEN=k", "LD_PRELOAD=x", "odd"};
  std::vector<char*> environment;
  for (std::string& entry : entries) environment.push_back(entry.data());
  environment.push_back(nullptr);
  const std::map<std::string, std::string> expected = {
      {"HOME", "/h"}, {"PATH", "/bin"}, {"LC_ALL", "C"}, {"XDG_RUNTIME_DIR", "/r"}};
  EXPECT_EQ(DaemonEnvironment(environment.data()), expected);
}

}  // namespace
}  // namespace kernelwright::service
