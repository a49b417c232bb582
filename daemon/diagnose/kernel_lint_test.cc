// The lints of kernel bodies on graphs of real kernels: wrong ones are named, right ones give nothing.
// testdata/graphs.jsonl has a kernel a line; tests/cases/kernel_graphs.py records it.
#include "daemon/diagnose/kernel_lint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "daemon/diagnose/block_lint.h"
#include "daemon/diagnose/graph_test_util.h"

namespace kernelwright::diagnose {
namespace {

const cost::Chip& V6e() {
  static const cost::ChipTable table = [] {
    std::ifstream in(std::filesystem::path(KW_SOURCE_DIR) / "agents/chips.json");
    std::stringstream text;
    text << in.rdbuf();
    return *cost::ParseChips(text.str());
  }();
  return *table.Find("v6e");
}

// Ids of errors and warnings, each once, in order.
std::string Found(const Graph& main) {
  std::string out;
  for (const PallasCall* call : FindPallasCalls(main)) {
    auto found = LintBlocks({*call}, {}, V6e());
    for (Diagnostic& d : LintKernel(*call, {}, &V6e())) found.push_back(std::move(d));
    for (const Diagnostic& d : found) {
      EXPECT_FALSE(d.message.empty() || d.cause.empty() || d.advice.empty()) << d.id;
      if (d.severity == Severity::kInformation || d.severity == Severity::kHint) continue;
      if (out.find(d.id) == std::string::npos) out += (out.empty() ? "" : " ") + d.id;
    }
  }
  return out.empty() ? "right" : out;
}

TEST(KernelLint, WrongKernelsAndRightOnes) {
  std::ifstream in(std::filesystem::path(KW_SOURCE_DIR) / "daemon/diagnose/testdata/kernel_graphs.jsonl");
  int count = 0;
  for (std::string line; std::getline(in, line); ++count) {
    const auto graph = nlohmann::json::parse(line);
    EXPECT_EQ(Found(GraphOf(graph["main"])), graph["expected"].get<std::string>()) << graph["name"];
  }
  EXPECT_GT(count, 30);
}

TEST(KernelLint, PlaceAndWords) {
  std::ifstream in(std::filesystem::path(KW_SOURCE_DIR) / "daemon/diagnose/testdata/kernel_graphs.jsonl");
  for (std::string line; std::getline(in, line);) {
    const auto graph = nlohmann::json::parse(line);
    if (graph["name"] != "sum_without_zero") continue;
    const Graph main = GraphOf(graph["main"]);
    const auto found = LintKernel(*FindPallasCalls(main).at(0), {}, nullptr);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].place.file, "kernel_graphs.py");
    EXPECT_GT(found[0].place.column, 0);
    EXPECT_EQ(found[0].message, "o_ref is read in step (0,) before anything was stored in it");
    EXPECT_EQ(found[0].page, "docs/diagnostics/D30.md");
    EXPECT_EQ(found[0].stage, Stage::kBlocks);
    return;
  }
  FAIL() << "no such kernel";
}

TEST(KernelLint, CallsWithoutABodyGiveNothing) {
  PallasCall call;
  call.grid = {2};
  EXPECT_TRUE(LintKernel(call, {}, &V6e()).empty());
}

// Reads other graphs when KW_LINT_GRAPHS names a file, and prints what is found in each.
TEST(KernelLint, Print) {
  const char* path = std::getenv("KW_LINT_GRAPHS");
  if (path == nullptr) GTEST_SKIP() << "KW_LINT_GRAPHS names no file";
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto graph = nlohmann::json::parse(line);
    const Graph main = GraphOf(graph["main"]);
    std::cout << graph["name"].get<std::string>() << "\n";
    std::map<std::string, std::string> texts;
    for (const auto& file : graph.value("files", std::vector<std::string>())) {
      std::ifstream source(file);
      std::stringstream text;
      text << source.rdbuf();
      texts[file] = text.str();
    }
    for (const PallasCall* call : FindPallasCalls(main)) {
      auto found = LintBlocks({*call}, texts, V6e());
      for (Diagnostic& d : LintKernel(*call, texts, &V6e())) found.push_back(std::move(d));
      for (const Diagnostic& d : found) {
        std::cout << "  " << d.id << " " << SeverityName(d.severity) << " " << d.place.line << " " << d.message << "\n";
      }
    }
  }
}

}  // namespace
}  // namespace kernelwright::diagnose
