// The choice of the interpreter over an imagined machine.
#include "daemon/worker/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace kernelwright::worker {
namespace {

namespace fs = std::filesystem;
using Origin = InterpreterChoice::Origin;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Machine : InterpreterSystem {
  std::set<std::string> programs;
  std::set<std::string> foreign;  // folders of other users
  std::map<std::string, std::string> path;

  bool IsExecutableFile(const fs::path& file) const override { return programs.contains(file.string()); }
  bool IsFolder(const fs::path& folder) const override {
    const std::string prefix = folder.string() + "/";
    const auto it = programs.lower_bound(prefix);
    return it != programs.end() && it->starts_with(prefix);
  }
  bool IsOurs(const fs::path& folder) const override { return !foreign.contains(folder.string()); }
  std::optional<fs::path> FindOnPath(const std::string& name, const std::string& list) const override {
    const auto it = path.find(name);
    if (it == path.end() || list.empty()) return std::nullopt;
    return it->second;
  }
};

class Interpreter : public ::testing::Test {
 protected:
  Interpreter() {
    query.file = "/home/u/project/src/kernels/mm.py";
    query.working_directory = "/home/u/project";
    query.environment = {{"HOME", "/home/u"}, {"PATH", "/usr/bin"}};
  }
  InterpreterChoice Choose() {
    auto choice = ChooseInterpreter(query, machine);
    EXPECT_TRUE(choice.has_value()) << choice.error().ToString();
    return choice.value_or(InterpreterChoice());
  }

  Machine machine;
  InterpreterQuery query;
};

TEST_F(Interpreter, TheOrderIsNamedActiveVenvOwn) {
  const std::string own = "/home/u/.local/share/kernelwright/python/bin/python";
  machine.programs = {own};
  EXPECT_EQ(Choose().python, own);
  EXPECT_EQ(Choose().origin, Origin::kOwn);

  machine.programs.insert("/home/u/project/.venv/bin/python");
  EXPECT_EQ(Choose().python, "/home/u/project/.venv/bin/python");
  machine.programs.insert("/home/u/project/src/.venv/bin/python");
  EXPECT_EQ(Choose().python, "/home/u/project/src/.venv/bin/python");
  EXPECT_EQ(Choose().origin, Origin::kVenv);

  machine.programs.insert("/envs/a/bin/python");
  query.environment["VIRTUAL_ENV"] = "/envs/a";
  EXPECT_EQ(Choose().python, "/envs/a/bin/python");
  EXPECT_EQ(Choose().origin, Origin::kActive);

  machine.programs.insert("/opt/python/bin/python3");
  query.python = "/opt/python";
  EXPECT_EQ(Choose().python, "/opt/python/bin/python3");
  EXPECT_EQ(Choose().origin, Origin::kNamed);
}

TEST_F(Interpreter, ANameMayBeAProgramAPathOrAFolder) {
  machine.programs = {"/usr/bin/python3.12", "/home/u/project/env/bin/python", "/home/u/py/bin/python"};
  machine.path = {{"python3.12", "/usr/bin/python3.12"}};
  query.python = "python3.12";
  EXPECT_EQ(Choose().python, "/usr/bin/python3.12");
  query.python = "env";
  EXPECT_EQ(Choose().python, "/home/u/project/env/bin/python");
  query.python = "env/bin/python";
  EXPECT_EQ(Choose().python, "/home/u/project/env/bin/python");
  query.python = "~/py";
  EXPECT_EQ(Choose().python, "/home/u/py/bin/python");
}

TEST_F(Interpreter, AWrongNameIsNeverReplaced) {
  machine.programs = {"/home/u/project/.venv/bin/python", "/data/file"};
  for (const char* name : {"python9", "/nowhere/python", "/data"}) {
    query.python = name;
    auto choice = ChooseInterpreter(query, machine);
    ASSERT_FALSE(choice.has_value()) << name;
    EXPECT_EQ(choice.error().kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(choice.error().remedy(), HasSubstr("--python"));
  }
}

TEST_F(Interpreter, WhatWasPassedOverIsRecorded) {
  machine.programs = {"/home/u/project/src/.venv/lib/x", "/home/u/.venv/bin/python", "/.venv/bin/python"};
  machine.foreign = {"/home/u/.venv"};
  query.environment["VIRTUAL_ENV"] = "/gone";
  const InterpreterChoice choice = Choose();
  EXPECT_EQ(choice.python, "/.venv/bin/python");
  EXPECT_THAT(choice.looked_at,
              ElementsAre("VIRTUAL_ENV=/gone (has no bin/python)", "/home/u/project/src/.venv (has no bin/python)",
                          "/home/u/.venv (belongs to another user)", "/.venv/bin/python"));
}

TEST_F(Interpreter, WithoutAnyTheErrorListsThePlacesAndTheRemedy) {
  auto choice = ChooseInterpreter(query, machine);
  ASSERT_FALSE(choice.has_value());
  EXPECT_EQ(choice.error().kind(), ErrorKind::kEnvironment);
  EXPECT_THAT(choice.error().message(), HasSubstr("VIRTUAL_ENV (not set)"));
  EXPECT_THAT(choice.error().message(), HasSubstr(".venv in the folders above /home/u/project/src/kernels/mm.py"));
  EXPECT_THAT(choice.error().message(), HasSubstr("/home/u/.local/share/kernelwright/python (not set up)"));
  EXPECT_THAT(choice.error().remedy(), HasSubstr("scripts/setup"));
  EXPECT_THAT(choice.error().remedy(), HasSubstr("--python"));
}

TEST_F(Interpreter, OurOwnFolderFollowsTheVariables) {
  EXPECT_EQ(OwnEnvironmentFolder({{"KERNELWRIGHT_HOME", "/kw"}, {"XDG_DATA_HOME", "/d"}, {"HOME", "/h"}}),
            "/kw/python");
  EXPECT_EQ(OwnEnvironmentFolder({{"XDG_DATA_HOME", "/d"}, {"HOME", "/h"}}), "/d/kernelwright/python");
  EXPECT_EQ(OwnEnvironmentFolder({{"HOME", "/h"}}), "/h/.local/share/kernelwright/python");
  EXPECT_EQ(OwnEnvironmentFolder({}), "");
}

TEST_F(Interpreter, ARelativeFileIsSeenFromTheWorkingFolder) {
  machine.programs = {"/home/u/project/sub/.venv/bin/python"};
  query.file = "sub/x/../mm.py";
  EXPECT_EQ(Choose().python, "/home/u/project/sub/.venv/bin/python");
}

}  // namespace
}  // namespace kernelwright::worker
