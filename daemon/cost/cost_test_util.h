// Loads the golden dumps of daemon/cost/testdata and the shipped chip table.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "daemon/base/gzip.h"
#include "daemon/cost/chips.h"
#include "daemon/cost/program_estimate.h"

namespace kernelwright::cost {

inline std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline const ChipTable& ShippedChips() {
  static const ChipTable table = [] {
    auto parsed = ParseChips(ReadText(std::filesystem::path(KW_SOURCE_DIR) / "agents/chips.json"));
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().ToString());
    return parsed ? *parsed : ChipTable({});
  }();
  return table;
}

inline const Chip& ShippedChip(const std::string& name) {
  const Chip* chip = ShippedChips().Find(name);
  EXPECT_NE(chip, nullptr) << name;
  return *chip;
}

// A golden file, which may be compressed, and its name without ".gz".
inline Dump ReadDump(const std::filesystem::path& path) {
  std::string text = ReadText(path);
  if (path.extension() != ".gz") return {path.filename().string(), std::move(text)};
  auto plain = GzipDecompress(text);
  EXPECT_TRUE(plain) << path;
  return {path.stem().string(), plain ? *std::move(plain) : std::string()};
}

// The dumps of one golden program: its own and those that every program of the chip shares.
inline Dumps GoldenDumps(const std::string& chip, const std::string& program) {
  Dumps dumps;
  const auto root = std::filesystem::path(KW_SOURCE_DIR) / "daemon/cost/testdata" / chip;
  for (const auto& folder : {root / program, root / "late"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      dumps.push_back(ReadDump(entry.path()));
    }
  }
  std::sort(dumps.begin(), dumps.end(), [](const Dump& a, const Dump& b) { return a.name < b.name; });
  return dumps;
}

}  // namespace kernelwright::cost
