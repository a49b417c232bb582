// Where daemon and clients meet, and which folders they refuse.
#include "daemon/service/runtime_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/files.h"
#include "gtest/gtest.h"

namespace kernelwright::service {
namespace {

class RuntimeFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Expected<TempFolder> made = TempFolder::Make();
    ASSERT_TRUE(made);
    temp_ = std::make_unique<TempFolder>(std::move(*made));
    environment_.uid = ::geteuid();
    environment_.run_user = temp_->path() / "run";
    environment_.tmpdir = temp_->path() / "tmp";
    std::filesystem::create_directories(environment_.tmpdir);
  }
  unsigned Mode(const std::filesystem::path& path) {
    struct stat info{};
    ::stat(path.c_str(), &info);
    return info.st_mode & 0777;
  }
  std::unique_ptr<TempFolder> temp_;
  RuntimeEnvironment environment_;
};

TEST_F(RuntimeFolderTest, PrefersXdgThenRunUserThenTmp) {
  const std::string uid = std::to_string(::geteuid());
  Expected<RuntimeFolder> folder = OpenRuntimeFolder(environment_);
  ASSERT_TRUE(folder) << folder.error().ToString();
  EXPECT_EQ(folder->folder, temp_->path() / "tmp" / ("kernelwright-" + uid));
  EXPECT_EQ(Mode(folder->folder), 0700U);

  std::filesystem::create_directories(environment_.run_user / uid);
  EXPECT_EQ(OpenRuntimeFolder(environment_)->folder, environment_.run_user / uid / "kernelwright");

  environment_.xdg_runtime_dir = temp_->path() / "xdg";
  EXPECT_EQ(OpenRuntimeFolder(environment_)->folder, environment_.run_user / uid / "kernelwright");  // does not exist
  std::filesystem::create_directories(environment_.xdg_runtime_dir);
  EXPECT_EQ(OpenRuntimeFolder(environment_)->folder, temp_->path() / "xdg" / "kernelwright");
}

TEST_F(RuntimeFolderTest, TightensAnOpenFolderAndRefusesALink) {
  environment_.xdg_runtime_dir = temp_->path();
  std::filesystem::create_directories(temp_->path() / "kernelwright");
  ASSERT_EQ(::chmod((temp_->path() / "kernelwright").c_str(), 0777), 0);
  ASSERT_TRUE(OpenRuntimeFolder(environment_));
  EXPECT_EQ(Mode(temp_->path() / "kernelwright"), 0700U);

  std::filesystem::remove(temp_->path() / "kernelwright");
  std::filesystem::create_symlink(temp_->path() / "tmp", temp_->path() / "kernelwright");
  const Expected<RuntimeFolder> linked = OpenRuntimeFolder(environment_);
  ASSERT_FALSE(linked);
  EXPECT_EQ(linked.error().kind(), ErrorKind::kEnvironment);
}

TEST_F(RuntimeFolderTest, RefusesASocketPathThatIsTooLong) {
  const std::string base = temp_->path().string() + "/";
  const size_t tail = std::string("/kernelwright/daemon.sock").size();
  for (const size_t length : {size_t{107}, size_t{108}}) {
    environment_.xdg_runtime_dir = base + std::string(length - tail - base.size(), 'd');
    std::filesystem::create_directories(environment_.xdg_runtime_dir);
    const Expected<RuntimeFolder> folder = OpenRuntimeFolder(environment_);
    EXPECT_EQ(folder.has_value(), length == 107) << length;
    if (folder) {
      EXPECT_EQ(folder->socket().string().size(), length);
    } else {
      EXPECT_NE(folder.error().remedy().find("XDG_RUNTIME_DIR"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace kernelwright::service
