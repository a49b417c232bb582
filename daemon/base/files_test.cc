#include "daemon/base/files.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "daemon/base/errno_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FilesTest : public ::testing::Test {
 protected:
  TempFolder folder_ = *TempFolder::Make();
  fs::path At(const std::string& name) { return folder_.path() / name; }
  unsigned Mode(const fs::path& path) {
    struct stat info{};
    ::stat(path.c_str(), &info);
    return info.st_mode & 07777;
  }
};

TEST_F(FilesTest, WritesAndReadsBack) {
  const std::string bytes("a\0b\n", 4);
  ASSERT_TRUE(WriteFileAtomically(At("f"), bytes));
  EXPECT_EQ(*ReadFile(At("f")), bytes);
  EXPECT_EQ(Mode(At("f")), 0644U);
}

TEST_F(FilesTest, KeepsModeAndLink) {
  ASSERT_TRUE(WriteFileAtomically(At("f"), "1", 0640));
  fs::create_symlink("f", At("link"));
  ASSERT_TRUE(WriteFileAtomically(At("link"), "2"));
  EXPECT_TRUE(fs::is_symlink(At("link")));
  EXPECT_EQ(*ReadFile(At("f")), "2");
  EXPECT_EQ(Mode(At("f")), 0640U);
}

TEST_F(FilesTest, RefusesReadOnlyFileAndLeavesIt) {
  ASSERT_TRUE(WriteFileAtomically(At("f"), "old"));
  ::chmod(At("f").c_str(), 0444);
  const Status status = WriteFileAtomically(At("f"), "new");
  EXPECT_EQ(status.kind(), ErrorKind::kEnvironment);
  EXPECT_THAT(status.ToString(), HasSubstr("read-only"));
  EXPECT_EQ(*ReadFile(At("f")), "old");
}

TEST_F(FilesTest, MissingFolderAndFolderAsFile) {
  EXPECT_EQ(WriteFileAtomically(At("no/f"), "x").kind(), ErrorKind::kNotFound);
  EXPECT_EQ(WriteFileAtomically(folder_.path(), "x").kind(), ErrorKind::kUsage);
}

// C35: a failed edit changes no byte. The limit on file sizes makes the write fail half-way, as a full disk does.
TEST_F(FilesTest, FailedWriteLeavesTheOldFile) {
  ASSERT_TRUE(WriteFileAtomically(At("f"), "old"));
  struct rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  auto* handler = ::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit tight{4096, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const Status status = WriteFileAtomically(At("f"), std::string(100000, 'n'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  ::signal(SIGXFSZ, handler);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(*ReadFile(At("f")), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
}

TEST_F(FilesTest, FullDiskHasARemedy) {
  const Status status = StatusFromErrno(ENOSPC, "cannot write", "f");
  EXPECT_EQ(status.kind(), ErrorKind::kEnvironment);
  EXPECT_THAT(status.ToString(), HasSubstr("Free some disk space"));
}

TEST_F(FilesTest, LeavesNoTemporaryFileBehind) {
  ASSERT_TRUE(WriteFileAtomically(At("f"), "1"));
  ASSERT_TRUE(WriteFileAtomically(At("f"), "2"));
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_.path())) ++count;
  EXPECT_EQ(count, 1U);
}

TEST_F(FilesTest, ReadLimit) {
  ASSERT_TRUE(WriteFileAtomically(At("f"), "12345"));
  EXPECT_TRUE(ReadFile(At("f"), 5).has_value());
  EXPECT_EQ(ReadFile(At("f"), 4).error().kind(), ErrorKind::kLimit);
  EXPECT_EQ(ReadFile("/dev/zero", 1000).error().kind(), ErrorKind::kLimit);
  EXPECT_EQ(ReadFile(At("none")).error().kind(), ErrorKind::kNotFound);
}

TEST_F(FilesTest, PrivateFolder) {
  ASSERT_TRUE(MakePrivateFolder(At("a/b")));
  EXPECT_EQ(Mode(At("a/b")), 0700U);
  ::chmod(At("a/b").c_str(), 0755);
  ASSERT_TRUE(MakePrivateFolder(At("a/b")));
  EXPECT_EQ(Mode(At("a/b")), 0700U);
  fs::create_directory_symlink(At("a"), At("link"));
  EXPECT_EQ(MakePrivateFolder(At("link")).kind(), ErrorKind::kEnvironment);
}

TEST_F(FilesTest, InsideIsByComponent) {
  EXPECT_TRUE(IsInside("/a/b/c", "/a/b"));
  EXPECT_TRUE(IsInside("/a/b", "/a/b"));
  EXPECT_TRUE(IsInside("/a/b/c", "/a/b/"));
  EXPECT_FALSE(IsInside("/a/bc", "/a/b"));
  EXPECT_FALSE(IsInside("/a", "/a/b"));
  EXPECT_FALSE(IsInside("/a/b/../c", "/a/b"));
  EXPECT_TRUE(IsInside("/a", "/"));
}

// C61: a link or ".." that leads out of the folder is seen, also when the last part does not exist yet.
TEST_F(FilesTest, ResolvesLinksThatLeadOut) {
  ASSERT_TRUE(MakePrivateFolder(At("root")));
  fs::create_directory_symlink("/", At("root/out"));
  EXPECT_TRUE(*ResolvesInside(At("root/new/file"), At("root")));
  EXPECT_FALSE(*ResolvesInside(At("root/out/etc"), At("root")));
  EXPECT_FALSE(*ResolvesInside(At("root/new/../../x"), At("root")));
  EXPECT_TRUE(*ResolvesInside(At("root/"), At("root")));
}

TEST_F(FilesTest, RemoveTreeDoesNotFollowLinks) {
  ASSERT_TRUE(MakePrivateFolder(At("keep")));
  ASSERT_TRUE(WriteFileAtomically(At("keep/f"), "x"));
  ASSERT_TRUE(MakePrivateFolder(At("gone")));
  fs::create_directory_symlink(At("keep"), At("gone/link"));
  ASSERT_TRUE(RemoveTree(At("gone")));
  EXPECT_FALSE(fs::exists(At("gone")));
  EXPECT_TRUE(fs::exists(At("keep/f")));
  EXPECT_TRUE(RemoveTree(At("gone")));
}

TEST(TempFolderTest, GoesAwayWithTheObject) {
  fs::path path;
  {
    TempFolder folder = *TempFolder::Make("x-");
    path = folder.path();
    std::ofstream(path / "f") << "1";
    TempFolder moved = std::move(folder);
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace kernelwright
