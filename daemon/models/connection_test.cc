// Which server, which key, and where a key may go.
#include <map>

#include "daemon/base/redact.h"
#include "daemon/models/load_catalogue.h"
#include "daemon/models/remote_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright::models {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const ModelCatalogue& BuiltIn() {
  static const ModelCatalogue catalogue = LoadModelCatalogue(std::string(KW_SOURCE_DIR) + "/agents", {}).value();
  return catalogue;
}

Environment Having(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

Expected<Connection> Resolve(const std::string& name, std::map<std::string, std::string> environment,
                             const ConnectionOptions& options = {}) {
  return ResolveConnection(BuiltIn(), ParseModelName(name).value(), Having(std::move(environment)), options);
}

TEST(ConnectionTest, KeyAndAddressFromTheEnvironment) {
  const auto found = Resolve("anthropic:claude-opus-5", {{"ANTHROPIC_API_KEY", " key-123456 \n"}});
  ASSERT_TRUE(found) << found.error().ToString();
  EXPECT_EQ(found->endpoint.base_url, "https://api.anthropic.com");
  EXPECT_EQ(found->key.value(), "key-123456");
  EXPECT_EQ(found->key.origin(), "ANTHROPIC_API_KEY");
  EXPECT_EQ(found->KeyHeader().name, "x-api-key");
  const auto moved =
      Resolve("openai:gpt-5", {{"OPENAI_API_KEY", "key-123456"}, {"OPENAI_BASE_URL", "https://me.example/v1/"}});
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->endpoint.base_url, "https://me.example/v1");
}

TEST(ConnectionTest, AMissingKeyNamesTheVariable) {
  const auto found = Resolve("gemini:gemini-3.8-flash", {{"GEMINI_API_KEY", "  "}});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind(), ErrorKind::kEnvironment);
  EXPECT_THAT(found.error().remedy(), HasSubstr("GEMINI_API_KEY or GOOGLE_API_KEY"));
}

TEST(ConnectionTest, ServersOnThisMachineNeedNoKey) {
  const auto found = Resolve("ollama:qwen3:8b", {});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->KeyHeader().name.empty());
  EXPECT_TRUE(found->facts.has_price());
  ConnectionOptions elsewhere;
  elsewhere.base_url = "https://models.example/v1";
  EXPECT_FALSE(Resolve("ollama:qwen3:8b", {}, elsewhere)->facts.has_price()) << "nobody knows what that one costs";
}

TEST(ConnectionTest, NoKeysOnTheWireUnencrypted) {
  const auto at = [](const char* url) {
    ConnectionOptions options;
    options.base_url = url;
    return Resolve("openai:gpt-5", {{"OPENAI_API_KEY", "key-123456"}}, options);
  };
  for (const char* good :
       {"https://x.example", "http://127.0.0.1:1/v1", "http://localhost:80", "http://[::1]:8000/v1"}) {
    EXPECT_TRUE(at(good)) << good;
  }
  for (const char* bad : {"http://x.example", "http://127.0.0.1.example.com/v1", "http://127.evil/v1",
                          "ftp://x.example", "x.example/v1", "https://me:pw@x.example", "https://x.example/v1?key=1",
                          "file:///etc/passwd", "http://localhost@evil.example/v1"}) {
    EXPECT_FALSE(at(bad)) << bad;
  }
}

TEST(ConnectionTest, NoKeysOnDiskTheRedactorKnowsEachKey) {
  const auto found = Resolve("openai:gpt-5", {{"OPENAI_API_KEY", "unusual.key.value.42"}});
  ASSERT_TRUE(found);
  EXPECT_THAT(ProcessRedactor().Redact("failed with unusual.key.value.42 in it"), Not(HasSubstr("unusual.key")));
}

TEST(ConnectionTest, WhatCannotBeAKeyIsRefusedWithoutShowingIt) {
  for (const char* bad : {"two words", "line\nbreak-in-it", "k\xC3\xA4y-value"}) {
    const auto found = Resolve("openai:gpt-5", {{"OPENAI_API_KEY", bad}});
    ASSERT_FALSE(found);
    EXPECT_THAT(found.error().ToString(), Not(HasSubstr(bad)));
  }
}

TEST(ConnectionTest, AKeyOfTheCallGoesBeforeTheEnvironment) {
  ConnectionOptions options;
  options.key = ApiKey::Make("from-the-call", "the caller").value();
  EXPECT_EQ(Resolve("openai:gpt-5", {{"OPENAI_API_KEY", "from-outside"}}, options)->key.value(), "from-the-call");
}

TEST(ConnectionTest, NamesOfModelsCannotChangeTheAddress) {
  for (const char* bad : {"gemini:../../x", "gemini:a?key=1", "gemini:a b", "gemini:a#b", "gemini:%2e"}) {
    EXPECT_FALSE(Resolve(bad, {{"GEMINI_API_KEY", "key-123456"}})) << bad;
  }
  EXPECT_TRUE(Resolve("openrouter:meta/llama-5:free", {{"OPENROUTER_API_KEY", "key-123456"}}));
}

TEST(ApiKeyTest, MovedFromKeysAreEmpty) {
  ApiKey key = ApiKey::Make("short-1", "x").value();
  const ApiKey moved = std::move(key);
  EXPECT_EQ(moved.value(), "short-1");
  EXPECT_TRUE(key.empty());  // NOLINT(bugprone-use-after-move): that it is empty is the point
}

}  // namespace
}  // namespace kernelwright::models
