// Reads the golden dumps that the tests of this folder and of daemon/cost share.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace kernelwright::compiler {

inline std::string ReadGolden(const std::string& name) {
  std::ifstream file(std::string(KW_SOURCE_DIR) + "/daemon/cost/testdata/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline constexpr const char* kChips[] = {"v5e", "v5p", "v6e", "tpu7x"};

}  // namespace kernelwright::compiler
