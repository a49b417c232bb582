// Every tool as a model calls it: what it shows, what it refuses, and that no path leads out of the workspace.
#include <filesystem>
#include <set>

#include "daemon/base/files.h"
#include "daemon/base/redact.h"
#include "daemon/tools/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright::tools {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class FakeActions : public KernelActions {
 public:
  Expected<ActionReport> Check(const ActionRequest& request, const std::stop_token&) override {
    return Do("check", request);
  }
  Expected<ActionReport> Compile(const ActionRequest& request, const std::stop_token&) override {
    return Do("compile", request);
  }
  Expected<ActionReport> Profile(const ActionRequest& request, const std::stop_token&) override {
    return Do("profile", request);
  }
  Expected<ActionReport> Tune(const ActionRequest& request, const std::stop_token&) override {
    return Do("tune", request);
  }
  ActionRequest last;
  Status fault;

 private:
  Expected<ActionReport> Do(const std::string& what, const ActionRequest& request) {
    last = request;
    if (!fault.ok()) return Fail(fault);
    return ActionReport{.good = true, .text = what + " is fine", .data = nullptr};
  }
};

class FakeLibrary : public ApiLibrary {
 public:
  Expected<ApiEntry> Lookup(const std::string& name, const std::stop_token&) override {
    asked.push_back(name);
    if (name.find("Nothing") != std::string::npos) return Fail(ErrorKind::kNotFound, "no such name", name, "Near: x");
    ApiEntry entry;
    entry.name = name;
    entry.kind = "class";
    entry.signature = "BlockSpec(block_shape, index_map)";
    entry.doc = "A block.";
    entry.source = "class BlockSpec: ...";
    entry.file = "pallas/core.py";
    entry.line = 7;
    entry.version = "jax 0.10.2";
    return entry;
  }
  std::vector<std::string> asked;
};

class FakeHistory : public RunHistory {
 public:
  Expected<std::vector<HistoryEntry>> Entries() override { return entries; }
  std::vector<HistoryEntry> entries;
};

class ToolsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto write = [&](const std::string& path, const std::string& text) {
      const fs::path file = folder_.path() / "work" / path;
      fs::create_directories(file.parent_path());
      ASSERT_TRUE(WriteFileAtomically(file, text).ok());
    };
    write("k.py", "BM = 128\n\ndef f(x):\n    return x + BM\n");
    write("lib/util.py", "def g(x):\n    return x\n");
    write(".env", "KEY=abcdefgh\n");
    write(".git/config", "secret\n");
    write("server.pem", "secret\n");
    write("data.bin", std::string("\0\1\2", 3));
    fs::create_directory(folder_.path() / "outside");
    ASSERT_TRUE(WriteFileAtomically(folder_.path() / "outside" / "o.py", "x = 1\n").ok());
    fs::create_symlink("../outside/o.py", folder_.path() / "work" / "link.py");
    fs::create_symlink("../outside", folder_.path() / "work" / "linked");
    workspace_ = std::make_unique<Workspace>(Workspace::Open(folder_.path() / "work").value());
    knowledge_ = KnowledgeIndex::FromSections({{"a.md", "Spills", "too many live registers"}}).value();
    chips_ = std::make_unique<cost::ChipTable>(
        cost::ParseChips(ReadFile(std::string(KW_SOURCE_DIR) + "/agents/chips.json").value()).value());
    box_ = MakeToolBox(Services()).value();
  }
  ToolServices Services() {
    return {workspace_.get(), true, &actions_, &library_, knowledge_.get(), &history_, chips_.get()};
  }
  ToolOutput Call(const std::string& name, const Json& arguments) {
    models::ToolCall call;
    call.id = "c";
    call.name = name;
    call.arguments = arguments;
    const Expected<ToolOutput> output = box_.Run(call, {}, {});
    EXPECT_TRUE(output) << output.error().ToString();
    return output ? *output : ToolOutput{};
  }

  TempFolder folder_ = TempFolder::Make().value();
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<KnowledgeIndex> knowledge_;
  std::unique_ptr<cost::ChipTable> chips_;
  FakeActions actions_;
  FakeLibrary library_;
  FakeHistory history_;
  ToolBox box_;
};

TEST_F(ToolsTest, AllToolsAndNoShell) {
  EXPECT_THAT(box_.Names(), ElementsAre("read_file", "search_workspace", "propose_edit", "compile", "check", "profile",
                                        "tune", "look_up_api", "search_knowledge", "run_history", "chip_table"));
}

TEST_F(ToolsTest, StagesThatOnlyReadHaveNoEdit) {
  ToolServices services = Services();
  services.may_edit = false;
  services.api = nullptr;
  const ToolBox box = MakeToolBox(services).value();
  EXPECT_THAT(box.Names(), AllOf(Not(Contains("propose_edit")), Not(Contains("look_up_api"))));
}

TEST_F(ToolsTest, ReadFile) {
  const ToolOutput output = Call("read_file", {{"path", "k.py"}, {"first_line", 3}});
  EXPECT_EQ(output.text, "k.py, lines 3-4 of 4\n3| def f(x):\n4|     return x + BM\n");
  EXPECT_TRUE(output.progress);
  EXPECT_FALSE(Call("read_file", {{"path", "k.py"}, {"first_line", 3}}).progress) << "nothing new";
  EXPECT_THAT(Call("read_file", {{"path", "k.p"}}).text, HasSubstr("Did you mean k.py?"));
  EXPECT_THAT(Call("read_file", {{"path", "k.py"}, {"first_line", 9}}).text, HasSubstr("has 4 lines"));
  EXPECT_THAT(Call("read_file", {{"path", "lib"}}).text, HasSubstr("folder"));
  EXPECT_THAT(Call("read_file", {{"path", "data.bin"}}).text, HasSubstr("UTF-8"));
}

TEST_F(ToolsTest, C61NoPathLeadsOutOfTheWorkspace) {
  for (const char* path : {"../outside/o.py", "/etc/passwd", "lib/../../outside/o.py", "link.py", "linked/o.py", ".env",
                           ".git/config", "server.pem", "", ".", "..", "lib/./../../x", "linked/../linked/o.py"}) {
    EXPECT_TRUE(Call("read_file", {{"path", path}}).is_error) << path;
    EXPECT_TRUE(Call("propose_edit", {{"path", path}, {"blocks", {{{"search", ""}, {"replace", "x"}}}}}).is_error)
        << path;
  }
  EXPECT_TRUE(workspace_->Edited().empty());
  EXPECT_THAT(workspace_->List(), ElementsAre("k.py", "lib/util.py"));
}

TEST_F(ToolsTest, SearchWorkspace) {
  EXPECT_THAT(Call("search_workspace", {{"text", "RETURN"}, {"any_case", true}}).text,
              AllOf(HasSubstr("2 lines in 2 files"), HasSubstr("lib/util.py:2| return x")));
  EXPECT_EQ(Call("search_workspace", {{"path_contains", "lib"}}).text, "lib/util.py\n");
  EXPECT_TRUE(Call("search_workspace", {{"text", "secret"}}).is_error);
}

TEST_F(ToolsTest, ProposeEditChangesTheTextsOnly) {
  const ToolOutput output =
      Call("propose_edit", {{"path", "k.py"}, {"blocks", {{{"search", "BM = 128"}, {"replace", "BM = 256"}}}}});
  EXPECT_FALSE(output.is_error) << output.text;
  EXPECT_THAT(output.text, AllOf(HasSubstr("-BM = 128"), HasSubstr("+BM = 256")));
  EXPECT_THAT(Call("read_file", {{"path", "k.py"}}).text, HasSubstr("1| BM = 256"));
  EXPECT_THAT(ReadFile(folder_.path() / "work" / "k.py").value(), HasSubstr("BM = 128"));
  EXPECT_THAT(output.data["base_sha256"], Not(output.data["sha256"]));
}

TEST_F(ToolsTest, C35AnEditThatBreaksTheSyntaxChangesNothing) {
  const ToolOutput output =
      Call("propose_edit", {{"path", "k.py"}, {"blocks", {{{"search", "def f(x):"}, {"replace", "def f(x:"}}}}});
  EXPECT_TRUE(output.is_error);
  EXPECT_THAT(output.text, AllOf(HasSubstr("Nothing was changed"), HasSubstr("3| def f(x:")));
  EXPECT_TRUE(workspace_->Edited().empty());
}

TEST_F(ToolsTest, NewFilesCanBeMadeAndExistingOnesNotReplaced) {
  EXPECT_FALSE(
      Call("propose_edit", {{"path", "new.py"}, {"blocks", {{{"search", ""}, {"replace", "A = 1"}}}}}).is_error);
  EXPECT_EQ(workspace_->Edited().at("new.py"), "A = 1\n");
  EXPECT_TRUE(Call("propose_edit", {{"path", "k.py"}, {"blocks", {{{"search", ""}, {"replace", "A = 1"}}}}}).is_error);
  EXPECT_THAT(Call("propose_edit", {{"path", "no.py"}, {"blocks", {{{"search", "a"}, {"replace", "b"}}}}}).text,
              HasSubstr("does not exist"));
}

TEST_F(ToolsTest, KernelActionsSeeTheEdits) {
  Call("propose_edit", {{"path", "k.py"}, {"blocks", {{{"search", "BM = 128"}, {"replace", "BM = 256"}}}}});
  EXPECT_EQ(Call("compile", Json::object()).text, "compile is fine");
  EXPECT_THAT(actions_.last.files.at("k.py"), HasSubstr("BM = 256"));
  EXPECT_EQ(Call("check", {{"chips", {"v5e"}}}).text, "check is fine");
  EXPECT_THAT(actions_.last.chips, ElementsAre("v5e"));
  EXPECT_TRUE(Call("tune", {{"chips", {"v9"}}}).is_error);
  actions_.fault = Status(ErrorKind::kUserCode, "D07: the block is too large", "k.py:3");
  EXPECT_TRUE(Call("profile", Json::object()).is_error);
  actions_.fault = Status(ErrorKind::kLimit, "no time left");
  models::ToolCall call;
  call.name = "compile";
  call.arguments = Json::object();
  EXPECT_EQ(box_.Run(call, {}, {}).error().kind(), ErrorKind::kLimit) << "this is not for the model to mend";
}

TEST_F(ToolsTest, LookUpApi) {
  EXPECT_THAT(Call("look_up_api", {{"name", "pl.BlockSpec"}}).text,
              AllOf(HasSubstr("jax.experimental.pallas.BlockSpec: class (jax 0.10.2)"), HasSubstr("A block."),
                    Not(HasSubstr("class BlockSpec"))));
  EXPECT_THAT(Call("look_up_api", {{"name", "pl.BlockSpec"}, {"source", true}}).text, HasSubstr("class BlockSpec"));
  EXPECT_TRUE(Call("look_up_api", {{"name", "pl.Nothing"}}).is_error);
  for (const char* bad : {"__import__('os')", "a b", "a..b", ".a", "a.", "1a"}) {
    EXPECT_TRUE(Call("look_up_api", {{"name", bad}}).is_error) << bad;
  }
  EXPECT_EQ(library_.asked.size(), 3);
}

TEST_F(ToolsTest, HistoryNotesAndChips) {
  EXPECT_THAT(Call("run_history", Json::object()).text, HasSubstr("Nothing"));
  history_.entries = {{"c1", "bm=512", "failed", "compile", "D07 VMEM", std::nullopt, "v5e", ""},
                      {"c2", "bm=256", "best", "", "", 1.25, "v5e", "estimated"}};
  EXPECT_THAT(Call("run_history", Json::object()).text,
              AllOf(HasSubstr("c1 failed: bm=512 [compile]\n   why: D07 VMEM"), HasSubstr("1.25 ms estimated on v5e")));
  EXPECT_THAT(Call("run_history", {{"only", "failed"}}).text, Not(HasSubstr("c2")));
  EXPECT_THAT(Call("search_knowledge", {{"query", "spilled registers?"}}).text, HasSubstr("## Spills (a.md)"));
  EXPECT_TRUE(Call("search_knowledge", {{"query", "!!"}}).is_error);
  EXPECT_THAT(Call("chip_table", {{"chip", "v6e"}}).text, AllOf(HasSubstr("256x256"), HasSubstr("HBM bandwidth")));
  EXPECT_THAT(Call("chip_table", {{"chip", "v7"}}).text, HasSubstr("tpu7x"));
}

TEST_F(ToolsTest, WrongCallsAreAnsweredWithTheCure) {
  EXPECT_THAT(Call("read_fil", Json::object()).text, HasSubstr("did you mean `read_file`?"));
  EXPECT_THAT(Call("read_file", {{"pth", "k.py"}}).text,
              AllOf(HasSubstr("`path` is missing"), HasSubstr("did you mean `path`?")));
  EXPECT_THAT(Call("read_file", {{"path", 3}}).text, HasSubstr("`path` must be a string, got 3"));
  models::ToolCall broken;
  broken.name = "read_file";
  broken.malformed = "unexpected end";
  EXPECT_THAT(box_.Run(broken, {}, {})->text, HasSubstr("not a JSON object"));
  models::ToolCall call;
  call.name = "propose_edit";
  call.arguments = Json::object();
  EXPECT_THAT(box_.Run(call, {"read_file"}, {})->text, HasSubstr("The tools are read_file"))
      << "not allowed to this agent";
  std::stop_source stop;
  stop.request_stop();
  call.name = "chip_table";
  call.arguments = {{"chip", "v5e"}};
  EXPECT_EQ(box_.Run(call, {}, stop.get_token()).error().kind(), ErrorKind::kCancelled);
}

TEST_F(ToolsTest, LongResultsAreCutAndKeysTakenOut) {
  std::string text;
  for (int i = 0; i < 390; ++i) text += "value_" + std::to_string(i) + " = '" + std::string(60, 'x') + "'\n";
  ASSERT_TRUE(workspace_->Put("long.py", text).ok());
  const ToolOutput output = Call("read_file", {{"path", "long.py"}});
  EXPECT_LE(output.text.size(), ToolBox::kMostOutputBytes);
  EXPECT_THAT(output.text, HasSubstr("more lines; ask for a smaller part]"));
  ProcessRedactor().AddSecret("tool.secret.99");
  ASSERT_TRUE(workspace_->Put("key.py", "K = 'tool.secret.99'\n").ok());
  EXPECT_THAT(Call("read_file", {{"path", "key.py"}}).text, Not(HasSubstr("tool.secret.99")));
  ProcessRedactor().RemoveSecret("tool.secret.99");
}

TEST(CutLinesTest, AlwaysFits) {
  const std::string text = "first line\nsecond line\n" + std::string(500, 'y') + "\nend\n";
  for (size_t most = 60; most < text.size() + 10; ++most) {
    ASSERT_LE(CutLines(text, most, "narrow it").size(), most + 3) << most;
  }
  EXPECT_EQ(CutLines("a\nb\n", 100, ""), "a\nb\n");
}

}  // namespace
}  // namespace kernelwright::tools
