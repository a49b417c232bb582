// Prompts as files: what they may hold, how they are filled in, and that the shipped ones fit the tools there are.
#include "daemon/prompts/prompt.h"

#include <set>

#include "daemon/base/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright::prompts {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kPrompt =
    "---\ndescription: A test.\ntools: read_file, compile\nvariables: error 9 both, chip 1\n---\n"
    "# System\nYou test.\n# Task\nOn {{chip}}:\n{{#error}}\nFailed:\n{{error}}\n{{/error}}\nEnd.\n";

std::string Error(const std::string& text, const std::string& schema = "") {
  const auto parsed = ParsePrompt("p", text, schema, "p.md");
  return parsed ? "no error" : parsed.error().ToString();
}

TEST(PromptTest, FrontMatterAndParts) {
  const Prompt prompt = ParsePrompt("p", kPrompt, "", "p.md").value();
  EXPECT_EQ(prompt.description, "A test.");
  EXPECT_THAT(prompt.tools, ElementsAre("read_file", "compile"));
  EXPECT_EQ(prompt.Find("error")->keep, Keep::kBoth);
  EXPECT_EQ(prompt.system, "You test.");
  EXPECT_THAT(prompt.version, SizeIs(12));
  EXPECT_NE(prompt.version, ParsePrompt("p", std::string(kPrompt) + " ", "", "p.md")->version);
  EXPECT_NE(prompt.version, ParsePrompt("p", kPrompt, R"({"type": "string"})", "p.md")->version);
}

TEST(PromptTest, TemplatesAreFilledInOnce) {
  const Prompt prompt = ParsePrompt("p", kPrompt, "", "p.md").value();
  EXPECT_EQ(Render(prompt.task, {{"chip", "v5e"}}), "On v5e:\nEnd.");
  EXPECT_EQ(Render(prompt.task, {{"chip", "v5e"}, {"error", "a {{chip}} {{#x}}"}}),
            "On v5e:\nFailed:\na {{chip}} {{#x}}\nEnd.");
  EXPECT_EQ(Render("a {{ not }} {{chip}}{{chip}} {{", {{"chip", "x"}}), "a {{ not }} xx {{");
}

TEST(PromptTest, WrongFilesNameTheLine) {
  EXPECT_THAT(Error("hello"), HasSubstr("p.md:1"));
  EXPECT_THAT(Error("---\ntool: x\n---\n"), HasSubstr("p.md:2"));
  EXPECT_THAT(Error("---\nvariables: X 1\n---\n"), HasSubstr("no variable"));
  EXPECT_THAT(Error("---\nvariables: a 1, a 2\n---\n"), HasSubstr("no variable"));
  EXPECT_THAT(Error("---\neffort: huge\n---\n"), HasSubstr("effort"));
  EXPECT_THAT(Error("---\n---\n# System\nx\n"), HasSubstr("two parts"));
  EXPECT_THAT(Error("---\n---\n# System\nx\n# Task\n{{foo}}\n"), HasSubstr("{{foo}}"));
  EXPECT_THAT(Error("---\nvariables: a 1\n---\n# System\nx\n# Task\n{{#a}}\ny\n"), HasSubstr("not closed"));
  EXPECT_THAT(Error("---\nvariables: a 1\n---\n# System\nx\n# Task\ny\n{{/a}}\n"), HasSubstr("closes nothing"));
  EXPECT_THAT(Error("---\n---\nfoo\n# System\nx\n# Task\ny\n"), HasSubstr("before the heading"));
  EXPECT_THAT(Error(kPrompt, "{"), HasSubstr("schema"));
  EXPECT_THAT(Error(kPrompt, R"({"type": "objekt"})"), HasSubstr("objekt"));
}

TEST(PromptLibraryTest, TheUsersPromptReplacesOursAndMayUseItsSchema) {
  const TempFolder ours = TempFolder::Make().value();
  const TempFolder theirs = TempFolder::Make().value();
  const auto with_schema = [](std::string text) { return text.insert(4, "output: p.schema.json\n"); };
  ASSERT_TRUE(WriteFileAtomically(ours.path() / "p.md", with_schema(kPrompt)).ok());
  ASSERT_TRUE(WriteFileAtomically(ours.path() / "p.schema.json", R"({"type": "string"})").ok());
  ASSERT_TRUE(WriteFileAtomically(theirs.path() / "p.md", with_schema(kPrompt) + "Mine.\n").ok());
  const auto library = PromptLibrary::Load(ours.path(), theirs.path());
  ASSERT_TRUE(library) << library.error().ToString();
  const Prompt& prompt = **library->Get("p");
  EXPECT_EQ(prompt.origin, (theirs.path() / "p.md").string());
  EXPECT_THAT(prompt.task, HasSubstr("Mine."));
  EXPECT_EQ(prompt.output_schema["type"], "string");
  EXPECT_FALSE(library->Get("q"));
  ASSERT_TRUE(WriteFileAtomically(theirs.path() / "p.md", "broken").ok());
  EXPECT_THAT(PromptLibrary::Load(ours.path(), theirs.path()).error().ToString(), HasSubstr(theirs.path().string()));
}

TEST(PromptLibraryTest, ShippedPromptsAreSound) {
  const auto library = PromptLibrary::Load(std::string(KW_SOURCE_DIR) + "/agents/prompts", {});
  ASSERT_TRUE(library) << library.error().ToString();
  const std::set<std::string> tools = {
      "read_file", "search_workspace", "propose_edit",     "compile",     "check",     "profile",
      "tune",      "look_up_api",      "search_knowledge", "run_history", "chip_table"};
  std::vector<std::string> names;
  for (const auto& [name, prompt] : library->prompts()) {
    SCOPED_TRACE(name);
    names.push_back(name);
    for (const std::string& tool : prompt.tools) EXPECT_TRUE(tools.contains(tool)) << tool;
    EXPECT_TRUE(prompt.output_schema.is_object());
    EXPECT_GT(prompt.max_output_tokens, 0);
    for (const Variable& variable : prompt.variables) {
      EXPECT_THAT(prompt.system + prompt.task, HasSubstr("{{" + variable.name + "}}"));
    }
  }
  EXPECT_THAT(names, ElementsAre("debugger", "implementer", "planner", "profiler", "summarizer", "tester"));
  for (const char* reader : {"planner", "tester", "profiler", "summarizer"}) {
    EXPECT_THAT((*library->Get(reader))->tools, ::testing::Not(::testing::Contains("propose_edit")));
  }
}

}  // namespace
}  // namespace kernelwright::prompts
