// Real errors of jax 0.10.2 and libtpu 0.0.52 for the kernels of testdata/kernels.py (made by
// scripts/diagnostics_errors.py): each gets its id, and the line that the file marks.
#include "daemon/diagnose/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "daemon/base/files.h"
#include "daemon/base/json.h"
#include "daemon/base/text.h"

namespace kernelwright::diagnose {
namespace {

using ::testing::HasSubstr;

std::string Read(const std::string& path) {
  const Expected<std::string> text = ReadFile(std::string(KW_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(text) << path;
  return text ? *text : "";
}

SourceSpan SpanOf(const Json& json) {
  return {json.value("file", ""),    json.value("line", 0),       json.value("column", 0),
          json.value("end_line", 0), json.value("end_column", 0), json.value("function", "")};
}

std::vector<SourceSpan> SpansOf(const Json& list) {
  std::vector<SourceSpan> spans;
  for (const Json& span : list) spans.push_back(SpanOf(span));
  return spans;
}

Graph GraphOf(const Json& operations) {
  Graph graph;
  for (const Json& json : operations) {
    Operation operation;
    operation.name = json.at("name");
    operation.spans = SpansOf(json.at("spans"));
    for (const Json& region : json.value("regions", Json::array())) operation.regions.push_back(GraphOf(region));
    graph.operations.push_back(std::move(operation));
  }
  return graph;
}

PallasCall CallOf(const Json& json) {
  PallasCall call;
  call.name = json.value("name", "");
  call.num_scalar_prefetch = json.value("num_scalar_prefetch", 0);
  call.spans = SpansOf(json.at("spans"));
  if (!json.at("kernel_span").empty()) call.kernel_span = SpanOf(json.at("kernel_span")[0]);
  for (const Json& block : json.at("blocks")) {
    BlockMapping mapping;
    mapping.origin = block.at("origin");
    mapping.is_output = block.at("is_output");
    mapping.array.dtype = block.at("dtype");
    for (const Json& size : block.at("block")) mapping.block.push_back({BlockDim::Kind::kBlocked, size.get<int64_t>()});
    call.blocks.push_back(std::move(mapping));
  }
  for (const Json& dims : json.at("scratch")) {
    call.scratch.emplace_back();
    call.scratch.back().dims = dims.get<std::vector<int64_t>>();
  }
  call.kernel = GraphOf(json.at("kernel"));
  return call;
}

struct Outcome {
  std::string name;  // "d01_in_list"
  std::vector<std::string> chips;
  CodeError error;
  std::vector<PallasCall> calls;
};

std::vector<Outcome> Golden() {
  const Expected<Json> json = ParseJson(Read("daemon/diagnose/testdata/errors.json"));
  EXPECT_TRUE(json);
  std::vector<Outcome> outcomes;
  for (const auto& [name, list] : json->at("errors").items()) {
    for (const Json& entry : list) {
      Outcome outcome{name, entry.at("chips").get<std::vector<std::string>>(), {}, {}};
      const Json& error = entry.at("error");
      outcome.error = {error.at("stage"),           error.at("type"),
                       error.value("message", ""),  error.value("cause", ""),
                       SpansOf(error.at("frames")), error.value("traceback", "")};
      for (const Json& call : entry.at("calls")) outcome.calls.push_back(CallOf(call));
      outcomes.push_back(std::move(outcome));
    }
  }
  return outcomes;
}

// function -> line marked with HERE inside of it, or with "HERE: name".
std::map<std::string, int> MarkedLines(const std::string& text) {
  std::map<std::string, int> marked;
  std::string function;
  int number = 0;
  for (const std::string_view line : SplitLines(text)) {
    ++number;
    if (line.starts_with("def ")) function = std::string(line.substr(4, line.find('(') - 4));
    const size_t here = line.find("# HERE");
    if (here == std::string_view::npos) continue;
    const std::string_view names = line.substr(here + 6);
    if (names.starts_with(":")) {
      for (const std::string& name : Split(Trim(names.substr(1)), ' ')) marked[name] = number;
    } else {
      marked[function] = number;
    }
  }
  return marked;
}

class ExplainTest : public ::testing::Test {
 protected:
  ExplainTest() : text_(Read("daemon/diagnose/testdata/kernels.py")) {
    Expected<Catalogue> catalogue = Catalogue::Parse(Read("agents/diagnostics.json"));
    EXPECT_TRUE(catalogue) << catalogue.error().ToString();
    if (catalogue) catalogue_ = *std::move(catalogue);
  }

  Diagnostic ExplainGolden(const std::string& name) {
    for (const Outcome& outcome : Golden()) {
      if (outcome.name != name) continue;
      const auto found =
          Explain(catalogue_, outcome.error, {{"kernels.py", text_}}, outcome.calls, outcome.chips, Stage::kTrace);
      EXPECT_EQ(found.size(), 1u);
      return found.empty() ? Diagnostic() : found.front();
    }
    ADD_FAILURE() << "there is no error of " << name;
    return {};
  }

  // The text that a place covers, when it is on one line.
  std::string Marked(const Place& place) const {
    if (place.line == 0 || place.line != place.end_line) return "";
    const std::string_view line = SplitLines(text_)[static_cast<size_t>(place.line - 1)];
    return std::string(
        line.substr(static_cast<size_t>(place.column - 1), static_cast<size_t>(place.end_column - place.column)));
  }

  Catalogue catalogue_;
  std::string text_;
};

TEST_F(ExplainTest, EveryErrorGetsItsIdAndItsLine) {
  const std::map<std::string, int> lines = MarkedLines(text_);
  const Locator locator({{"kernels.py", text_}});
  const std::vector<Outcome> outcomes = Golden();
  EXPECT_GE(outcomes.size(), 80u);
  for (const Outcome& outcome : outcomes) {
    const auto found = Explain(catalogue_, outcome.error, locator, outcome.calls, outcome.chips, Stage::kCompile);
    ASSERT_EQ(found.size(), 1u) << outcome.name;
    const Diagnostic& diagnostic = found.front();
    EXPECT_EQ(diagnostic.id, "D" + outcome.name.substr(1, outcome.name.find('_') - 1)) << outcome.error.message;
    EXPECT_EQ(diagnostic.place.file, "kernels.py") << outcome.name;
    EXPECT_EQ(diagnostic.chips, outcome.chips);
    EXPECT_FALSE(diagnostic.message.empty()) << outcome.name;
    const auto line = lines.find(outcome.name);
    if (line == lines.end()) continue;
    EXPECT_EQ(diagnostic.place.line, line->second) << outcome.name << ": " << diagnostic.message;
  }
}

TEST_F(ExplainTest, BlockErrorsNameTheOperandAndTheNearestBlock) {
  const Diagnostic found = ExplainGolden("d01_in_list");
  EXPECT_EQ(Marked(found.place), "pl.BlockSpec((12, 128), lambda i, j: (i, j))");
  EXPECT_THAT(found.message, HasSubstr("(12, 128) of input 1"));
  EXPECT_THAT(found.message, HasSubstr("Nearest block: (16, 128)"));
  ASSERT_EQ(found.related.size(), 2u);
  EXPECT_EQ(found.related[0].message, "the kernel is called here");
}

TEST_F(ExplainTest, PrefetchOperandsAreNotCountedInSpecs) {
  const Diagnostic found = ExplainGolden("d01_behind_prefetch");
  EXPECT_EQ(Marked(found.place), "pl.BlockSpec((30, 384), lambda i, ids: (ids[i], 0))");
  EXPECT_THAT(found.message, HasSubstr("input 0 (`x_ref`)"));
}

TEST_F(ExplainTest, LimitsAreInKib) {
  const Diagnostic found = ExplainGolden("d90_blocks");
  EXPECT_THAT(found.message, HasSubstr("KiB more than its limit of 16,384 KiB"));
}

TEST_F(ExplainTest, CompilerLocationsAreExact) {
  EXPECT_EQ(Marked(ExplainGolden("d78_rows").place), "x_ref[pl.ds(first, 16), :]");
  EXPECT_EQ(Marked(ExplainGolden("d100_cumsum").place), "jnp.cumsum(v, axis=0)");
}

TEST_F(ExplainTest, UnknownErrorIsWholeAndNotGuessed) {
  const Diagnostic found = ExplainGolden("d000_unknown");
  EXPECT_EQ(found.id, "D000");
  EXPECT_THAT(found.message, HasSubstr("population_count"));
  EXPECT_THAT(found.raw, HasSubstr("population_count"));
  EXPECT_EQ(found.page, "");
}

TEST_F(ExplainTest, OurOwnDoingIsNeverAnErrorOfTheKernel) {
  const CodeError error{"lower", "ValueError", "Unsupported TPU device kind: cpu", "", {}, ""};
  EXPECT_TRUE(Explain(catalogue_, error, {{"kernels.py", text_}}, {}, {"v6e"}, Stage::kTrace).empty());
}

TEST_F(ExplainTest, FramesOfLibrariesAreSkipped) {
  const std::string file = "def f(x):\n    return helper(x)\n";
  const CodeError error{
      "trace", "ValueError", "odd", "", {{"/lib/other.py", 7, 1, 7, 9, "helper"}, {"a.py", 2, 12, 2, 21, "f"}}, ""};
  const auto found = Explain(catalogue_, error, {{"a.py", file}}, {}, {"v6e"}, Stage::kTrace);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].place, (Place{"a.py", 2, 12, 2, 21}));
}

// jax appends the frames of the kernel behind those of the caller, so what comes before them is no helper of the
// kernel.
TEST_F(ExplainTest, FramesBehindTheCallAreTheKernels) {
  const std::string file =
      "def build(kernel):\n"
      "    return pl.pallas_call(kernel, out_shape=out)\n"
      "def f(x, y):\n"
      "    def kernel(x_ref, y_ref, o_ref):\n"
      "        o_ref[...] = jnp.dot(x_ref[...], y_ref[...])\n"
      "    return build(kernel)(x, y)\n";
  CodeError error{"lower", "VerificationError", "Expected matmul acc to be 32-bit", "", {}, ""};
  error.frames = {{"a.py", 2, 0, 2, 0, "build"},
                  {"a.py", 6, 0, 6, 0, "f"},
                  {"a.py", 5, 0, 5, 0, "dot_general/dot_general\"(callsite(\"f.<locals>.kernel"},
                  {"a.py", 5, 0, 5, 0, "f.<locals>.kernel"}};
  PallasCall call;
  call.spans = {{"a.py", 2, 12, 2, 49, "build"}};
  call.kernel_span = {"a.py", 4, 0, 4, 0, "kernel"};
  const auto found = Explain(catalogue_, error, {{"a.py", file}}, {call}, {"v6e"}, Stage::kCompile);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id, "D124");
  EXPECT_EQ(found[0].place.line, 5);
}

TEST_F(ExplainTest, ColumnsCountCharacters) {
  const std::string file = "def f(x):\n    é = x; return g(é)\n";
  CodeError error{"compile", "JaxRuntimeError", "", "", {}, ""};
  error.message = "at location: loc(\"get:\"(\"f\"(\"a.py\":2:19 to :24)))";  // bytes from 0
  const auto found = Explain(catalogue_, error, {{"a.py", file}}, {}, {"v6e"}, Stage::kCompile);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].place, (Place{"a.py", 2, 19, 2, 23}));
}

TEST(FramesOfLocations, ReadsBothForms) {
  const auto frames = FramesOfLocations(
      "loc(\"get:\"(\"get/get\"(callsite(\"k.<locals>.f\"(\"a/k.py\":30:23 to :29) at \"k\"(\"a/k.py\":41:2 to "
      "43:9)))))");
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].file, "a/k.py");
  EXPECT_EQ(frames[0].function, "k.<locals>.f");
  EXPECT_EQ(frames[0].line, 30);
  EXPECT_EQ(frames[0].column, 24);
  EXPECT_EQ(frames[0].end_column, 30);
  EXPECT_EQ(frames[1].end_line, 43);
  EXPECT_EQ(frames[1].end_column, 10);
  EXPECT_TRUE(FramesOfLocations("no place, \"k.py\":x").empty());
}

}  // namespace
}  // namespace kernelwright::diagnose
