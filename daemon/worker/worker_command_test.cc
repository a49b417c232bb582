// The command line and the environment of a worker, and the folders that it shows to jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "daemon/worker/provider.h"

namespace kernelwright::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Every folder exists; the files are those named.
struct Folders : FolderSystem {
  std::set<std::string> missing;
  std::set<std::string> packages;  // folders with an __init__.py
  bool Exists(const fs::path& path) const override {
    if (path.filename() == "__init__.py") return packages.contains(path.parent_path().string());
    return !missing.contains(path.string());
  }
};

struct OnePython : InterpreterSystem {
  bool IsExecutableFile(const fs::path& path) const override { return path == "/env/bin/python"; }
  bool IsFolder(const fs::path& path) const override { return path == "/env"; }
  bool IsOurs(const fs::path&) const override { return true; }
  std::optional<fs::path> FindOnPath(const std::string&, const std::string&) const override { return std::nullopt; }
};

agents::ToolchainOptions Options() {
  agents::ToolchainOptions options;
  options.python = "/env";
  options.file = "/home/u/p/pkg/sub/mm.py";
  options.working_directory = "/home/u/w";
  return options;
}

TEST(ReadableRoots, AFileInAPackageIsReadFromThePackagesParent) {
  Folders folders;
  folders.packages = {"/home/u/p/pkg", "/home/u/p/pkg/sub"};
  EXPECT_THAT(ReadableRoots(Options(), folders), ElementsAre("/home/u/p", "/home/u/w"));
  folders.packages = {};
  EXPECT_THAT(ReadableRoots(Options(), folders), ElementsAre("/home/u/p/pkg/sub", "/home/u/w"));
}

TEST(ReadableRoots, NestedMissingAndWholeDiskFoldersAreLeftOut) {
  Folders folders;
  folders.missing = {"/gone"};
  agents::ToolchainOptions options = Options();
  options.working_directory = "/home/u/p/pkg";
  options.readable_folders = {"/", "/gone", "/data/", "/data/x/..", "/database"};
  options.environment["PYTHONPATH"] = ":lib:/extra";
  EXPECT_THAT(ReadableRoots(options, folders), ElementsAre("/data", "/database", "/extra", "/home/u/p/pkg"));
}

TEST(WorkerCommand, NamesTheInterpreterTheFoldersAndTheSandbox) {
  auto command = MakeWorkerCommand({.agents_folder = "/kw/agents", .proto_python_folder = "/kw/python"}, Options(),
                                   OnePython(), Folders());
  ASSERT_TRUE(command.has_value()) << command.error().ToString();
  EXPECT_THAT(command->argv,
              ElementsAre("/env/bin/python", "-m", "kernelwright_worker", "--sandbox", "auto", "--runtime",
                          "/kw/python", "--read-only", "/home/u/p/pkg/sub", "--read-only", "/home/u/w"));
  EXPECT_GE(command->parallel_jobs, 1U);
}

TEST(WorkerCommand, NoKeyComesAlong) {
  agents::ToolchainOptions options = Options();
  options.environment = {{"HOME", "/home/u"},      {"GEMINI_API_KEY", "k"}, {"AWS_SECRET_ACCESS_KEY", "k"},
                         {"PYTHONPATH", "lib:/x"}, {"SSH_AUTH_SOCK", "/s"}, {"PYTHONSTARTUP", "/evil.py"}};
  auto command = MakeWorkerCommand({.agents_folder = "/kw/agents", .proto_python_folder = "/kw/python"}, options,
                                   OnePython(), Folders());
  ASSERT_TRUE(command.has_value());
  EXPECT_EQ(command->environment,
            (std::map<std::string, std::string>{{"HOME", "/home/u"},
                                                {"PYTHONPATH", "/kw/agents/worker:/home/u/w/lib:/x"},
                                                {"PYTHONSAFEPATH", "1"},
                                                {"PYTHONUNBUFFERED", "1"}}));
}

TEST(WorkerCommand, AnIncompleteInstallationIsNamed) {
  Folders folders;
  folders.missing = {"/kw/agents/worker/kernelwright_worker"};
  auto command = MakeWorkerCommand({.agents_folder = "/kw/agents", .proto_python_folder = "/kw/python"}, Options(),
                                   OnePython(), folders);
  ASSERT_FALSE(command.has_value());
  EXPECT_EQ(command.error().kind(), ErrorKind::kEnvironment);
  EXPECT_THAT(command.error().where(), HasSubstr("kernelwright_worker"));
}

}  // namespace
}  // namespace kernelwright::worker
