// Gemini: generateContent and streamGenerateContent of the Generative Language API, version v1beta. A stream is a
// series of whole responses whose parts are appended; the last one has a finishReason.
#include <algorithm>
#include <array>
#include <charconv>

#include "daemon/base/text.h"
#include "daemon/models/wire_common.h"

namespace kernelwright::models {
namespace {

constexpr std::string_view kName = "gemini";

Json PartJson(const Part& part) {
  if (const auto* text = std::get_if<TextPart>(&part)) {
    Json json = {{"text", text->text}};
    if (!text->signature.empty()) json["thoughtSignature"] = text->signature;
    return json;
  }
  if (const auto* call = std::get_if<ToolCall>(&part)) {
    Json function = {{"name", call->name}, {"args", call->arguments.is_object() ? call->arguments : Json::object()}};
    if (!call->id.starts_with(kOwnIdPrefix)) function["id"] = call->id;
    Json json = {{"functionCall", std::move(function)}};
    if (!call->signature.empty()) json["thoughtSignature"] = call->signature;
    return json;
  }
  if (const auto* result = std::get_if<ToolResult>(&part)) {
    Json function = {{"name", result->name}, {"response", {{result->is_error ? "error" : "result", result->text}}}};
    if (!result->id.starts_with(kOwnIdPrefix)) function["id"] = result->id;
    return {{"functionResponse", std::move(function)}};
  }
  return nullptr;  // thoughts are not sent back; their signatures sit on the other parts
}

Json Contents(const std::vector<Message>& messages) {
  Json contents = Json::array();
  for (const Message& message : messages) {
    Json parts = Json::array();
    for (const Part& part : message.parts) {
      if (Json json = PartJson(part); !json.is_null()) parts.push_back(std::move(json));
    }
    if (parts.empty()) continue;
    contents.push_back({{"role", message.role == Role::kUser ? "user" : "model"}, {"parts", std::move(parts)}});
  }
  return contents;
}

Json GenerationConfig(const Endpoint& endpoint, const Request& request, bool native_schema) {
  Json config = {{"maxOutputTokens", request.max_output_tokens > 0 ? request.max_output_tokens : kDefaultOutputTokens}};
  if (request.temperature) config["temperature"] = *request.temperature;
  if (request.seed) config["seed"] = *request.seed;
  if (native_schema) {
    config["responseMimeType"] = "application/json";
    config["responseJsonSchema"] = request.output->schema;
  }
  if (request.effort != Effort::kDefault && endpoint.effort == EffortStyle::kLevel) {
    config["thinkingConfig"] = {{"thinkingLevel", EffortName(request.effort)}};
  } else if (request.effort != Effort::kDefault && endpoint.effort == EffortStyle::kBudget) {
    const int64_t budget = request.effort == Effort::kLow ? 1024 : request.effort == Effort::kMedium ? 8192 : 24576;
    config["thinkingConfig"] = {{"thinkingBudget", budget}};
  }
  return config;
}

// "34s", "1.5s" of google.rpc.RetryInfo.
std::optional<int64_t> ParseDelay(const std::string& text) {
  if (!text.ends_with('s')) return std::nullopt;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size() - 1, seconds);
  if (error != std::errc() || end != text.data() + text.size() - 1 || !(seconds >= 0) || seconds > 1e6) {
    return std::nullopt;
  }
  return static_cast<int64_t>(seconds * 1000);
}

// The error object, also when it comes as the only element of an array.
const Json& ErrorObject(const Json& body) {
  if (body.is_array() && !body.empty()) return Member(body.front(), "error");
  return Member(body, "error");
}

CallError FromErrorObject(const Endpoint& endpoint, const HttpHead& head, const Json& object) {
  const std::string status = StringAt(object, "status");
  std::string message = StringAt(object, "message");
  CallError error = ErrorOfStatus(endpoint, head, message.empty() ? status : message);
  bool bad_key = false;
  bool daily = false;
  const Json& details = Member(object, "details");
  for (const Json& detail : details.is_array() ? details : Json::array()) {
    if (StringAt(detail, "reason") == "API_KEY_INVALID") bad_key = true;
    if (const auto delay = ParseDelay(StringAt(detail, "retryDelay"))) error.retry_after_ms = delay;
    const Json& violations = Member(detail, "violations");
    for (const Json& violation : violations.is_array() ? violations : Json::array()) {
      if (StringAt(violation, "quotaId").find("PerDay") != std::string::npos) daily = true;
    }
  }
  if (bad_key || status == "UNAUTHENTICATED") {
    SetCause(&error, Cause::kAuth);
  } else if (status == "RESOURCE_EXHAUSTED") {
    SetCause(&error, daily ? Cause::kQuota : Cause::kRateLimit);
  } else if (status == "UNAVAILABLE") {
    SetCause(&error, Cause::kOverloaded);
  }
  return error;
}

struct Finish {
  std::string_view name;
  StopReason reason;
};
constexpr std::array<Finish, 17> kFinishes = {{{"STOP", StopReason::kEnd},
                                               {"MAX_TOKENS", StopReason::kLength},
                                               {"SAFETY", StopReason::kRefused},
                                               {"RECITATION", StopReason::kRefused},
                                               {"LANGUAGE", StopReason::kRefused},
                                               {"BLOCKLIST", StopReason::kRefused},
                                               {"PROHIBITED_CONTENT", StopReason::kRefused},
                                               {"SPII", StopReason::kRefused},
                                               {"MODEL_ARMOR", StopReason::kRefused},
                                               {"IMAGE_SAFETY", StopReason::kRefused},
                                               {"IMAGE_PROHIBITED_CONTENT", StopReason::kRefused},
                                               {"IMAGE_RECITATION", StopReason::kRefused},
                                               {"MALFORMED_FUNCTION_CALL", StopReason::kMalformed},
                                               {"UNEXPECTED_TOOL_CALL", StopReason::kMalformed},
                                               {"TOO_MANY_TOOL_CALLS", StopReason::kMalformed},
                                               {"MALFORMED_RESPONSE", StopReason::kMalformed},
                                               {"OTHER", StopReason::kMalformed}}};

class GeminiDecoder : public Decoder {
 public:
  explicit GeminiDecoder(Endpoint endpoint) : endpoint_(std::move(endpoint)) {}

  CallResult<void> OnEvent(const SseEvent& event, std::vector<StreamEvent>* out) override {
    CallResult<Json> body = ParseEventData(endpoint_, event.data);
    if (!body) return tl::unexpected(body.error());
    return OnWhole(*body, out);
  }

  CallResult<void> OnWhole(const Json& body, std::vector<StreamEvent>* out) override {
    if (body.is_array()) {
      for (const Json& response : body) {
        if (CallResult<void> taken = OnWhole(response, out); !taken) return taken;
      }
      return {};
    }
    if (const Json& error = ErrorObject(body); !error.is_null()) {
      HttpHead head;
      head.status = static_cast<int>(IntAt(error, "code"));
      return tl::unexpected(FromErrorObject(endpoint_, head, error));
    }
    if (!body.is_object() ||
        (!body.contains("candidates") && !body.contains("promptFeedback") && !body.contains("usageMetadata"))) {
      return tl::unexpected(ProtocolError(endpoint_, "the answer is no response of generateContent"));
    }
    if (std::string id = StringAt(body, "responseId"); !id.empty()) reply_.id = std::move(id);
    if (std::string model = StringAt(body, "modelVersion"); !model.empty()) reply_.model = std::move(model);
    TakeUsage(Member(body, "usageMetadata"));
    if (std::string reason = StringAt(Member(body, "promptFeedback"), "blockReason"); !reason.empty()) {
      finished_ = true;
      reply_.stop = StopReason::kRefused;
      reply_.stop_detail = "the prompt was blocked: " + reason;
    }
    const Json& candidates = Member(body, "candidates");
    if (candidates.is_array() && !candidates.empty()) TakeCandidate(candidates.front(), out);
    return {};
  }

  CallResult<Reply> Finish() override {
    if (!finished_) {
      CallError error = MakeError(Cause::kCut, "the answer ended before its end", endpoint_.Where());
      error.usage = reply_.usage;
      return tl::unexpected(std::move(error));
    }
    if (reply_.stop == StopReason::kEnd && !reply_.message.ToolCalls().empty()) reply_.stop = StopReason::kToolCalls;
    return reply_;
  }

  Reply Partial() const override { return reply_; }

 private:
  void TakeUsage(const Json& usage) {
    if (!usage.is_object()) return;
    Usage& total = reply_.usage;
    total.known = true;
    total.input_tokens = IntAt(usage, "promptTokenCount") + IntAt(usage, "toolUsePromptTokenCount");
    total.cached_input_tokens = IntAt(usage, "cachedContentTokenCount");
    total.reasoning_tokens = IntAt(usage, "thoughtsTokenCount");
    total.output_tokens = IntAt(usage, "candidatesTokenCount") + total.reasoning_tokens;
  }

  void TakeCandidate(const Json& candidate, std::vector<StreamEvent>* out) {
    const Json& parts = Member(Member(candidate, "content"), "parts");
    for (const Json& part : parts.is_array() ? parts : Json::array()) TakePart(part, out);
    const std::string reason = StringAt(candidate, "finishReason");
    if (reason.empty() || reason == "FINISH_REASON_UNSPECIFIED") return;
    finished_ = true;
    reply_.stop = StopReason::kOther;
    for (const auto& [name, stop] : kFinishes) {
      if (reason == name) reply_.stop = stop;
    }
    reply_.stop_detail = reason;
    if (std::string message = StringAt(candidate, "finishMessage"); !message.empty()) {
      reply_.stop_detail += ": " + message;
    }
  }

  void TakePart(const Json& part, std::vector<StreamEvent>* out) {
    const std::string signature = StringAt(part, "thoughtSignature");
    std::vector<Part>& parts = reply_.message.parts;
    if (const Json& call = Member(part, "functionCall"); call.is_object()) {
      ToolCall made;
      made.id = StringAt(call, "id");
      if (made.id.empty()) made.id = std::string(kOwnIdPrefix) + std::to_string(++own_ids_);
      made.name = StringAt(call, "name");
      made.signature = signature;
      const Json& arguments = Member(call, "args");
      SetArguments(&made, arguments.is_null() ? "{}" : DumpJson(arguments));
      out->push_back({StreamEvent::Kind::kToolCall, made.name});
      parts.emplace_back(std::move(made));
      return;
    }
    const std::string text = StringAt(part, "text");
    if (Member(part, "thought") == Json(true)) {
      if (text.empty()) return;
      out->push_back({StreamEvent::Kind::kReasoning, text});
      if (parts.empty() || !std::holds_alternative<Reasoning>(parts.back())) {
        parts.emplace_back(Reasoning{{}, std::string(kName), nullptr});
      }
      std::get<Reasoning>(parts.back()).text += text;
      return;
    }
    if (text.empty() && signature.empty()) return;
    // A signature belongs to its own part, so it may not be joined with another one's text.
    auto* last = parts.empty() ? nullptr : std::get_if<TextPart>(&parts.back());
    if (last != nullptr && last->signature.empty() && signature.empty()) {
      last->text += text;
    } else {
      parts.emplace_back(TextPart{text, signature});
    }
    if (!text.empty()) out->push_back({StreamEvent::Kind::kText, text});
  }

  const Endpoint endpoint_;
  Reply reply_{.message = {Role::kAssistant, {}}, .stop = {}, .stop_detail = {}, .usage = {}, .model = {}, .id = {}};
  bool finished_ = false;
  int own_ids_ = 0;
};

class Gemini : public WireFormat {
 public:
  std::string_view name() const override { return kName; }

  HttpRequest Build(const Endpoint& endpoint, const Request& request) const override {
    // Together with tools the server refuses a schema for the answer.
    const bool native_schema =
        request.output && request.tools.empty() && endpoint.structured == StructuredOutput::kNative;
    Json body = {{"contents", Contents(request.messages)},
                 {"generationConfig", GenerationConfig(endpoint, request, native_schema)}};
    if (std::string system = SystemText(endpoint, request, !native_schema); !system.empty()) {
      body["systemInstruction"] = {{"parts", {{{"text", std::move(system)}}}}};
    }
    if (!request.tools.empty()) {
      Json functions = Json::array();
      for (const ToolSpec& tool : request.tools) {
        functions.push_back(
            {{"name", tool.name}, {"description", tool.description}, {"parametersJsonSchema", tool.parameters}});
      }
      body["tools"] = {{{"functionDeclarations", std::move(functions)}}};
      const char* mode = request.tool_choice == ToolChoice::kAuto   ? "AUTO"
                         : request.tool_choice == ToolChoice::kNone ? "NONE"
                                                                    : "ANY";
      body["toolConfig"] = {{"functionCallingConfig", {{"mode", mode}}}};
    }
    HttpRequest http;
    http.url = Url(endpoint, "/models/" + endpoint.model +
                                 (endpoint.stream ? ":streamGenerateContent?alt=sse" : ":generateContent"));
    http.headers = {{"content-type", "application/json"}};
    http.body = DumpJson(body);
    return http;
  }

  SecretHeader KeyHeader(std::string_view key) const override { return {"x-goog-api-key", std::string(key)}; }

  std::unique_ptr<Decoder> NewDecoder(const Endpoint& endpoint) const override {
    return std::make_unique<GeminiDecoder>(endpoint);
  }

  CallError DecodeError(const Endpoint& endpoint, const HttpHead& head, const Json& body) const override {
    return FromErrorObject(endpoint, head, ErrorObject(body));
  }

  HttpRequest BuildList(const Endpoint& endpoint) const override {
    return {.method = "GET", .url = Url(endpoint, "/models?pageSize=1000"), .headers = {}, .body = {}};
  }

  CallResult<std::vector<OfferedModel>> DecodeList(const Endpoint& endpoint, const Json& body) const override {
    const Json& models = Member(body, "models");
    if (!models.is_array()) return tl::unexpected(ProtocolError(endpoint, "the answer is no list of models"));
    std::vector<OfferedModel> offered;
    for (const Json& model : models) {
      const Json& methods = Member(model, "supportedGenerationMethods");
      const bool generates =
          !methods.is_array() || std::find(methods.begin(), methods.end(), Json("generateContent")) != methods.end();
      std::string id = StringAt(model, "name");
      if (id.starts_with("models/")) id.erase(0, 7);
      if (!id.empty() && generates) {
        offered.push_back({std::move(id), IntAt(model, "inputTokenLimit"), IntAt(model, "outputTokenLimit")});
      }
    }
    return offered;
  }
};

}  // namespace

const WireFormat& GeminiWire() {
  static const Gemini wire;
  return wire;
}

}  // namespace kernelwright::models
