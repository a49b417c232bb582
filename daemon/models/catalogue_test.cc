// Prices and limits as data: dated versions, tiers, caches, and what is not known.
#include "daemon/models/catalogue.h"

#include <string>

#include "daemon/base/files.h"
#include "daemon/models/load_catalogue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright::models {
namespace {

using ::testing::HasSubstr;

const ModelCatalogue& BuiltIn() {
  static const ModelCatalogue catalogue = LoadModelCatalogue(std::string(KW_SOURCE_DIR) + "/agents", {}).value();
  return catalogue;
}

TEST(CatalogueTest, BuiltInListIsSound) {
  EXPECT_GE(BuiltIn().providers().size(), 6);
  for (const ModelFacts& model : BuiltIn().models()) {
    SCOPED_TRACE(model.provider + ":" + model.id);
    EXPECT_TRUE(model.has_price());
    EXPECT_FALSE(model.source.empty());
    EXPECT_EQ(model.date.size(), 10);
    EXPECT_GE(model.context_tokens, 100'000);
    EXPECT_GE(model.max_output_tokens, 8'000);
    for (const Price& price : model.prices) {
      EXPECT_GT(price.input, 0);
      EXPECT_GT(price.output, price.input);
      EXPECT_LE(price.cached_input.value_or(0), price.input);
    }
  }
}

TEST(CatalogueTest, C58CacheWritesHaveTheirOwnPrice) {
  const ModelFacts facts = BuiltIn().Facts("anthropic", "claude-opus-5");
  Usage usage{.known = true, .input_tokens = 1'000'000};
  EXPECT_DOUBLE_EQ(*facts.Cost(usage), 5.0);
  usage.cache_write_tokens = 1'000'000;
  EXPECT_DOUBLE_EQ(*facts.Cost(usage), 6.25);
  usage.cache_write_tokens = 0;
  usage.cache_write_1h_tokens = 1'000'000;
  EXPECT_DOUBLE_EQ(*facts.Cost(usage), 10.0) << "an hour costs twice the input, not 1.25 times";
  usage.cache_write_1h_tokens = 0;
  usage.cached_input_tokens = 1'000'000;
  EXPECT_DOUBLE_EQ(*facts.Cost(usage), 0.5);
  usage.output_tokens = 1'000'000;
  EXPECT_DOUBLE_EQ(*facts.Cost(usage), 25.5);
}

TEST(CatalogueTest, C58UnknownIsNotZero) {
  const ModelFacts facts = BuiltIn().Facts("openai", "gpt-99");
  EXPECT_FALSE(facts.has_price());
  EXPECT_FALSE(facts.Cost({.known = true, .input_tokens = 10}));
  EXPECT_FALSE(facts.MostCost(10, 10));
  EXPECT_FALSE(BuiltIn().Facts("anthropic", "claude-opus-5").Cost({})) << "usage that nobody counted";
}

TEST(CatalogueTest, LongPromptsCostMore) {
  const ModelFacts facts = BuiltIn().Facts("gemini", "gemini-2.5-pro");
  EXPECT_DOUBLE_EQ(*facts.Cost({.known = true, .input_tokens = 200'000}), 0.25);
  EXPECT_DOUBLE_EQ(*facts.Cost({.known = true, .input_tokens = 400'000}), 1.0);
  EXPECT_DOUBLE_EQ(*facts.MostCost(400'000, 0), 1.0);
}

TEST(CatalogueTest, DatedVersionsHaveTheFactsOfTheirModelAndNothingElseDoes) {
  EXPECT_TRUE(BuiltIn().Facts("anthropic", "claude-haiku-4-5-20251001").has_price());
  EXPECT_TRUE(BuiltIn().Facts("openai", "gpt-5.4-2026-03-05").has_price());
  EXPECT_TRUE(BuiltIn().Facts("openai", "gpt-5.4-mini-2026-03-17").has_price());
  EXPECT_FALSE(BuiltIn().Facts("openai", "gpt-5.4-ultra").has_price());
  EXPECT_FALSE(BuiltIn().Facts("gemini", "claude-opus-5").has_price());
}

TEST(CatalogueTest, AModelOnThisMachineIsFree) {
  const ModelFacts facts = BuiltIn().Facts("ollama", "qwen3:8b");
  EXPECT_DOUBLE_EQ(*facts.Cost({.known = true, .input_tokens = 1000, .output_tokens = 1000}), 0.0);
  EXPECT_THAT(facts.source, HasSubstr("own machine"));
}

TEST(CatalogueTest, ClosestProviderIsNamed) {
  const auto found = BuiltIn().Provider("antropic");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().remedy(), HasSubstr("anthropic"));
}

TEST(CatalogueTest, ModelNamesSplitAtTheFirstColon) {
  EXPECT_EQ(ParseModelName("ollama:qwen3:8b")->model, "qwen3:8b");
  EXPECT_EQ(ParseModelName("openrouter:meta/llama")->provider, "openrouter");
  EXPECT_TRUE(ParseModelName("none")->none());
  EXPECT_TRUE(ParseModelName("")->none());
  for (const char* wrong : {"gpt-5", ":x", "openai:"}) EXPECT_FALSE(ParseModelName(wrong)) << wrong;
}

TEST(CatalogueTest, C54NoFileHoldsAKey) {
  for (
      const char* text :
      {R"({"version": 1, "providers": [{"name": "x", "wire": "openai", "api_key": "abcdef"}]})",
       R"({"version": 1, "providers": [{"name": "x", "wire": "openai", "base_url": "https://h/?k=sk-abcdefghijklmnopqrstuv"}]})",
       R"({"version": 1, "key": "x"})"}) {
    const auto parsed = ParseModelCatalogue(text, "models.json");
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message(), HasSubstr("key"));
    EXPECT_THAT(parsed.error().ToString(), ::testing::Not(HasSubstr("abcdef"))) << "the message repeats the key";
  }
}

TEST(CatalogueTest, WrongFilesSayWhere) {
  const auto error = [](const char* text) { return ParseModelCatalogue(text, "models.json", true).error().ToString(); };
  EXPECT_THAT(error("{"), HasSubstr("models.json"));
  EXPECT_THAT(error(R"({"version": 2})"), HasSubstr("version 2"));
  EXPECT_THAT(error(R"({"version": 1, "providers": [{"name": "x", "wire": "soap"}]})"), HasSubstr("providers[0]"));
  EXPECT_THAT(
      error(R"({"version": 1, "models": [{"provider": "p", "id": "m", "prices": [{"input": -1, "output": 1}]}]})"),
      HasSubstr("models[0].prices[0].input"));
  EXPECT_THAT(
      error(R"({"version": 1, "models": [{"provider": "p", "id": "m", "prices": [{"input": 1, "output": 1}]}]})"),
      HasSubstr("source"));
}

TEST(CatalogueTest, TheUsersFileReplacesEntries) {
  const TempFolder folder = TempFolder::Make().value();
  ASSERT_TRUE(WriteFileAtomically(folder.path() / "models.json", R"({"version": 1, "models": [
    {"provider": "openai", "id": "gpt-5", "prices": [{"input": 1, "output": 2}], "source": "contract", "date": "2026-11-01"}],
    "providers": [{"name": "work", "wire": "openai", "base_url": "https://models.example/v1", "key_env": ["WORK_KEY"]}]})")
                  .ok());
  const auto merged = LoadModelCatalogue(std::string(KW_SOURCE_DIR) + "/agents", folder.path());
  ASSERT_TRUE(merged) << merged.error().ToString();
  EXPECT_EQ(merged->Facts("openai", "gpt-5").source, "contract");
  EXPECT_TRUE(merged->Provider("work"));
  EXPECT_TRUE(merged->Facts("openai", "gpt-5-mini").has_price());
  ASSERT_TRUE(WriteFileAtomically(folder.path() / "models.json", "{").ok());
  EXPECT_FALSE(LoadModelCatalogue(std::string(KW_SOURCE_DIR) + "/agents", folder.path()));
}

}  // namespace
}  // namespace kernelwright::models
