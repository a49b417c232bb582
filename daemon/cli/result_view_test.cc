// The final screen from result objects: golden texts, and the rules behind them.
#include "daemon/cli/result_view.h"

#include <cstdlib>
#include <fstream>

#include "daemon/base/files.h"
#include "gtest/gtest.h"

namespace kernelwright::cli {
namespace {

using nlohmann::json;

std::filesystem::path TestData(const std::string& name) {
  return std::filesystem::path(KW_SOURCE_DIR) / "daemon/cli/testdata" / name;
}

json Load(const std::string& name) { return json::parse(*ReadFile(TestData(name))); }

// With KW_UPDATE_GOLDEN set the files are written anew, to be read in the diff.
void ExpectGolden(const std::string& name, const std::string& text) {
  if (std::getenv("KW_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(TestData(name), text).ok());
  }
  const Expected<std::string> golden = ReadFile(TestData(name));
  ASSERT_TRUE(golden) << golden.error().ToString();
  EXPECT_EQ(text, *golden);
}

TEST(ResultView, Improved) { ExpectGolden("improved.txt", RenderResult(Load("improved.json"), Style())); }
TEST(ResultView, TwoChips) { ExpectGolden("two_chips.txt", RenderResult(Load("two_chips.json"), Style())); }
TEST(ResultView, Failed) { ExpectGolden("failed.txt", RenderResult(Load("failed.json"), Style())); }

TEST(ResultView, ColoursChangeNoText) {
  Style style;
  style.color = true;
  std::string colored = RenderResult(Load("improved.json"), style);
  size_t at = 0;
  while ((at = colored.find("\x1b[")) != std::string::npos) colored.erase(at, colored.find('m', at) + 1 - at);
  EXPECT_EQ(colored, RenderResult(Load("improved.json"), Style()));
}

// Results of other builds may lack any field: the screen has gaps then, and never fails.
TEST(ResultView, AnyFieldMayBeMissing) {
  const json whole = Load("improved.json");
  const json flat = whole.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    (void)value;
    json without = whole;
    json::json_pointer path(pointer);
    const std::string& last = path.back();
    json& parent = without[path.parent_pointer()];
    if (parent.is_object()) parent.erase(last);
    EXPECT_FALSE(RenderResult(without, Style()).empty()) << pointer;
    json null = whole;
    null[path] = nullptr;
    EXPECT_FALSE(RenderResult(null, Style()).empty()) << pointer;
    json wrong = whole;
    wrong[path] = json::array({1});
    EXPECT_FALSE(RenderResult(wrong, Style()).empty()) << pointer;
  }
  EXPECT_FALSE(RenderResult(json(), Style()).empty());
}

// A user's text must not drive the terminal.
TEST(ResultView, ControlCharactersAreTakenOut) {
  json result = Load("improved.json");
  result["results"][0]["candidates"][0]["why"] = "\x1b[2Jgone\nsecond";
  const std::string text = RenderResult(result, Style());
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("gone second"), std::string::npos);
}

TEST(ResultView, DiffsOfSeveralChips) {
  const json result = Load("two_chips.json");
  EXPECT_EQ(RenderDiff(result, "v6e", Style()), result["results"][1]["best"]["diff"].get<std::string>());
  EXPECT_EQ(RenderDiff(result, "", Style()).find("for v5e\n"), 0U);
  json same = result;
  same["results"][0]["best"] = same["results"][1]["best"];
  EXPECT_EQ(RenderDiff(same, "", Style()), RenderDiff(result, "v6e", Style()));
}

TEST(ChooseEdits, NeedsOneAnswer) {
  const json result = Load("two_chips.json");
  const Expected<json> unclear = ChooseEdits(result, "");
  ASSERT_FALSE(unclear);
  EXPECT_EQ(unclear.error().kind(), ErrorKind::kUsage);
  EXPECT_NE(unclear.error().remedy().find("--chip"), std::string::npos);
  EXPECT_EQ(*ChooseEdits(result, "v6e"), result["results"][1]["best"]["edits"]);
  EXPECT_FALSE(ChooseEdits(result, "v9"));
  json same = result;
  same["results"][0]["best"] = same["results"][1]["best"];
  EXPECT_EQ(ChooseEdits(same, "")->size(), 1U);
  EXPECT_TRUE(ChooseEdits(Load("failed.json"), "")->empty());
}

TEST(FormatMilliseconds, HasThreeDigits) {
  EXPECT_EQ(FormatMilliseconds(11.77), "11.8 ms");
  EXPECT_EQ(FormatMilliseconds(0.8931), "0.893 ms");
  EXPECT_EQ(FormatMilliseconds(123.4), "123 ms");
  EXPECT_EQ(FormatMilliseconds(1234.4), "1234 ms");
  EXPECT_EQ(FormatMilliseconds(0.0431), "43.1 µs");
  EXPECT_EQ(FormatMilliseconds(0.0004), "0.400 µs");
  EXPECT_EQ(FormatMilliseconds(0), "-");
}

TEST(DescribeCost, NamesClassChipAndVersions) {
  const json cost = json::parse(R"({"estimate":{"milliseconds":11.77,"low_milliseconds":7.65,"high_milliseconds":15.9,
      "confidence":"medium","evidence":{"evidence_class":"ESTIMATED","chip":"v5e","versions":{"jax":"0.10.2"}}}})");
  EXPECT_EQ(DescribeCost(cost), "11.8 ms (7.65 ms … 15.9 ms, medium confidence), estimated for v5e with jax 0.10.2");
  EXPECT_EQ(DescribeCost(json::parse(R"({"refusal":{"reason":"a branch depends on SMEM"}})")),
            "no time: a branch depends on SMEM");
  EXPECT_EQ(DescribeCost(json()), "no time");
}

}  // namespace
}  // namespace kernelwright::cli
