// Asks the rules about one file from a recorded program graph, for tests/rewrite:
//   kw_rewrite_tool CHIPS.json CHIP EXACTNESS FILE FUNCTION < GRAPH.json
// prints {"proposals": [{"rule", "what", "reason", "evidence", "exactness", "expected_gain", "line", "text"}],
// "refusals": [{"rule", "reason", "line"}]}, where "text" is the file with the proposal applied.
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "daemon/cost/chips.h"
#include "daemon/diagnose/graph_test_util.h"
#include "daemon/kernels/edits.h"
#include "daemon/kernels/rewrite/rewrite.h"

namespace kernelwright::rewrite {
namespace {

std::string ReadAll(std::istream& in) {
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

int Run(const std::vector<std::string>& arguments) {
  std::ifstream chips_file(arguments[0]);
  const auto chips = cost::ParseChips(ReadAll(chips_file));
  if (!chips) {
    std::cerr << chips.error().ToString() << "\n";
    return 3;
  }
  const cost::Chip* chip = chips->Find(arguments[1]);
  std::ifstream source(arguments[3]);
  if (chip == nullptr || !source) {
    std::cerr << "no chip " << arguments[1] << ", or no file " << arguments[3] << "\n";
    return 2;
  }
  std::vector<std::unique_ptr<kernels::SourceFile>> files;
  files.push_back(std::make_unique<kernels::SourceFile>(arguments[3], ReadAll(source)));
  const auto graph = nlohmann::json::parse(ReadAll(std::cin), nullptr, false);
  if (graph.is_discarded()) {
    std::cerr << "the graph on standard input is not JSON\n";
    return 2;
  }
  Program program;
  program.main = diagnose::GraphOf(graph);
  auto allowed = kernels::Exactness::kReassociation;
  if (arguments[2] == "bit-equal") allowed = kernels::Exactness::kBitEqual;
  if (arguments[2] == "lower-precision") allowed = kernels::Exactness::kLowerPrecision;
  const std::vector<kernels::InputSpec> inputs;
  const kernels::ProposalContext context{files, arguments[3], arguments[4], program, inputs, *chip, nullptr, allowed};
  const auto found = ProposeRewrites(context);
  nlohmann::json out = {{"proposals", nlohmann::json::array()}, {"refusals", nlohmann::json::array()}};
  for (const auto& proposal : found.proposals) {
    const auto text = kernels::ApplyEdits(arguments[3], files.front()->text(), proposal.edits);
    if (!text) {
      std::cerr << proposal.rule << ": " << text.error().ToString() << "\n";
      return 5;
    }
    out["proposals"].push_back({{"rule", proposal.rule},
                                {"what", proposal.what},
                                {"reason", proposal.reason},
                                {"evidence", proposal.evidence},
                                {"exactness", kernels::ExactnessName(proposal.exactness)},
                                {"expected_gain", proposal.expected_gain},
                                {"line", proposal.place.line},
                                {"text", *text}});
  }
  for (const auto& refusal : found.refusals) {
    out["refusals"].push_back({{"rule", refusal.rule}, {"reason", refusal.reason}, {"line", refusal.place.line}});
  }
  std::cout << out.dump(1) << "\n";
  return 0;
}

}  // namespace
}  // namespace kernelwright::rewrite

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() != 5) {
    std::cerr << "usage: kw_rewrite_tool CHIPS.json CHIP EXACTNESS FILE FUNCTION < GRAPH.json\n";
    return 2;
  }
  return kernelwright::rewrite::Run(arguments);
}
