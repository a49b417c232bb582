#include "daemon/base/subprocess.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "daemon/base/files.h"
#include "daemon/base/process_identity.h"
#include "daemon/base/run_command.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

SubprocessOptions Shell(const std::string& script) {
  SubprocessOptions options;
  options.argv = {"sh", "-c", script};
  options.env = {{"PATH", "/usr/bin:/bin"}};
  return options;
}

std::string ReadLine(int fd) {
  std::string line;
  char c = 0;
  while (::read(fd, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

// Waits for a process that is not our child to be gone.
bool EndsSoon(const ProcessIdentity& identity) {
  const Deadline deadline = Deadline::After(seconds(10));
  while (!deadline.expired()) {
    if (!IsAlive(identity)) return true;
    std::this_thread::yield();
  }
  return false;
}

TEST(SubprocessTest, OutputExitCodeAndSignal) {
  CommandResult result = *RunCommand(Shell("echo out; echo err >&2; exit 3"), Deadline::After(seconds(10)));
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.error, "err\n");
  EXPECT_EQ(result.exit.code, 3);
  EXPECT_EQ(result.exit.ToString(), "exit code 3");
  result = *RunCommand(Shell("kill -9 $$"), Deadline::After(seconds(10)));
  EXPECT_EQ(result.exit.signal, SIGKILL);
  EXPECT_EQ(result.exit.ToString(), "signal 9 (Killed)");
}

TEST(SubprocessTest, EnvironmentIsOnlyWhatIsGiven) {
  ::setenv("KW_TEST_LEAK", "1", 1);
  SubprocessOptions options;
  options.argv = {"env"};
  options.env = {{"A", "b c"}};
  EXPECT_EQ(RunCommand(options, Deadline::After(seconds(10)))->output, "A=b c\n");
  ::unsetenv("KW_TEST_LEAK");
}

TEST(SubprocessTest, NoDescriptorLeaks) {
  // Without close-on-exec on purpose: a careless library must not leak into children either.
  UniqueFd leak(::open("/dev/null", O_RDONLY));
  SubprocessOptions options;
  options.argv = {"sh", "-c", "ls /proc/$$/fd"};
  options.env = {{"PATH", "/usr/bin:/bin"}};
  EXPECT_EQ(RunCommand(options, Deadline::After(seconds(10)))->output, "0\n1\n2\n");
}

TEST(SubprocessTest, InheritedDescriptorsArriveUnderTheirNumbers) {
  Pipe first = *MakePipe();
  Pipe second = *MakePipe();
  SubprocessOptions options = Shell("echo one >&4; echo two >&3");
  // Crossed on purpose: each source number may be the other's target.
  options.inherit = {{first.write.get(), 4}, {second.write.get(), 3}};
  Expected<Subprocess> process = Subprocess::Spawn(options);
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(ReadLine(first.read.get()), "one");
  EXPECT_EQ(ReadLine(second.read.get()), "two");
  EXPECT_TRUE(process->Wait(Deadline::After(seconds(10)))->success());
}

TEST(SubprocessTest, InputPipeAndLogFile) {
  TempFolder folder = *TempFolder::Make();
  UniqueFd log(::open((folder.path() / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  SubprocessOptions options;
  options.argv = {"cat"};
  options.input = Stdio::Pipe();
  options.output = Stdio::Fd(log.get());
  Expected<Subprocess> process = Subprocess::Spawn(options);
  ASSERT_TRUE(process.has_value());
  ASSERT_EQ(::write(process->input().get(), "hello", 5), 5);
  EXPECT_FALSE(process->TryWait().has_value());
  process->input().reset();
  EXPECT_TRUE(process->Wait(Deadline::After(seconds(10)))->success());
  EXPECT_EQ(*ReadFile(folder.path() / "log"), "hello");
}

TEST(SubprocessTest, WorkingFolder) {
  SubprocessOptions options = Shell("pwd");
  options.cwd = "/usr";
  EXPECT_EQ(RunCommand(options, Deadline::After(seconds(10)))->output, "/usr\n");
  options.cwd = "/no/such/folder";
  const Status status = RunCommand(options, Deadline::After(seconds(10))).error();
  EXPECT_EQ(status.kind(), ErrorKind::kNotFound);
  EXPECT_EQ(status.where(), "/no/such/folder");
}

// C07: a start that fails is reported at once, with the reason.
TEST(SubprocessTest, StartFailuresAreErrors) {
  SubprocessOptions options;
  options.argv = {"no-such-program-anywhere"};
  EXPECT_EQ(Subprocess::Spawn(options).error().kind(), ErrorKind::kEnvironment);
  TempFolder folder = *TempFolder::Make();
  ASSERT_TRUE(WriteFileAtomically(folder.path() / "bad",
                                  "\x7f"
                                  "ELFnot",
                                  0755));
  options.argv = {(folder.path() / "bad").string()};
  EXPECT_THAT(Subprocess::Spawn(options).error().ToString(), HasSubstr("cannot run the program"));
  options.argv = {folder.path().string()};
  EXPECT_EQ(Subprocess::Spawn(options).error().kind(), ErrorKind::kEnvironment);
}

TEST(SubprocessTest, DeadlineAndCancelEndTheGroup) {
  Expected<CommandResult> result = RunCommand(Shell("sleep 100"), Deadline::After(milliseconds(50)));
  EXPECT_EQ(result.error().kind(), ErrorKind::kLimit);
  std::stop_source stop;
  std::jthread canceller([&] { stop.request_stop(); });
  result = RunCommand(Shell("sleep 100"), Deadline::Never(), stop.get_token());
  EXPECT_EQ(result.error().kind(), ErrorKind::kCancelled);
}

TEST(SubprocessTest, TerminateKillsWhatIgnoresTheRequest) {
  SubprocessOptions options = Shell("trap '' TERM; echo ready; while :; do sleep 1; done");
  options.output = Stdio::Pipe();
  Expected<Subprocess> process = Subprocess::Spawn(options);
  ASSERT_TRUE(process.has_value());
  ASSERT_EQ(ReadLine(process->output().get()), "ready");
  EXPECT_EQ(process->Terminate(milliseconds(20)).signal, SIGKILL);
  EXPECT_EQ(process->Terminate(milliseconds(20)).signal, SIGKILL);
}

TEST(SubprocessTest, TerminateLetsAWillingChildFinish) {
  SubprocessOptions options = Shell("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done");
  options.output = Stdio::Pipe();
  Expected<Subprocess> process = Subprocess::Spawn(options);
  ASSERT_TRUE(process.has_value());
  ASSERT_EQ(ReadLine(process->output().get()), "ready");
  EXPECT_EQ(process->Terminate(seconds(10)).code, 7);
}

// C21: grandchildren that hold the pipes are ended with the group, so that end-of-file comes.
TEST(SubprocessTest, GrandchildrenEndWithTheChild) {
  const CommandResult result = *RunCommand(Shell("sleep 1000 & echo $!"), Deadline::After(seconds(20)));
  EXPECT_TRUE(result.exit.success());
  EXPECT_NE(std::stoi(result.output), 0);
}

TEST(SubprocessTest, WithoutPidfd) {
  SubprocessOptions options = Shell("exit 4");
  options.use_pidfd = false;
  Expected<Subprocess> process = Subprocess::Spawn(options);
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->exit_fd(), -1);
  EXPECT_EQ(process->Wait(Deadline::After(seconds(10)))->code, 4);
  EXPECT_EQ(RunCommand(options, Deadline::After(seconds(10)))->exit.code, 4);
}

TEST(SubprocessTest, SurvivesTheThreadThatStartedIt) {
  std::optional<Subprocess> process;
  std::thread([&] {
    SubprocessOptions options = Shell("read x; exit 5");
    options.input = Stdio::Pipe();
    process.emplace(*Subprocess::Spawn(options));
  }).join();
  EXPECT_FALSE(process->TryWait().has_value());
  process->input().reset();
  EXPECT_EQ(process->Wait(Deadline::After(seconds(10)))->code, 5);
}

TEST(SubprocessTest, ManyThreadsAtOnce) {
  std::vector<std::jthread> threads;
  threads.reserve(8);
  std::atomic<int> good = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 5; ++k) {
        auto result = RunCommand(Shell("echo " + std::to_string(i)), Deadline::After(seconds(30)));
        if (result && result->output == std::to_string(i) + "\n") ++good;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(good, 40);
}

TEST(SubprocessTest, OutputLimit) {
  const CommandResult result = *RunCommand(Shell("head -c 100000 /dev/zero"), Deadline::After(seconds(10)), {}, 1000);
  EXPECT_EQ(result.output.size(), 1000U);
  EXPECT_TRUE(result.truncated);
}

// The program of the next test that is killed: starts a child with a grandchild, both deaf to requests, and waits.
// Descriptor 3 takes their numbers.
TEST(SubprocessTest, DISABLED_StarterOfNoOrphans) {
  SubprocessOptions options = Shell("trap '' TERM HUP; (trap '' TERM HUP; exec sleep 1000) & echo $$ $!; wait");
  options.output = Stdio::Fd(3);
  Expected<Subprocess> process = Subprocess::Spawn(options);
  ASSERT_TRUE(process.has_value());
  process->Wait(Deadline::Never());
}

// Invariant NoOrphans: when this program is killed, nothing that it started is left, grandchildren included.
TEST(SubprocessTest, NoOrphans) {
  Pipe report = *MakePipe();
  SubprocessOptions options;
  options.argv = {"/proc/self/exe", "--gtest_filter=*.DISABLED_StarterOfNoOrphans", "--gtest_also_run_disabled_tests"};
  options.env = {{"PATH", "/usr/bin:/bin"}};
  options.inherit = {{report.write.get(), 3}};
  Expected<Subprocess> starter = Subprocess::Spawn(options);
  ASSERT_TRUE(starter.has_value());
  report.write.reset();
  int child = 0;
  int grandchild = 0;
  ASSERT_EQ(std::sscanf(ReadLine(report.read.get()).c_str(), "%d %d", &child, &grandchild), 2);
  const ProcessIdentity child_identity = *IdentifyProcess(child);
  const ProcessIdentity grandchild_identity = *IdentifyProcess(grandchild);
  // Only the starter itself gets the signal; what it started is in other groups.
  ASSERT_EQ(::kill(starter->pid(), SIGKILL), 0);
  EXPECT_EQ(starter->Wait(Deadline::Never())->signal, SIGKILL);
  EXPECT_TRUE(EndsSoon(child_identity));
  EXPECT_TRUE(EndsSoon(grandchild_identity));
  char byte = 0;
  EXPECT_EQ(::read(report.read.get(), &byte, 1), 0);  // nobody, the guard included, holds the other end
}

}  // namespace
}  // namespace kernelwright
