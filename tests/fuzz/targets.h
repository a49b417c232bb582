// What is fuzzed: everything that reads text which the TPU compiler wrote. A target must neither crash, leak, hang nor
// claim what is not so, whatever the text. Used by libFuzzer (fuzzer_main.cc) and by the corpus test (corpus_main.cc).
#pragma once

#include <span>
#include <string_view>

namespace kernelwright::fuzz {

struct Target {
  std::string_view name;  // also the folder of its inputs
  // Golden files of daemon/cost/testdata that are seeds: those whose names contain one of these.
  std::span<const std::string_view> seeds;
  void (*run)(std::string_view text);
};

std::span<const Target> Targets();
const Target* FindTarget(std::string_view name);

}  // namespace kernelwright::fuzz
