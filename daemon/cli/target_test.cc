#include "daemon/cli/target.h"

#include <filesystem>

#include "gtest/gtest.h"

namespace kernelwright::cli {
namespace {

TEST(ParseTarget, SplitsFileAndFunction) {
  EXPECT_EQ(ParseTarget("/a/k.py::mm")->file, "/a/k.py");
  EXPECT_EQ(ParseTarget("/a/k.py::mm")->function, "mm");
  EXPECT_EQ(ParseTarget("/a/k.py::C.m")->function, "C.m");
  EXPECT_EQ(ParseTarget("/a/k.py")->function, "");
  EXPECT_EQ(ParseTarget("/a/../b/k.py::f")->file, "/b/k.py");
  EXPECT_EQ(ParseTarget("k.py::f")->file, (std::filesystem::current_path() / "k.py").string());
  EXPECT_EQ(ParseTarget("/a::b/k.py::f")->file, "/a::b/k.py");
}

TEST(ParseTarget, RefusesHalfTargets) {
  for (const char* text : {"", "::f", "k.py::"}) {
    const Expected<Target> target = ParseTarget(text);
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(target.error().kind(), ErrorKind::kUsage);
    EXPECT_FALSE(target.error().remedy().empty());
  }
}

}  // namespace
}  // namespace kernelwright::cli
