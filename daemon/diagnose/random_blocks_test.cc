// Compares the lints of blocks and memory with what the real compiler said about random calls: testdata/
// random_blocks.jsonl, made by tests/cases/random_blocks.py.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "daemon/cost/chips.h"
#include "daemon/cost/vmem.h"
#include "daemon/diagnose/block_lint.h"

namespace kernelwright::diagnose {
namespace {

using nlohmann::json;

const cost::ChipTable& Chips() {
  static const cost::ChipTable table = [] {
    std::ifstream in(std::filesystem::path(KW_SOURCE_DIR) / "agents/chips.json");
    std::stringstream text;
    text << in.rdbuf();
    return *cost::ParseChips(text.str());
  }();
  return table;
}

PallasCall CallOf(const json& spec) {
  PallasCall call;
  call.name = "kernel";
  call.grid = spec["grid"].get<std::vector<int64_t>>();
  int inputs = 0;
  int outputs = 0;
  for (const json& operand : spec["operands"]) {
    BlockMapping block;
    block.is_output = operand["output"];
    block.origin =
        block.is_output ? "outputs[" + std::to_string(outputs++) + "]" : "args[" + std::to_string(inputs++) + "]";
    block.array.dtype = operand["dtype"];
    block.array.dims = operand["dims"].get<std::vector<int64_t>>();
    block.memory_space = operand["space"];
    block.buffers = operand["buffers"];
    block.has_index_map = !call.grid.empty() && block.memory_space != "any";
    for (size_t a = 0; a < call.grid.size(); ++a) {
      GraphValue id;
      id.id = static_cast<uint32_t>(a + 1);
      block.index_map.inputs.push_back(id);
    }
    for (const json& size : operand["block"]) {
      if (size.is_null()) {
        block.block.push_back({BlockDim::Kind::kSqueezed, 1});
      } else {
        block.block.push_back({BlockDim::Kind::kBlocked, size});
      }
    }
    for (const int axis : operand["map"]) {
      Operand out;
      if (axis < 0) {
        out.literal = int64_t{0};
      } else {
        out.value = static_cast<uint32_t>(axis + 1);
      }
      block.index_map.outputs.push_back(out);
    }
    if (block.memory_space == "any") {
      for (const int64_t n : block.array.dims) block.block.push_back({BlockDim::Kind::kBlocked, n});
    }
    call.blocks.push_back(std::move(block));
  }
  for (const json& scratch : spec["scratch"]) {
    TensorType type;
    type.dtype = scratch["dtype"];
    type.dims = scratch["dims"].get<std::vector<int64_t>>();
    type.memory_space = scratch["space"];
    call.scratch.push_back(type);
  }
  if (!spec["limit"].is_null()) call.vmem_limit_bytes = spec["limit"].get<int64_t>();
  if (!spec["semantics"].is_null()) call.dimension_semantics = spec["semantics"].get<std::vector<std::string>>();
  return call;
}

TEST(RandomBlocks, LintAgreesWithTheCompiler) {
  const char* other = std::getenv("KW_RANDOM_BLOCKS");
  std::ifstream in(other != nullptr
                       ? std::filesystem::path(other)
                       : std::filesystem::path(KW_SOURCE_DIR) / "daemon/diagnose/testdata/random_blocks.jsonl");
  int total = 0;
  int agreed = 0;
  int refused = 0;
  std::map<std::string, int> by_id;
  for (std::string line; std::getline(in, line);) {
    const json spec = json::parse(line);
    if (spec["verdict"] == "timeout") continue;
    ++total;
    std::string errors;
    const PallasCall call = CallOf(spec);
    const cost::Chip& chip = *Chips().Find(std::string(spec["chip"]));
    for (const Diagnostic& d : LintBlocks({call}, {}, chip)) {
      // What is wrong without a compiler's word is not compared.
      if (d.severity != Severity::kError || d.id == "D14" || d.id == "D17") continue;
      errors += d.id + " " + d.message + "\n";
    }
    const bool compiles = spec["verdict"] == "ok";
    if (!compiles) ++refused;
    if (compiles == errors.empty()) {
      ++agreed;
    } else {
      std::cout << "DIFFERENT " << line << "\n  lint: " << errors << "  total "
                << cost::ComputeVmem(call, chip).total / 1048576.0 << " MiB\n";
    }
    if (!errors.empty()) ++by_id[errors.substr(0, 3)];
  }
  std::cout << agreed << " of " << total << " agree, " << refused << " refused by the compiler;";
  for (const auto& [id, count] : by_id) std::cout << " " << id << " " << count;
  std::cout << "\n";
  ASSERT_GT(total, 0);
  EXPECT_GE(agreed, total * 99 / 100);
}

}  // namespace
}  // namespace kernelwright::diagnose
