// VersionedEdit: nothing is written over a file that has moved on, and it is all or nothing.
#include "daemon/cli/apply_edits.h"

#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/files.h"
#include "daemon/base/hash.h"
#include "gtest/gtest.h"

namespace kernelwright::cli {
namespace {

class VersionedEdit : public ::testing::Test {
 protected:
  void SetUp() override {
    Expected<TempFolder> made = TempFolder::Make();
    ASSERT_TRUE(made);
    temp_ = std::make_unique<TempFolder>(std::move(*made));
    a_ = (temp_->path() / "a.py").string();
    b_ = (temp_->path() / "b.py").string();
    ASSERT_TRUE(WriteFileAtomically(a_, "old a").ok());
    ASSERT_TRUE(WriteFileAtomically(b_, "old b").ok());
    edits_ = {{a_, Sha256Hex("old a"), "new a"}, {b_, Sha256Hex("old b"), "new b"}};
  }
  std::unique_ptr<TempFolder> temp_;
  std::string a_;
  std::string b_;
  std::vector<Edit> edits_;
};

TEST_F(VersionedEdit, WritesWhatIsUnchangedAndKeepsTheMode) {
  ASSERT_EQ(::chmod(a_.c_str(), 0750), 0);
  ASSERT_TRUE(ApplyEdits(edits_, "r1").ok());
  EXPECT_EQ(*ReadFile(a_), "new a");
  EXPECT_EQ(*ReadFile(b_), "new b");
  struct stat info{};
  ASSERT_EQ(::stat(a_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0750U);
  // Applying again finds the work done.
  EXPECT_TRUE(ApplyEdits(edits_, "r1").ok());
}

TEST_F(VersionedEdit, AFileThatMovedOnStopsAll) {
  ASSERT_TRUE(WriteFileAtomically(b_, "the user's newer work").ok());
  const Status status = ApplyEdits(edits_, "r1");
  EXPECT_EQ(status.kind(), ErrorKind::kConflict);
  EXPECT_EQ(status.where(), b_);
  EXPECT_NE(status.remedy().find("runs show r1 --diff"), std::string::npos);
  EXPECT_EQ(*ReadFile(a_), "old a");
  EXPECT_EQ(*ReadFile(b_), "the user's newer work");
}

TEST_F(VersionedEdit, AMissingFileStopsAll) {
  std::filesystem::remove(b_);
  EXPECT_EQ(ApplyEdits(edits_, "r1").kind(), ErrorKind::kConflict);
  EXPECT_EQ(*ReadFile(a_), "old a");
  EXPECT_FALSE(std::filesystem::exists(b_));
}

TEST_F(VersionedEdit, AReadOnlyFileStopsAll) {
  ASSERT_EQ(::chmod(b_.c_str(), 0444), 0);
  const Status status = ApplyEdits(edits_, "r1");
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("nothing was applied"), std::string::npos) << status.ToString();
  EXPECT_EQ(*ReadFile(a_), "old a");
  EXPECT_EQ(*ReadFile(b_), "old b");
}

TEST_F(VersionedEdit, TouchesNoOtherFile) {
  ASSERT_TRUE(WriteFileAtomically(temp_->path() / "notes", "mine").ok());
  ASSERT_TRUE(ApplyEdits(edits_, "r1").ok());
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(temp_->path())) files += entry.exists() ? 1 : 0;
  EXPECT_EQ(files, 3U);
  EXPECT_EQ(*ReadFile(temp_->path() / "notes"), "mine");
}

TEST(Edits, AreReadFromTheResult) {
  const auto edits = EditsFromJson(nlohmann::json::parse(R"([{"file":"/a","base_sha256":"x","new_text":"y"}])"));
  ASSERT_TRUE(edits);
  EXPECT_EQ(edits->at(0).new_text, "y");
  EXPECT_FALSE(EditsFromJson(nlohmann::json::parse(R"([{"file":"/a"}])")));
}

}  // namespace
}  // namespace kernelwright::cli
