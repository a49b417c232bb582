// What a model is told about JSON that does not fit.
#include "daemon/models/json_schema.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json Schema() {
  return Json::parse(R"({
    "type": "object", "additionalProperties": false, "required": ["path", "edits"],
    "properties": {
      "path": {"type": "string", "minLength": 1},
      "mode": {"enum": ["replace", "insert"]},
      "count": {"type": ["integer", "null"], "minimum": 1, "maximum": 9},
      "edits": {"type": "array", "minItems": 1, "maxItems": 2, "items": {
        "type": "object", "additionalProperties": false, "required": ["line"],
        "properties": {"line": {"type": "integer"}, "text": {"type": "string"}}}}}})");
}

std::vector<std::string> Problems(const char* text) { return CheckAgainstSchema(Schema(), Json::parse(text)); }

TEST(JsonSchemaTest, WhatFitsHasNoProblem) {
  EXPECT_THAT(Problems(R"({"path": "a", "edits": [{"line": 3}], "count": null, "mode": "insert"})"), IsEmpty());
  EXPECT_THAT(Problems(R"({"path": "a", "edits": [{"line": 3.0}]})"), IsEmpty());
}

TEST(JsonSchemaTest, EachMessageNamesThePlaceAndTheCure) {
  EXPECT_THAT(Problems(R"({"edits": [{"line": 3}]})"), ElementsAre("`path` is missing"));
  EXPECT_THAT(Problems(R"({"path": "a", "edits": [{"line": "3"}]})"),
              ElementsAre("`edits[0].line` must be an integer, got \"3\""));
  EXPECT_THAT(Problems(R"({"path": "a", "edits": [{"line": 3, "txt": ""}]})"),
              ElementsAre("there is no field `edits[0].txt`; did you mean `text`?"));
  EXPECT_THAT(Problems(R"({"path": "a", "edits": [{"line": 3}], "mode": "replac"})"),
              ElementsAre("`mode` must be one of \"replace\", \"insert\", got \"replac\"; did you mean \"replace\"?"));
  EXPECT_THAT(Problems(R"({"path": "a", "edits": []})"),
              ElementsAre("`edits` must be at least 1 elements long, got 0"));
  EXPECT_THAT(Problems(R"({"path": "a", "edits": [{"line": 3}], "count": 10})"),
              ElementsAre("`count` must be at most 9, got 10"));
  EXPECT_THAT(Problems(R"({"path": "a", "edits": [{"line": 3}], "count": "x"})"),
              ElementsAre("`count` must be an integer or a null, got \"x\""));
  EXPECT_THAT(Problems(R"([])"), ElementsAre("the value must be an object, got []"));
}

TEST(JsonSchemaTest, ManyProblemsAreCutOff) {
  Json value = {{"path", "a"}, {"edits", Json::array({{{"line", 1}}})}};
  for (int i = 0; i < 50; ++i) value["x" + std::to_string(i)] = i;
  EXPECT_EQ(CheckAgainstSchema(Schema(), value, 5).size(), 5);
}

TEST(JsonSchemaTest, SchemasAreCheckedToo) {
  EXPECT_TRUE(CheckSchema(Schema()).ok());
  EXPECT_THAT(CheckSchema(Json::parse(R"({"type": "objekt"})")).message(), HasSubstr("objekt"));
  EXPECT_THAT(CheckSchema(Json::parse(R"({"type": "object", "required": ["a"]})")).message(), HasSubstr("no property"));
  EXPECT_THAT(CheckSchema(Json::parse(R"({"type": "string", "format": "uri"})")).message(), HasSubstr("format"));
}

TEST(JsonSchemaTest, AnswersMayComeInAFence) {
  const Json schema = {{"type", "object"}, {"required", {"a"}}, {"properties", {{"a", {{"type", "integer"}}}}}};
  EXPECT_EQ(ReadStructured(R"({"a": 1})", schema).value()["a"], 1);
  EXPECT_EQ(ReadStructured("Here it is:\n```json\n{\"a\": 2}\n```\nDone.", schema).value()["a"], 2);
  EXPECT_THAT(ReadStructured("no", schema).error().message(), HasSubstr("not JSON"));
  EXPECT_THAT(ReadStructured(R"({"a": "x"})", schema).error().message(), HasSubstr("`a` must be an integer"));
}

TEST(JsonSchemaTest, AnyOfNeedsOneThatFits) {
  const Json schema = Json::parse(R"({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 3}]})");
  EXPECT_THAT(CheckAgainstSchema(schema, 4), IsEmpty());
  EXPECT_THAT(CheckAgainstSchema(schema, 1), ElementsAre("the value fits none of the allowed forms, got 1"));
}

}  // namespace
}  // namespace kernelwright::models
