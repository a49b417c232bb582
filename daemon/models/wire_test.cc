// Each wire format: what it sends and what it reads, against golden files (KW_UPDATE_GOLDEN=1 writes them anew).
#include "daemon/models/wire.h"

#include <cstdlib>
#include <random>
#include <string>

#include "daemon/base/files.h"
#include "daemon/models/answer.h"
#include "daemon/models/wire_common.h"
#include "daemon/models/wire_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright::models {
namespace {

using testing::FullRequest;
using ::testing::HasSubstr;
using testing::StructuredRequest;
using testing::TestEndpoint;

std::string DataPath(const std::string& name) { return std::string(KW_SOURCE_DIR) + "/daemon/models/testdata/" + name; }

void ExpectGolden(const std::string& name, const Json& actual) {
  const std::string text = DumpJson(actual, 2) + "\n";
  if (std::getenv("KW_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(DataPath(name), text).ok());
  }
  EXPECT_EQ(ReadFile(DataPath(name)).value(), text);
}

HttpHead Head(int status, const std::string& type, HttpHeaders more = {}) {
  HttpHead head{.status = status, .headers = {{"Content-Type", type}}};
  head.headers.insert(head.headers.end(), more.begin(), more.end());
  return head;
}

class WireTest : public ::testing::TestWithParam<std::string> {
 protected:
  const WireFormat& wire() const { return *FindWireFormat(GetParam()); }
  Endpoint endpoint() const { return TestEndpoint(GetParam()); }
  CallResult<Reply> Decode(int status, const std::string& type, const std::string& body, HttpHeaders more = {}) const {
    return DecodeAnswer(wire(), endpoint(), Head(status, type, std::move(more)), body, 1'000'000);
  }
};

INSTANTIATE_TEST_SUITE_P(All, WireTest, ::testing::Values("gemini", "anthropic", "openai"),
                         [](const auto& instance) { return instance.param; });

TEST_P(WireTest, RequestWithToolsIsAsRecorded) {
  ExpectGolden(GetParam() + "_request.json", testing::ToJson(wire().Build(endpoint(), FullRequest(GetParam()))));
}

TEST_P(WireTest, RequestWithSchemaIsAsRecorded) {
  ExpectGolden(GetParam() + "_structured.json", testing::ToJson(wire().Build(endpoint(), StructuredRequest())));
}

TEST_P(WireTest, SchemaGoesIntoThePromptWhereTheServerHasNoPlaceForIt) {
  Endpoint plain = endpoint();
  plain.structured = StructuredOutput::kPrompt;
  const std::string body = wire().Build(plain, StructuredRequest()).body;
  EXPECT_THAT(body, HasSubstr("must match this JSON schema"));
  EXPECT_THAT(body, ::testing::Not(HasSubstr("response_format")));
  EXPECT_THAT(body, ::testing::Not(HasSubstr("responseJsonSchema")));
  EXPECT_THAT(body, ::testing::Not(HasSubstr("output_config")));
}

TEST_P(WireTest, TheKeyIsInNoPartOfTheRequest) {
  const HttpRequest request = wire().Build(endpoint(), FullRequest(GetParam()));
  const SecretHeader key = wire().KeyHeader("secret-value");
  EXPECT_THAT(key.value, HasSubstr("secret-value"));
  EXPECT_THAT(request.url + request.body, ::testing::Not(HasSubstr("secret-value")));
}

TEST_P(WireTest, NoStopAtAnyByteOfTheStreamIsTakenForTheEnd) {
  const std::string stream = ReadFile(DataPath(GetParam() + "_stream.txt")).value();
  const CallResult<Reply> whole = Decode(200, "text/event-stream", stream);
  ASSERT_TRUE(whole) << whole.error().status.ToString();
  ExpectGolden(GetParam() + "_reply.json", testing::ToJson(*whole));
  const std::string expected = testing::ToJson(*whole)["parts"].dump();
  for (size_t length = 0; length < stream.size(); length += 7) {
    const CallResult<Reply> cut = Decode(200, "text/event-stream", stream.substr(0, length));
    if (cut) {
      ASSERT_EQ(testing::ToJson(*cut)["parts"].dump(), expected) << "at byte " << length;
    } else {
      ASSERT_EQ(cut.error().cause, Cause::kCut) << "at byte " << length << ": " << cut.error().status.ToString();
    }
  }
}

TEST_P(WireTest, PiecesOfAnySizeGiveTheSameReplyAndShowTheText) {
  const std::string stream = ReadFile(DataPath(GetParam() + "_stream.txt")).value();
  const std::string expected = ReadFile(DataPath(GetParam() + "_reply.json")).value();
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::string text;
    std::string reasoning;
    int calls = 0;
    AnswerReader reader(wire(), endpoint(), [&](const StreamEvent& event) {
      if (event.kind == StreamEvent::Kind::kText) text += event.text;
      if (event.kind == StreamEvent::Kind::kReasoning) reasoning += event.text;
      if (event.kind == StreamEvent::Kind::kToolCall) ++calls;
    });
    reader.OnHead(Head(200, round % 2 == 0 ? "text/event-stream; charset=utf-8" : ""));
    for (size_t at = 0; at < stream.size();) {
      const size_t length = 1 + random() % 200;
      reader.OnBody(std::string_view(stream).substr(at, length));
      at += length;
    }
    const CallResult<Reply> reply = reader.Finish({}, 0);
    ASSERT_TRUE(reply) << reply.error().status.ToString();
    EXPECT_EQ(DumpJson(testing::ToJson(*reply), 2) + "\n", expected);
    EXPECT_EQ(text, "The block is too small.");
    EXPECT_EQ(reasoning, "Looking at the blocks.");
    EXPECT_EQ(calls, 1);
  }
}

TEST_P(WireTest, AReplyCanBeSentBack) {
  const std::string stream = ReadFile(DataPath(GetParam() + "_stream.txt")).value();
  const CallResult<Reply> reply = Decode(200, "text/event-stream", stream);
  ASSERT_TRUE(reply);
  Request next;
  next.messages = {Message::User("go"), reply->message};
  const ToolCall call = reply->message.ToolCalls().at(0);
  next.messages.push_back({Role::kUser, {ToolResult{call.id, call.name, "line 3", false}}});
  const Json body = Json::parse(wire().Build(endpoint(), next).body);
  EXPECT_EQ((GetParam() == "gemini" ? body["contents"] : body["messages"]).size(), 3);
  if (GetParam() != "openai") {
    EXPECT_THAT(body.dump(), HasSubstr("c2ln")) << "the signature belongs to the answer";
  }
}

TEST_P(WireTest, StatusesHaveTheirCauses) {
  const auto cause = [this](int status) { return Decode(status, "application/json", "{}").error().cause; };
  EXPECT_EQ(cause(401), Cause::kAuth);
  EXPECT_EQ(cause(403), Cause::kForbidden);
  EXPECT_EQ(cause(404), Cause::kNoModel);
  EXPECT_EQ(cause(413), Cause::kTooLong);
  EXPECT_EQ(cause(429), Cause::kRateLimit);
  EXPECT_EQ(cause(500), Cause::kServer);
  EXPECT_EQ(cause(503), Cause::kOverloaded);
  EXPECT_EQ(cause(529), Cause::kOverloaded);
  EXPECT_EQ(cause(418), Cause::kBadRequest);
  EXPECT_EQ(cause(302), Cause::kProtocol);
}

TEST_P(WireTest, RetryAfterIsReadInAllItsForms) {
  const auto wait = [this](HttpHeaders headers) {
    return Decode(429, "application/json", "{}", std::move(headers)).error().retry_after_ms;
  };
  EXPECT_EQ(wait({{"Retry-After", "12"}}), 12'000);
  EXPECT_EQ(wait({{"retry-after-ms", "350"}}), 350);
  EXPECT_EQ(wait({{"retry-after", "Thu, 01 Jan 1970 00:17:00 GMT"}}), 20'000);
  EXPECT_EQ(wait({{"retry-after", "Thu, 01 Jan 1970 00:00:00 GMT"}}), 0);
  EXPECT_FALSE(wait({{"retry-after", "soon"}}));
  EXPECT_FALSE(wait({}));
}

TEST_P(WireTest, AnHtmlPageWithStatus200IsNoAnswer) {
  const auto reply = Decode(200, "text/html", "<html><head><title>Sign in to the network</title></head></html>");
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().cause, Cause::kProtocol);
  EXPECT_THAT(reply.error().status.message(), HasSubstr("Sign in to the network"));
}

TEST_P(WireTest, DamagedJsonMayBeAskedForAgain) {
  for (const char* type : {"application/json", "text/event-stream"}) {
    const auto reply = Decode(200, type, type[0] == 'a' ? "{\"id\": 3, \"cho" : "data: {\"id\": 3, \"cho\n\n");
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().cause, Cause::kCut) << reply.error().status.ToString();
  }
}

TEST_P(WireTest, ForeignJsonIsNoAnswer) {
  const auto reply = Decode(200, "application/json", R"({"hello": "world"})");
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().cause, Cause::kProtocol);
}

// Random damage: no input crashes a decoder or passes for a different whole answer without an error of its own.
TEST_P(WireTest, DamagedStreamsNeverCrash) {
  const std::string stream = ReadFile(DataPath(GetParam() + "_stream.txt")).value();
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = stream;
    for (int i = 0; i < 4; ++i) {
      const size_t at = random() % damaged.size();
      if (random() % 2 == 0) {
        damaged[at] = static_cast<char>(random() % 256);
      } else {
        damaged.erase(at, random() % 40);
      }
    }
    (void)Decode(200, random() % 2 == 0 ? "text/event-stream" : "application/json", damaged);
  }
}

TEST(GeminiWireTest, ErrorsSayWhatToDo) {
  const auto decode = [](int status, const std::string& body) {
    return DecodeAnswer(GeminiWire(), TestEndpoint("gemini"), Head(status, "application/json"), body, 0).error();
  };
  EXPECT_EQ(decode(400, R"({"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT",
    "details":[{"reason":"API_KEY_INVALID"}]}})")
                .cause,
            Cause::kAuth);
  const CallError limited = decode(429, R"({"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED",
    "details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3.5s"}]}})");
  EXPECT_EQ(limited.cause, Cause::kRateLimit);
  EXPECT_EQ(limited.retry_after_ms, 3500);
  EXPECT_EQ(decode(429, R"({"error":{"code":429,"status":"RESOURCE_EXHAUSTED",
    "details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]}]}})")
                .cause,
            Cause::kQuota);
  EXPECT_EQ(
      decode(400, R"({"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum"}})").cause,
      Cause::kTooLong);
  // An error in the middle of a stream, with status 200.
  EXPECT_EQ(decode(200, R"({"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}})").cause,
            Cause::kOverloaded);
  EXPECT_EQ(decode(200, R"([{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}])").cause,
            Cause::kOverloaded);
}

TEST(GeminiWireTest, RefusalsAreTold) {
  const auto decode = [](const std::string& body) {
    return DecodeAnswer(GeminiWire(), TestEndpoint("gemini"), Head(200, "application/json"), body, 0).value();
  };
  EXPECT_EQ(decode(R"({"promptFeedback":{"blockReason":"SAFETY"}})").stop, StopReason::kRefused);
  EXPECT_EQ(decode(R"({"candidates":[{"finishReason":"RECITATION"}]})").stop, StopReason::kRefused);
  EXPECT_EQ(decode(R"({"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]})").stop, StopReason::kMalformed);
  EXPECT_EQ(decode(R"({"candidates":[{"finishReason":"MAX_TOKENS"}]})").stop, StopReason::kLength);
}

TEST(AnthropicWireTest, ErrorsSayWhatToDo) {
  const auto decode = [](int status, const std::string& type, const std::string& message) {
    const Json body = {{"type", "error"}, {"error", {{"type", type}, {"message", message}}}};
    return DecodeAnswer(AnthropicWire(), TestEndpoint("anthropic"), Head(status, "application/json"), body.dump(), 0)
        .error()
        .cause;
  };
  EXPECT_EQ(decode(400, "invalid_request_error", "prompt is too long: 250000 tokens"), Cause::kTooLong);
  EXPECT_EQ(decode(400, "invalid_request_error", "Your credit balance is too low"), Cause::kQuota);
  EXPECT_EQ(decode(400, "invalid_request_error", "max_tokens: required"), Cause::kBadRequest);
  EXPECT_EQ(decode(529, "overloaded_error", "Overloaded"), Cause::kOverloaded);
  EXPECT_EQ(decode(200, "overloaded_error", "Overloaded"), Cause::kOverloaded);
  EXPECT_EQ(decode(401, "authentication_error", "invalid x-api-key"), Cause::kAuth);
  const std::string stream =
      "event: error\ndata: "
      "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
  EXPECT_EQ(
      DecodeAnswer(AnthropicWire(), TestEndpoint("anthropic"), Head(200, "text/event-stream"), stream, 0).error().cause,
      Cause::kOverloaded);
}

TEST(AnthropicWireTest, WholeAnswersAndRefusals) {
  const auto decode = [](const std::string& body) {
    return DecodeAnswer(AnthropicWire(), TestEndpoint("anthropic"), Head(200, "application/json"), body, 0).value();
  };
  const Reply reply = decode(R"({"id":"m","type":"message","role":"assistant","model":"c","stop_reason":"tool_use",
    "content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"t","name":"f","input":{"a":1}}],
    "usage":{"input_tokens":3,"output_tokens":4}})");
  EXPECT_EQ(reply.message.Text(), "hi");
  EXPECT_EQ(reply.message.ToolCalls().at(0).arguments["a"], 1);
  EXPECT_EQ(reply.usage.input_tokens, 3);
  const Reply refused = decode(R"({"type":"message","content":[],"stop_reason":"refusal",
    "stop_details":{"type":"refusal","explanation":"not this"},"usage":{"input_tokens":3,"output_tokens":0}})");
  EXPECT_EQ(refused.stop, StopReason::kRefused);
  EXPECT_THAT(refused.stop_detail, HasSubstr("not this"));
}

TEST(OpenAiWireTest, ErrorsSayWhatToDo) {
  const auto decode = [](int status, const std::string& body) {
    return DecodeAnswer(OpenAiWire(), TestEndpoint("openai"), Head(status, "application/json"), body, 0).error().cause;
  };
  EXPECT_EQ(decode(429, R"({"error":{"message":"You exceeded your quota","code":"insufficient_quota"}})"),
            Cause::kQuota);
  EXPECT_EQ(decode(400, R"({"error":{"message":"too long","code":"context_length_exceeded"}})"), Cause::kTooLong);
  EXPECT_EQ(decode(200, R"({"error":{"message":"upstream","code":502}})"), Cause::kServer);
  EXPECT_EQ(decode(200, R"({"error":"no"})"), Cause::kServer);
  EXPECT_EQ(decode(200, R"({"detail":"Not ready"})"), Cause::kServer);
  EXPECT_EQ(decode(404, R"({"object":"error","message":"The model `x` does not exist."})"), Cause::kNoModel);
}

TEST(OpenAiWireTest, ServersThatDifferInSmallThings) {
  const auto decode = [](const std::string& body) {
    return DecodeAnswer(OpenAiWire(), TestEndpoint("openai"), Head(200, "application/json"), body, 0).value();
  };
  // Arguments as an object, no ids, the wrong word for the end.
  const Reply calls = decode(R"({"choices":[{"finish_reason":"stop","message":{"content":null,"tool_calls":[
    {"function":{"name":"f","arguments":{"a":1}}},{"function":{"name":"g","arguments":""}}]}}]})");
  EXPECT_EQ(calls.stop, StopReason::kToolCalls);
  ASSERT_EQ(calls.message.ToolCalls().size(), 2);
  EXPECT_EQ(calls.message.ToolCalls()[0].arguments["a"], 1);
  EXPECT_NE(calls.message.ToolCalls()[0].id, calls.message.ToolCalls()[1].id);
  EXPECT_EQ(calls.message.ToolCalls()[1].arguments, Json::object());
  EXPECT_FALSE(calls.usage.known);
  const Reply refused = decode(R"({"choices":[{"finish_reason":"stop","message":{"refusal":"I can't."}}]})");
  EXPECT_EQ(refused.stop, StopReason::kRefused);
  EXPECT_EQ(refused.stop_detail, "I can't.");
}

TEST(OpenAiWireTest, ArgumentsThatAreNoJsonAreKeptForTheTools) {
  const Reply reply = DecodeAnswer(OpenAiWire(), TestEndpoint("openai"), Head(200, "application/json"),
                                   R"({"choices":[{"finish_reason":"tool_calls","message":{"tool_calls":[
    {"id":"c","function":{"name":"f","arguments":"{\"a\": "}}]}}]})",
                                   0)
                          .value();
  const ToolCall call = reply.message.ToolCalls().at(0);
  EXPECT_TRUE(call.arguments.is_null());
  EXPECT_FALSE(call.malformed.empty());
  EXPECT_EQ(call.raw, "{\"a\": ");
}

TEST(WireCommonTest, StrictSchemasAndRanges) {
  const Json open = {{"type", "object"}, {"properties", {{"a", {{"type", "integer"}, {"minimum", 1}}}}}};
  EXPECT_FALSE(IsStrict(open));
  Json closed = open;
  closed["required"] = {"a"};
  closed["additionalProperties"] = false;
  EXPECT_TRUE(IsStrict(closed));
  EXPECT_FALSE(WithoutRanges(closed)["properties"]["a"].contains("minimum"));
  // A property may be called like a keyword.
  const Json named = {{"type", "object"}, {"properties", {{"pattern", {{"type", "string"}}}}}};
  EXPECT_TRUE(WithoutRanges(named)["properties"].contains("pattern"));
}

TEST(WireListTest, OfferedModels) {
  const auto ids = [](const WireFormat& wire, const char* body) {
    std::vector<std::string> names;
    const auto offered = wire.DecodeList(TestEndpoint("x"), Json::parse(body));
    for (const OfferedModel& model : *offered) {
      names.push_back(model.id);
    }
    return names;
  };
  EXPECT_THAT(ids(GeminiWire(), R"({"models":[{"name":"models/a","supportedGenerationMethods":["generateContent"]},
    {"name":"models/b","supportedGenerationMethods":["embedContent"]}]})"),
              ::testing::ElementsAre("a"));
  EXPECT_THAT(ids(AnthropicWire(), R"({"data":[{"id":"a","type":"model"}]})"), ::testing::ElementsAre("a"));
  EXPECT_THAT(ids(OpenAiWire(), R"({"object":"list","data":[{"id":"a"},{"id":"b","max_model_len":4096}]})"),
              ::testing::ElementsAre("a", "b"));
  EXPECT_FALSE(OpenAiWire().DecodeList(TestEndpoint("x"), Json::parse("[]")));
}

}  // namespace
}  // namespace kernelwright::models
