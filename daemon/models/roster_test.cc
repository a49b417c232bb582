// Which model does what.
#include "daemon/models/roster.h"

#include "daemon/models/load_catalogue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright::models {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string>& Roles() {
  static const std::vector<std::string> roles = {"planner", "implementer", "debugger"};
  return roles;
}

TEST(RosterTest, ChoicesAsTheyAreWritten) {
  EXPECT_TRUE(ParseModelChoice("", Roles())->none());
  EXPECT_TRUE(ParseModelChoice("none", Roles())->none());
  const ModelChoice choice = ParseModelChoice("anthropic:a, debugger=ollama:qwen3:8b ,planner=none", Roles()).value();
  EXPECT_EQ(choice.all.model, "a");
  EXPECT_EQ(choice.role.at("debugger").model, "qwen3:8b");
  EXPECT_TRUE(choice.role.at("planner").none());
  EXPECT_FALSE(choice.none());
  EXPECT_EQ(ParseModelChoice("compatible:name=with", Roles())->all.model, "name=with");
}

TEST(RosterTest, WrongChoicesSayWhat) {
  const auto error = [](const char* text) { return ParseModelChoice(text, Roles()).error().ToString(); };
  EXPECT_THAT(error("planer=a:b"), HasSubstr("Did you mean 'planner'?"));
  EXPECT_THAT(error("planner=a:b,planner=a:c"), HasSubstr("twice"));
  EXPECT_THAT(error("a:b,c:d"), HasSubstr("two models"));
  EXPECT_THAT(error("gpt-5"), HasSubstr("PROVIDER:MODEL"));
}

TEST(RosterTest, EachRoleHasItsModelOrItsRules) {
  const ModelCatalogue catalogue = LoadModelCatalogue(std::string(KW_SOURCE_DIR) + "/agents", {}).value();
  Budget budget;
  const Environment nothing = [](const std::string&) { return std::nullopt; };
  std::map<std::string, ApiKey> keys;
  keys.emplace("anthropic", ApiKey::Make("key-123456", "the caller").value());
  const auto choice = ParseModelChoice("anthropic:claude-opus-5,debugger=ollama:q,planner=none", Roles()).value();
  const auto roster = Roster::Make(choice, catalogue, nothing, keys, {}, budget, {});
  ASSERT_TRUE(roster) << roster.error().ToString();
  EXPECT_EQ(roster->For("planner"), nullptr);
  EXPECT_EQ(roster->For("implementer")->Name(), "anthropic:claude-opus-5");
  EXPECT_EQ(roster->For("debugger")->Name(), "ollama:q");
  const auto missing = Roster::Make(choice, catalogue, nothing, {}, {}, budget, {});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().remedy(), HasSubstr("ANTHROPIC_API_KEY"));
}

}  // namespace
}  // namespace kernelwright::models
