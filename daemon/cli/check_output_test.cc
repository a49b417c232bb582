// What a check prints: for people, as JSON, as SARIF; and which fixes go together.
#include <algorithm>

#include "daemon/base/hash.h"
#include "daemon/cli/check_fix.h"
#include "daemon/cli/check_json.h"
#include "daemon/cli/check_sarif.h"
#include "daemon/cli/check_view.h"
#include "gtest/gtest.h"

namespace kernelwright::cli {
namespace {

agents::CheckResult Example() {
  agents::CheckResult result;
  result.file = "/w/a b.py";
  result.chips = {"v6e"};
  result.results = {{"v6e", "errors"}};
  diagnose::Diagnostic diagnostic;
  diagnostic.id = "D01";
  diagnostic.name = "block-tile";
  diagnostic.place = {"/w/a b.py", 2, 5, 2, 8};
  diagnostic.message = "bad block";
  diagnostic.chips = {"v6e"};
  diagnostic.fixes = {{"Round", {{"/w/a b.py", {6, 9}, "yes", Sha256Hex("one\n  two\n")}}, {"v6e"}}};
  result.diagnostics = {diagnostic};
  return result;
}

TEST(CheckOutput, LineAndCarets) {
  const std::string text = RenderCheck(Example(), {{"/w/a b.py", "one\n    two\n"}}, {false, "/w", {}}, {});
  EXPECT_NE(text.find("a b.py:2:5: error: bad block [D01] (v6e)\n 2 |     two\n   |     ^~~\n"), std::string::npos)
      << text;
}

TEST(CheckOutput, Json) {
  const nlohmann::json object = CheckJson({}, Example());
  EXPECT_EQ(object["status"], "errors");
  EXPECT_EQ(object["exit_code"], 1);
  EXPECT_EQ(object["diagnostics"][0]["line"], 2);
  EXPECT_EQ(object["errors"], 1);
}

TEST(CheckOutput, SarifHasWhatTheSchemaRequires) {
  const nlohmann::json log = CheckSarif(Example(), "/w", "0.1.0");
  EXPECT_EQ(log["version"], "2.1.0");
  const nlohmann::json& run = log["runs"][0];
  EXPECT_EQ(run["tool"]["driver"]["name"], "kernelwright");
  EXPECT_EQ(run["tool"]["driver"]["rules"][0]["id"], "D01");
  const nlohmann::json& found = run["results"][0];
  EXPECT_EQ(found["message"]["text"], "bad block");
  EXPECT_EQ(found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "a%20b.py");
  EXPECT_EQ(found["locations"][0]["physicalLocation"]["region"]["endColumn"], 8);
  EXPECT_TRUE(found["fixes"][0]["artifactChanges"][0]["replacements"][0].contains("deletedRegion"));
  EXPECT_TRUE(run["invocations"][0]["executionSuccessful"]);
}

TEST(CheckOutput, VersionedEditFixesOfAnotherTextAreRefused) {
  const auto fixed = ApplyFixes(Example().diagnostics, {{"/w/a b.py", "one\n  two\n"}}, 9);
  ASSERT_TRUE(fixed);
  EXPECT_EQ(fixed->after.at("/w/a b.py"), "one\n  yes\n");
  EXPECT_FALSE(ApplyFixes(Example().diagnostics, {{"/w/a b.py", "other text\n"}}, 9));
}

}  // namespace
}  // namespace kernelwright::cli
