#include "daemon/diagnose/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "daemon/base/files.h"
#include "daemon/diagnose/catalogue_text.h"

namespace kernelwright::diagnose {
namespace {

using ::testing::HasSubstr;

std::string Entries(const std::string& entries) { return R"({"version": 1, "entries": [)" + entries + "]}"; }

// A small entry with the given id and further fields.
std::string Small(const std::string& id, const std::string& fields) {
  return R"({"id": ")" + id +
         R"(", "name": "n", "title": "t", "severity": "error", "class": "L", "state": "now", "cause": "c",)"
         R"("fix": {"kind": "do", "text": "f"}, "message": ["{a}!", "plain"])" +
         (fields.empty() ? "" : ", ") + fields + "}";
}

Catalogue Parsed(const std::string& entries) {
  Expected<Catalogue> catalogue = Catalogue::Parse(Entries(entries));
  EXPECT_TRUE(catalogue) << catalogue.error().ToString();
  return catalogue ? *std::move(catalogue) : Catalogue();
}

std::string ParseError(const std::string& entries) {
  const Expected<Catalogue> catalogue = Catalogue::Parse(Entries(entries));
  return catalogue ? "" : catalogue.error().ToString();
}

CodeError Error(const std::string& message) { return {"lower", "ValueError", message, "", {}, ""}; }

std::string BestId(const Catalogue& catalogue, const CodeError& error, const std::string& chip = "v6e",
                   const std::string& source = "") {
  const std::optional<Match> match = catalogue.Best(error, chip, source);
  return match ? match->entry->id : "";
}

Catalogue Shipped() {
  const Expected<std::string> text = ReadFile(std::string(KW_SOURCE_DIR) + "/agents/diagnostics.json");
  EXPECT_TRUE(text);
  Expected<Catalogue> catalogue = Catalogue::Parse(*text);
  EXPECT_TRUE(catalogue) << catalogue.error().ToString();
  return *std::move(catalogue);
}

TEST(Pattern, HolesCaptureByKind) {
  const Expected<Pattern> pattern =
      Pattern::Parse("size {size:size} and limit {limit:size} in {shape:group}: {rest:line}");
  ASSERT_TRUE(pattern);
  Captures captures;
  const auto found = pattern->Find("x size 48.00M and limit 16.00M in (1, (2, 3)): the rest\nnot this", 0, captures);
  ASSERT_TRUE(found);
  EXPECT_EQ(captures["size"], "48.00M");
  EXPECT_EQ(captures["limit"], "16.00M");
  EXPECT_EQ(captures["shape"], "(1, (2, 3))");
  EXPECT_EQ(captures["rest"], "the rest");
  EXPECT_EQ(found->literal, std::string("size  and limit  in : ").size());
}

TEST(Pattern, WordGivesBackWhatTheLiteralNeeds) {
  const Expected<Pattern> pattern = Pattern::Parse("tc: {name:word}. Please");
  ASSERT_TRUE(pattern);
  Captures captures;
  ASSERT_TRUE(pattern->Find("lowering for tc: scatter-add. Please file", 0, captures));
  EXPECT_EQ(captures["name"], "scatter-add");
}

TEST(Pattern, StartsWithAHoleAtAWord) {
  const Expected<Pattern> pattern = Pattern::Parse("{function:word}() takes {n:int} positional");
  ASSERT_TRUE(pattern);
  Captures captures;
  ASSERT_TRUE(pattern->Find("f.<locals>.<lambda>() takes 1 positional argument", 0, captures));
  EXPECT_EQ(captures["function"], "f.<locals>.<lambda>");
}

TEST(Pattern, RefusesWhatCannotBeMeant) {
  EXPECT_FALSE(Pattern::Parse(""));
  EXPECT_FALSE(Pattern::Parse("{a:word}"));
  EXPECT_FALSE(Pattern::Parse("x {a}"));
  EXPECT_FALSE(Pattern::Parse("x {a:verb}"));
  EXPECT_FALSE(Pattern::Parse("x {a:word"));
  EXPECT_FALSE(Pattern::Parse("{a:line} x"));
}

TEST(Pattern, DoubledBraceIsABrace) {
  const Expected<Pattern> pattern = Pattern::Parse("contain X{{64");
  ASSERT_TRUE(pattern);
  Captures captures;
  EXPECT_TRUE(pattern->Find("not contain X{64|128}", 0, captures));
}

TEST(CatalogueText, SizesInKib) {
  EXPECT_EQ(KibText(*ParseBytes("48.00M")), "49,152 KiB");
  EXPECT_EQ(KibText(*ParseBytes("134217728")), "131,072 KiB");
  EXPECT_EQ(KibText(*ParseBytes("1.5K")), "1.5 KiB");
  EXPECT_EQ(KibText(*ParseBytes("64MiB")), "65,536 KiB");
  EXPECT_FALSE(ParseBytes("M"));
  EXPECT_FALSE(ParseBytes("12.3X"));
}

TEST(CatalogueText, BlocksAsInABlockSpec) {
  const auto block = ParseBlock("(Squeezed(), Blocked(block_size=4), Blocked(block_size=100))");
  ASSERT_TRUE(block);
  EXPECT_EQ(BlockText(*block), "(None, 4, 100)");
  EXPECT_EQ(BlockText(*RoundBlock(*block, *ParseBlock("(3, 64, 1000)"))), "(None, 8, 128)");
  EXPECT_EQ(BlockText(*RoundBlock(*ParseBlock("(4, 100)"), *ParseBlock("(6, 110)"))), "(6, 110)");
  EXPECT_EQ(BlockText(*RoundBlock(*ParseBlock("(100,)"), *ParseBlock("(3000,)"))), "(1024,)");
  EXPECT_FALSE(ParseBlock("(BoundedSlice(8), 1)"));
  EXPECT_FALSE(RoundBlock(*ParseBlock("(8,)"), *ParseBlock("(8, 8)")));
}

TEST(Catalogue, SaysWhichEntryAndFieldIsWrong) {
  EXPECT_THAT(ParseError(Small("D01", R"("matches": [])")), HasSubstr("matches"));
  EXPECT_THAT(ParseError(Small("D01", R"("match": [{"text": "{a"}])")), HasSubstr("D01"));
  EXPECT_THAT(ParseError(Small("D01", R"("match": [{"exception": "ValueError"}])")), HasSubstr("every error"));
  EXPECT_THAT(ParseError(Small("D01", R"("locate": "elsewhere")")), HasSubstr("elsewhere"));
  EXPECT_THAT(ParseError(Small("D01", R"("beats": ["D77"])")), HasSubstr("D77"));
  EXPECT_THAT(ParseError(Small("D01", "") + "," + Small("D01", "")), HasSubstr("twice"));
  EXPECT_THAT(ParseError(Small("X1", "")), HasSubstr("id"));
  EXPECT_THAT(ParseError(R"({"id": "D01"})"), HasSubstr("name"));
  EXPECT_FALSE(Catalogue::Parse("[1"));
}

TEST(Catalogue, MoreOfTheTextExplainedWins) {
  const Catalogue catalogue = Parsed(Small("D01", R"("match": [{"text": "out of memory"}])") + "," +
                                     Small("D02", R"("match": [{"text": "out of memory in vmem"}])"));
  EXPECT_EQ(BestId(catalogue, Error("out of memory in vmem")), "D02");
  EXPECT_EQ(BestId(catalogue, Error("out of memory in smem")), "D01");
  EXPECT_EQ(BestId(catalogue, Error("all is well")), "");
}

TEST(Catalogue, BeatsOverridesLength) {
  const Catalogue catalogue = Parsed(Small("D01", R"("match": [{"text": "a long and general text"}])") + "," +
                                     Small("D02", R"("beats": ["D01"], "match": [{"text": "text"}])"));
  EXPECT_EQ(BestId(catalogue, Error("a long and general text")), "D02");
}

TEST(Catalogue, TextsOccurInOrder) {
  const Catalogue catalogue = Parsed(Small("D01", R"("match": [{"text": ["one", "two"]}])"));
  EXPECT_EQ(BestId(catalogue, Error("one and two")), "D01");
  EXPECT_EQ(BestId(catalogue, Error("two and one")), "");
}

TEST(Catalogue, PrimitiveIsAWholeWord) {
  const Catalogue catalogue = Parsed(Small("D01", R"("match": [{"primitive": ["cos", "scatter"]}])"));
  const std::string head = "Unimplemented primitive in Pallas TPU lowering for tc: ";
  EXPECT_EQ(BestId(catalogue, Error(head + "cos. Please file")), "D01");
  EXPECT_EQ(BestId(catalogue, Error("Unimplemented primitive in Pallas TPU lowering for KernelType.TC: cos. Please")),
            "D01");
  EXPECT_EQ(BestId(catalogue, Error(head + "cosh. Please file")), "");
  EXPECT_EQ(BestId(catalogue, Error(head + "scatter-add. Please file")), "");
  EXPECT_EQ(BestId(catalogue, Error(head + "acos. Please file")), "");
}

TEST(Catalogue, ConditionsHold) {
  const Catalogue catalogue = Parsed(
      Small("D01", R"("match": [{"text": "fp4", "chips": ["v5e"], "exception": ["ValueError"], "stage": ["lower"]}])") +
      "," + Small("D02", R"("match": [{"text": "takes", "source": ["num_scalar_prefetch"]}])") + "," +
      Small("D03", R"("match": [{"empty": true, "traceback": ["axis_frame"]}])"));
  EXPECT_EQ(BestId(catalogue, Error("no fp4"), "v5e"), "D01");
  EXPECT_EQ(BestId(catalogue, Error("no fp4"), "tpu7x"), "");
  CodeError other = Error("no fp4");
  other.type = "TypeError";
  EXPECT_EQ(BestId(catalogue, other, "v5e"), "");
  other = Error("no fp4");
  other.stage = "compile";
  EXPECT_EQ(BestId(catalogue, other, "v5e"), "");
  EXPECT_EQ(BestId(catalogue, Error("takes 1"), "v5e"), "");
  EXPECT_EQ(BestId(catalogue, Error("takes 1"), "v5e", "f(num_scalar_prefetch=1)"), "D02");
  CodeError empty = Error("");
  empty.traceback = "in axis_frame";
  EXPECT_EQ(BestId(catalogue, empty), "D03");
  empty.message = "something";
  EXPECT_EQ(BestId(catalogue, empty), "");
}

TEST(Catalogue, SearchesTheCauseAndTheLastLineOfACallback) {
  const Catalogue catalogue = Parsed(Small("D01", R"("match": [{"text": "Revisited"}])") + "," +
                                     Small("D02", R"("match": [{"text": "never_called"}])"));
  CodeError error = Error("INTERNAL: failed");
  error.cause = "Revisited block";
  EXPECT_EQ(BestId(catalogue, error), "D01");
  EXPECT_EQ(
      BestId(catalogue, Error("INTERNAL: CpuCallback error: Traceback\n  never_called()\nValueError: Revisited\n\n")),
      "D01");
}

TEST(Catalogue, MessageFallsBackToTheTextWithoutVariables) {
  const Catalogue catalogue = Parsed(Small("D01", R"("match": [{"text": "is {a:int}"}, {"text": "is"}])"));
  EXPECT_EQ(catalogue.Best(Error("it is 3"), "v6e")->captures.at("a"), "3");
  EXPECT_EQ(catalogue.Find("D01")->Message({{"a", "3"}}), "3!");
  EXPECT_EQ(catalogue.Find("D01")->Message({}), "plain");
}

TEST(Catalogue, MakeFillsEverythingButThePlace) {
  const Catalogue catalogue = Parsed(Small("D01", ""));
  const Diagnostic made = catalogue.Make("D01", {{"a", "3"}});
  EXPECT_EQ(made.id, "D01");
  EXPECT_EQ(made.message, "3!");
  EXPECT_EQ(made.cause, "c");
  EXPECT_EQ(made.advice, "f");
  EXPECT_EQ(made.page, "docs/diagnostics/D01.md");
  EXPECT_EQ(catalogue.Make("D99").message, "");
}

TEST(Catalogue, ShippedOneIsComplete) {
  const Catalogue catalogue = Shipped();
  EXPECT_GE(catalogue.entries().size(), 130u);
  for (const Entry& entry : catalogue.entries()) {
    EXPECT_FALSE(entry.Message({}).empty()) << entry.id;
    EXPECT_FALSE(entry.Advice({}).empty()) << entry.id;
    const bool has_text = entry.kind.find_first_of("TLC") != std::string::npos;
    EXPECT_FALSE(has_text && entry.state == "now" && entry.match.empty()) << entry.id << " is found by a text";
  }
  EXPECT_TRUE(catalogue.Find("D04")->hidden);
  EXPECT_TRUE(catalogue.Find("D44")->hidden);
}

// Texts of older versions and of documentation, which today's compiler does not give.
TEST(Catalogue, ShippedOneKnowsOlderTexts) {
  const Catalogue catalogue = Shipped();
  const std::pair<const char*, const char*> kTexts[] = {
      {"Unsupported TPU device kind: cpu", "D04"},
      {"Mosaic failed to compile TPU kernel: Slice shape along dimension 1 must be aligned to tiling (128), but is 64",
       "D42"},
      {"Mosaic failed to compile TPU kernel: cannot statically prove that index in dimension 0 is a multiple of 512",
       "D79"},
      {"'vector.shape_cast' op operand #0 must be vector of any type values", "D70"},
      {"Body failed to verify: op operand vector<f32>", "D73"},
      {"slice is a Triton-specific primitive. Please consider", "D74"},
      {"INTERNAL: E2002: CompileTimeMosaicMisalignedBlockAndTiling: x", "D20"},
      {"Unsupported matmul RHS type on target: i4", "D129"},
      {"infer-vector-layout: unsupported shape cast\n %1 : vector<32xi1> -> vector<32x1xi1>", "D138"},
      {"Mosaic failed to compile TPU kernel: Invalid input layout", "D141"},
      {"Unimplemented primitive in Pallas TPU lowering for KernelType.TC: cos.", "D111"},
      {"E0200: RuntimeProgramHalted: Core halted unexpectedly", "D18"},
      {"RuntimeError: Unable to initialize backend 'tpu': ABORTED: libtpu multi-process lockfile", "D172"},
      {"MLIR translation rule for primitive 'program_id' not found for platform cpu", "D59"},
      {"operand layout does not match Mosaic layout", "D83"},
  };
  for (const auto& [text, id] : kTexts) EXPECT_EQ(BestId(catalogue, Error(text)), id) << text;
}

}  // namespace
}  // namespace kernelwright::diagnose
