// Rules on the kernels of tests/rewrite with graphs that the worker recorded (tests/rewrite/record.py): what each
// proposes, as golden sources, where it refuses, and that rules compose. KW_UPDATE_GOLDEN=1 writes the golden sources.
#include "daemon/kernels/rewrite/rewrite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "daemon/cost/chips.h"
#include "daemon/diagnose/graph_test_util.h"
#include "daemon/kernels/edits.h"
#include "daemon/profile/report.h"

namespace kernelwright::rewrite {
namespace {

using kernels::Exactness;

std::filesystem::path Top() { return KW_SOURCE_DIR; }

std::string Read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

const cost::Chip& ChipOf(const std::string& name) {
  static const cost::ChipTable table = *cost::ParseChips(Read(Top() / "agents/chips.json"));
  return *table.Find(name);
}

struct Recorded {
  std::string file;
  std::string function;
  std::string chip;
  Program program;
};

// By "function@chip", and "function@chip after rule".
const std::map<std::string, Recorded>& Graphs() {
  static const std::map<std::string, Recorded> graphs = [] {
    std::map<std::string, Recorded> found;
    std::ifstream in(Top() / "daemon/kernels/rewrite/testdata/graphs.jsonl");
    for (std::string line; std::getline(in, line);) {
      const auto json = nlohmann::json::parse(line);
      Recorded entry{json["file"], json["function"], json["chip"], {}};
      entry.program.main = diagnose::GraphOf(json["main"]);
      const std::string after = json["after"];
      const std::string key = entry.function + "@" + entry.chip + (after.empty() ? "" : " after " + after);
      found.emplace(key, std::move(entry));
    }
    return found;
  }();
  return graphs;
}

std::string KernelText(const std::string& file) { return Read(Top() / "tests/rewrite/kernels" / (file + ".py")); }

struct Answered {
  kernels::Proposals found;
  std::string text;
  std::string path;

  std::vector<const kernels::Proposal*> Of(const std::string& rule) const {
    std::vector<const kernels::Proposal*> of;
    for (const auto& proposal : found.proposals) {
      if (proposal.rule == rule) of.push_back(&proposal);
    }
    return of;
  }
  std::string Reason(const std::string& rule) const {
    for (const auto& refusal : found.refusals) {
      if (refusal.rule == rule) return refusal.reason;
    }
    return "";
  }
  // The text with all of a rule's edits of its first proposal; it must parse.
  std::string Applied(const std::string& rule) const {
    const auto of = Of(rule);
    if (of.empty()) return "refused: " + Reason(rule);
    const auto edited = kernels::ApplyEdits(path, text, of.front()->edits);
    if (!edited) return edited.error().ToString();
    EXPECT_TRUE(kernels::SourceFile(path, *edited).errors().empty()) << *edited;
    return *edited;
  }
};

Answered Ask(const std::string& key, const std::optional<std::string>& text = {},
             Exactness allowed = Exactness::kReassociation, const profile::ProfileReport* profile = nullptr) {
  const auto it = Graphs().find(key);
  if (it == Graphs().end()) {
    ADD_FAILURE() << "no graph of " << key;
    return {};
  }
  const Recorded& recorded = it->second;
  Answered answered;
  answered.path = recorded.file + ".py";
  answered.text = text ? *text : KernelText(recorded.file);
  std::vector<std::unique_ptr<kernels::SourceFile>> files;
  files.push_back(std::make_unique<kernels::SourceFile>(answered.path, answered.text));
  const std::vector<kernels::InputSpec> inputs;
  answered.found = ProposeRewrites(
      {files, answered.path, recorded.function, recorded.program, inputs, ChipOf(recorded.chip), profile, allowed});
  return answered;
}

// Compares with testdata/NAME.py.
void ExpectGolden(const std::string& name, const std::string& text) {
  ASSERT_FALSE(text.starts_with("refused")) << name << ": " << text;
  const auto path = Top() / "daemon/kernels/rewrite/testdata" / (name + ".py");
  if (std::getenv("KW_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  EXPECT_EQ(text, Read(path)) << path;
}

struct GainCase {
  const char* rule;
  const char* key;
  Exactness exactness;
};

constexpr GainCase kGains[] = {
    {"scratch-accumulator", "project@v5p", Exactness::kBitEqual},
    {"last-step-epilogue", "up@tpu7x", Exactness::kBitEqual},
    {"mxu-operands", "product@v5e", Exactness::kReassociation},
    {"transposed-operand", "linear@v5e", Exactness::kReassociation},
    {"dimension-semantics", "norm@v5p", Exactness::kBitEqual},
    {"clamped-index-map", "attention@v6e", Exactness::kBitEqual},
    {"hoist-from-loop", "gate@v5p", Exactness::kBitEqual},
    {"hoist-from-steps", "rotate@v5e", Exactness::kBitEqual},
    {"exp2", "radial@v5e", Exactness::kReassociation},
    {"one-pass-statistics", "norm@tpu7x", Exactness::kReassociation},
    {"full-lanes", "rotary@v6e", Exactness::kBitEqual},
    {"double-buffering", "tanh@v6e", Exactness::kBitEqual},
    {"vmem-limit", "mlp@tpu7x", Exactness::kBitEqual},
};

TEST(Rewrite, GoldenSources) {
  std::vector<std::string> rules;
  for (const GainCase& entry : kGains) {
    SCOPED_TRACE(std::string(entry.rule) + " on " + entry.key);
    const Answered answered = Ask(entry.key);
    const auto of = answered.Of(entry.rule);
    ASSERT_FALSE(of.empty()) << answered.Reason(entry.rule);
    EXPECT_EQ(of.front()->exactness, entry.exactness);
    EXPECT_FALSE(of.front()->what.empty() || of.front()->reason.empty() || of.front()->evidence.empty());
    EXPECT_GT(of.front()->place.line, 0);
    ExpectGolden(entry.rule, answered.Applied(entry.rule));
    rules.emplace_back(entry.rule);
  }
  EXPECT_EQ(rules, RuleNames());  // each rule has a golden source
}

TEST(Rewrite, LowerPrecisionOnlyWhereAllowed) {
  EXPECT_NE(Ask("product_f32@v5e").Reason("mxu-operands").find("lower-precision"), std::string::npos);
  const Answered allowed = Ask("product_f32@v5e", {}, Exactness::kLowerPrecision);
  ExpectGolden("mxu-operands-lower", allowed.Applied("mxu-operands"));
  // Bit-equal alone leaves out what only reassociates.
  EXPECT_TRUE(Ask("product@v5e", {}, Exactness::kBitEqual).Of("mxu-operands").empty());
}

struct RefusalCase {
  const char* rule;
  const char* key;
  const char* word;
};

constexpr RefusalCase kRefusals[] = {
    {"scratch-accumulator", "logits@v5p", "uses the 32-bit sums"},
    {"last-step-epilogue", "gate@tpu7x", "stores another block"},
    {"transposed-operand", "plain@v5e", "the compiler folds"},
    {"dimension-semantics", "total@v5p", "visits a block of an output again"},
    {"clamped-index-map", "later_keys@v6e", "from above"},
    {"hoist-from-loop", "linear@v5p", "only loaded and cast"},
    {"hoist-from-steps", "rotate_apart@v5e", "depends on what changes"},
    {"exp2", "softmax@v5e", "no exponential has a constant factor"},
    {"one-pass-statistics", "sample_norm@tpu7x", "a correction"},
    {"full-lanes", "rotary_wide@v6e", "fills whole registers"},
    {"double-buffering", "linear@v6e", "stays the same"},
    {"vmem-limit", "large@tpu7x", "needs about"},
};

TEST(Rewrite, Refusals) {
  for (const RefusalCase& entry : kRefusals) {
    SCOPED_TRACE(std::string(entry.rule) + " on " + entry.key);
    const Answered answered = Ask(entry.key);
    EXPECT_TRUE(answered.Of(entry.rule).empty());
    EXPECT_NE(answered.Reason(entry.rule).find(entry.word), std::string::npos) << answered.Reason(entry.rule);
  }
}

TEST(Rewrite, EveryRuleAnswersForEveryKernel) {
  for (const auto& [key, recorded] : Graphs()) {
    if (key.find(" after ") != std::string::npos) continue;
    const Answered answered = Ask(key);
    for (const std::string& rule : RuleNames()) {
      EXPECT_TRUE(!answered.Of(rule).empty() || !answered.Reason(rule).empty()) << rule << " on " << key;
    }
  }
}

struct PairCase {
  const char* first;
  const char* second;
  const char* key;
};

constexpr PairCase kPairs[] = {
    {"mxu-operands", "last-step-epilogue", "widened_gelu@tpu7x"},
    {"full-lanes", "double-buffering", "buffered_rotary@v6e"},
    {"exp2", "dimension-semantics", "radial@v5p"},
    {"last-step-epilogue", "vmem-limit", "greedy_gelu@tpu7x"},
    {"one-pass-statistics", "dimension-semantics", "serial_group_norm@v5p"},
};

TEST(Rewrite, RulesCompose) {
  for (const PairCase& entry : kPairs) {
    SCOPED_TRACE(std::string(entry.first) + " and " + entry.second + " on " + entry.key);
    const std::string first = Ask(entry.key).Applied(entry.first);
    const std::string key = std::string(entry.key) + " after " + entry.first;
    const Answered again = Ask(key, first);
    const std::string both = again.Applied(entry.second);
    ExpectGolden(std::string(entry.first) + "+" + entry.second, both);
    // What was done is not proposed once more.
    EXPECT_TRUE(again.Of(entry.first).empty()) << entry.first;
  }
}

TEST(Rewrite, ArithmeticIsLeftAloneWhereMemoryIsTheBound) {
  profile::ProfileReport report;
  report.kernels.emplace_back();
  report.kernels.back().is_pallas = true;
  report.kernels.back().bound = cost::Bound::kMemory;
  for (const auto& [rule, key] : {std::pair("exp2", "radial@v5e"), std::pair("one-pass-statistics", "norm@tpu7x")}) {
    const Answered bound = Ask(key, {}, Exactness::kReassociation, &report);
    EXPECT_TRUE(bound.Of(rule).empty());
    EXPECT_NE(bound.Reason(rule).find("bound by memory"), std::string::npos) << bound.Reason(rule);
  }
  report.kernels.back().bound = cost::Bound::kVector;
  EXPECT_FALSE(Ask("radial@v5e", {}, Exactness::kReassociation, &report).Of("exp2").empty());
}

TEST(Rewrite, KeepsTheRestOfTheFile) {
  const std::string text = KernelText("gelu_each_step");
  const Answered answered = Ask("up@tpu7x", text);
  const std::string edited = answered.Applied("last-step-epilogue");
  EXPECT_NE(edited.find("  # biased"), std::string::npos);
  const size_t kernel = text.find("def up_kernel");
  const size_t launch = text.find("# kernelwright: x=bf16[2048,2048]");
  EXPECT_EQ(edited.substr(0, kernel), text.substr(0, kernel));
  EXPECT_EQ(edited.substr(edited.size() - (text.size() - launch)), text.substr(launch));
}

TEST(Rewrite, CarriageReturnsStay) {
  std::string text;
  for (const char c : KernelText("single_buffer")) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const std::string edited = Ask("tanh@v6e", text).Applied("double-buffering");
  EXPECT_EQ(std::count(edited.begin(), edited.end(), '\n'), std::count(edited.begin(), edited.end(), '\r'));
}

TEST(Rewrite, ProgramsWithoutKernels) {
  std::vector<std::unique_ptr<kernels::SourceFile>> files;
  files.push_back(std::make_unique<kernels::SourceFile>("f.py", "def f(x):\n    return x\n"));
  const Program program;
  const std::vector<kernels::InputSpec> inputs;
  const auto found =
      ProposeRewrites({files, "f.py", "f", program, inputs, ChipOf("v6e"), nullptr, Exactness::kReassociation});
  EXPECT_TRUE(found.proposals.empty());
  ASSERT_EQ(found.refusals.size(), RuleNames().size());
  EXPECT_EQ(found.refusals.front().reason, "the program has no Pallas kernel");
}

}  // namespace
}  // namespace kernelwright::rewrite
