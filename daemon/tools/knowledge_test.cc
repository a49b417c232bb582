// The notes that ship with the product, and how they are found.
#include "daemon/tools/knowledge.h"

#include <filesystem>

#include "daemon/base/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright::tools {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(KnowledgeTest, FilesAreCutAtTheirHeadings) {
  const auto sections = CutSections("a.md", "intro\n# A\none\n## B\ntwo\n```\n# no heading\n```\n## C\n# D\nthree\n");
  ASSERT_EQ(sections.size(), 4);
  EXPECT_EQ(sections[0].heading, "a.md");
  EXPECT_EQ(sections[1].heading, "A");
  EXPECT_EQ(sections[2].heading, "A > B");
  EXPECT_THAT(sections[2].text, HasSubstr("# no heading"));
  EXPECT_EQ(sections[3].heading, "D") << "C has no text of its own";
}

TEST(KnowledgeTest, TheIndexLeavesNoFile) {
  ASSERT_TRUE(KnowledgeIndex::FromSections({}));
  EXPECT_FALSE(std::filesystem::exists(":memory:"));
}

TEST(KnowledgeTest, TheUsersNotesReplaceAndAdd) {
  const TempFolder ours = TempFolder::Make().value();
  const TempFolder theirs = TempFolder::Make().value();
  ASSERT_TRUE(WriteFileAtomically(ours.path() / "a.md", "# Old\nzebra\n").ok());
  ASSERT_TRUE(WriteFileAtomically(theirs.path() / "a.md", "# New\nzebra\n").ok());
  ASSERT_TRUE(WriteFileAtomically(theirs.path() / "b.md", "# Other\nlion\n").ok());
  const auto index = KnowledgeIndex::Load({ours.path(), theirs.path(), "/no/such/folder"});
  ASSERT_TRUE(index) << index.error().ToString();
  EXPECT_EQ((*index)->size(), 2);
  EXPECT_EQ((*index)->Search("zebra", 3)->at(0).heading, "New");
}

TEST(KnowledgeTest, AnyTextIsAQuery) {
  const auto index = KnowledgeIndex::FromSections({{"a.md", "A", "one \"two\" three*"}}).value();
  for (const char* query : {"\"", "a AND", "NEAR(", "col:x", "*", "one\" OR \"1", "", "(((", "\xE2\x82\xAC", "-one"}) {
    EXPECT_TRUE(index->Search(query, 3)) << query;
  }
  EXPECT_THAT(*index->Search("", 3), IsEmpty());
  EXPECT_EQ(index->Search("TWO?", 3)->size(), 1);
  EXPECT_THAT(*index->Search("two", 0), IsEmpty());
}

// What an engineer would ask, and which note has to come up among the first three.
TEST(KnowledgeTest, TheShippedNotesAnswerQuestions) {
  const auto index = KnowledgeIndex::Load({std::string(KW_SOURCE_DIR) + "/agents/knowledge"});
  ASSERT_TRUE(index) << index.error().ToString();
  EXPECT_GT((*index)->size(), 30);
  struct Question {
    const char* words;
    const char* file;
  };
  for (const auto& [words, file] :
       {Question{"register spills", "vector-code.md"}, Question{"argmax of bf16", "operations.md"},
        Question{"legal block shapes multiple of 8 and 128", "blocks.md"},
        Question{"VMEM limit exceeded, out of memory", "vmem.md"},
        Question{"dimension_semantics parallel megacore", "grid.md"},
        Question{"cost of exp and tanh on v5e", "costs.md"},
        Question{"float32 matmul precision HIGHEST", "numerics.md"},
        Question{"scalar prefetch index map table", "data-movement.md"},
        Question{"make_async_copy double buffer", "data-movement.md"},
        Question{"softmax running maximum", "patterns.md"}, Question{"cumsum inside a kernel", "operations.md"},
        Question{"ridge flops per byte roofline", "machine.md"},
        Question{"matmul accumulator template", "templates.md"}, Question{"gelu in pytorch", "porting.md"}}) {
    const auto found = (*index)->Search(words, 3);
    ASSERT_TRUE(found);
    EXPECT_THAT(*found, Contains(Field(&KnowledgeSection::file, file))) << words;
  }
}

}  // namespace
}  // namespace kernelwright::tools
