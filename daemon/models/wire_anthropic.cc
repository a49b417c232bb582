// Anthropic: the Messages API, version 2023-06-01. An answer is a list of blocks; a stream opens, fills and closes them
// one after the other.
#include <algorithm>
#include <map>
#include <optional>

#include "daemon/models/wire_common.h"

namespace kernelwright::models {
namespace {

constexpr std::string_view kName = "anthropic";
constexpr std::string_view kVersion = "2023-06-01";

const Json& CacheMark() {
  static const Json mark = {{"type", "ephemeral"}};
  return mark;
}

Json BlockJson(const Part& part) {
  if (const auto* text = std::get_if<TextPart>(&part)) {
    if (text->text.empty()) return nullptr;  // the server refuses empty text
    return {{"type", "text"}, {"text", text->text}};
  }
  if (const auto* call = std::get_if<ToolCall>(&part)) {
    return {{"type", "tool_use"},
            {"id", call->id},
            {"name", call->name},
            {"input", call->arguments.is_object() ? call->arguments : Json::object()}};
  }
  if (const auto* result = std::get_if<ToolResult>(&part)) {
    Json block = {{"type", "tool_result"}, {"tool_use_id", result->id}, {"content", result->text}};
    if (result->is_error) block["is_error"] = true;
    return block;
  }
  const auto& reasoning = std::get<Reasoning>(part);
  return reasoning.wire == kName ? reasoning.opaque : Json();
}

Json Messages(const Endpoint& endpoint, const Request& request) {
  Json messages = Json::array();
  for (const Message& message : request.messages) {
    Json blocks = Json::array();
    for (const Part& part : message.parts) {
      if (Json block = BlockJson(part); !block.is_null()) blocks.push_back(std::move(block));
    }
    if (blocks.empty()) continue;
    messages.push_back({{"role", message.role == Role::kUser ? "user" : "assistant"}, {"content", std::move(blocks)}});
  }
  // A mark on the last block lets the next turn read everything up to here from the cache. Thinking cannot carry one.
  if (endpoint.prompt_cache && !messages.empty()) {
    Json& last = messages.back()["content"].back();
    const std::string type = StringAt(last, "type");
    if (type == "text" || type == "tool_result" || type == "tool_use") last["cache_control"] = CacheMark();
  }
  return messages;
}

Usage DecodeUsage(const Json& json) {
  Usage usage;
  if (!json.is_object()) return usage;
  usage.known = true;
  usage.cached_input_tokens = IntAt(json, "cache_read_input_tokens");
  const int64_t written = IntAt(json, "cache_creation_input_tokens");
  usage.cache_write_1h_tokens = IntAt(Member(json, "cache_creation"), "ephemeral_1h_input_tokens");
  usage.cache_write_tokens = std::max<int64_t>(0, written - usage.cache_write_1h_tokens);
  // The server counts what came from or went to a cache apart.
  usage.input_tokens = IntAt(json, "input_tokens") + usage.cached_input_tokens + written;
  usage.output_tokens = IntAt(json, "output_tokens");
  usage.reasoning_tokens = IntAt(Member(json, "output_tokens_details"), "thinking_tokens");
  return usage;
}

// Later counts replace earlier ones, but a field that is missing keeps its value: the end of a stream may say the
// output alone.
void MergeUsage(const Json& json, Usage* usage) {
  if (!json.is_object()) return;
  const Usage fresh = DecodeUsage(json);
  if (json.contains("input_tokens") && !Member(json, "input_tokens").is_null() && fresh.input_tokens > 0) {
    const int64_t output = std::max(usage->output_tokens, fresh.output_tokens);
    *usage = fresh;
    usage->output_tokens = output;
    return;
  }
  usage->known = true;
  usage->output_tokens = std::max(usage->output_tokens, fresh.output_tokens);
  usage->reasoning_tokens = std::max(usage->reasoning_tokens, fresh.reasoning_tokens);
}

Cause CauseOfType(const std::string& type, const std::string& message, Cause by_status) {
  if (type == "authentication_error") return Cause::kAuth;
  if (type == "permission_error") return Cause::kForbidden;
  if (type == "billing_error" || message.find("credit balance") != std::string::npos) return Cause::kQuota;
  if (type == "rate_limit_error") return Cause::kRateLimit;
  if (type == "overloaded_error") return Cause::kOverloaded;
  if (type == "api_error" || type == "timeout_error") return Cause::kServer;
  if (type == "not_found_error") return Cause::kNoModel;
  if (type == "request_too_large" || SaysTooLong(message)) return Cause::kTooLong;
  if (type == "invalid_request_error") return Cause::kBadRequest;
  return by_status;
}

CallError FromErrorObject(const Endpoint& endpoint, const HttpHead& head, const Json& object) {
  const std::string type = StringAt(object, "type");
  const std::string message = StringAt(object, "message");
  CallError error = ErrorOfStatus(endpoint, head, message.empty() ? type : message);
  SetCause(&error, CauseOfType(type, message, error.cause));
  return error;
}

class AnthropicDecoder : public Decoder {
 public:
  explicit AnthropicDecoder(Endpoint endpoint) : endpoint_(std::move(endpoint)) {}

  CallResult<void> OnEvent(const SseEvent& event, std::vector<StreamEvent>* out) override {
    CallResult<Json> body = ParseEventData(endpoint_, event.data);
    if (!body) return tl::unexpected(body.error());
    const std::string type = StringAt(*body, "type");
    if (type == "message_start") {
      TakeMessage(Member(*body, "message"));
    } else if (type == "content_block_start") {
      Open(IntAt(*body, "index"), Member(*body, "content_block"));
    } else if (type == "content_block_delta") {
      TakeDelta(IntAt(*body, "index"), Member(*body, "delta"), out);
    } else if (type == "content_block_stop") {
      Close(IntAt(*body, "index"), out);
    } else if (type == "message_delta") {
      TakeStop(Member(*body, "delta"));
      MergeUsage(Member(*body, "usage"), &reply_.usage);
    } else if (type == "message_stop") {
      finished_ = true;
    } else if (type == "error" || body->contains("error")) {
      return tl::unexpected(StreamError(Member(*body, "error")));
    }
    return {};  // pings, and kinds of events that are not known yet
  }

  CallResult<void> OnWhole(const Json& body, std::vector<StreamEvent>* out) override {
    if (StringAt(body, "type") == "error" || Member(body, "error").is_object()) {
      return tl::unexpected(StreamError(Member(body, "error")));
    }
    const Json& content = Member(body, "content");
    if (!content.is_array()) return tl::unexpected(ProtocolError(endpoint_, "the answer is no message"));
    TakeMessage(body);
    int64_t index = 0;
    for (const Json& block : content) {
      Open(index, block);
      Block& made = blocks_[index];
      if (made.type == "text") out->push_back({StreamEvent::Kind::kText, made.text});
      if (made.type == "tool_use") made.text = DumpJson(Member(block, "input"));
      Close(index++, out);
    }
    TakeStop(body);
    finished_ = true;
    return {};
  }

  CallResult<Reply> Finish() override {
    // A last event that got lost after the reason of the stop costs nothing.
    if (!finished_ && !stopped_) {
      CallError error = MakeError(Cause::kCut, "the answer ended before its end", endpoint_.Where());
      error.usage = reply_.usage;
      return tl::unexpected(std::move(error));
    }
    return Partial();
  }

  Reply Partial() const override {
    Reply reply = reply_;
    reply.message.role = Role::kAssistant;
    for (const auto& [index, block] : blocks_) {
      if (block.part) reply.message.parts.push_back(*block.part);
    }
    return reply;
  }

 private:
  struct Block {
    std::string type;
    Json start;
    std::string text;  // or JSON of the arguments
    std::string signature;
    std::optional<Part> part;  // once it is closed, and while text is coming
  };

  CallError StreamError(const Json& object) const {
    HttpHead head;
    head.status = StringAt(object, "type") == "overloaded_error" ? 529 : 500;
    CallError error = FromErrorObject(endpoint_, head, object);
    error.usage = reply_.usage;
    return error;
  }

  void TakeMessage(const Json& message) {
    reply_.id = StringAt(message, "id");
    reply_.model = StringAt(message, "model");
    reply_.usage = DecodeUsage(Member(message, "usage"));
  }

  void Open(int64_t index, const Json& start) {
    Block& block = blocks_[index];
    block.type = StringAt(start, "type");
    block.start = start;
    block.text = StringAt(start, block.type == "thinking" ? "thinking" : "text");
    block.signature = StringAt(start, "signature");
    if (block.type == "text" && !block.text.empty()) block.part = TextPart{block.text, {}};
  }

  void TakeDelta(int64_t index, const Json& delta, std::vector<StreamEvent>* out) {
    Block& block = blocks_[index];
    const std::string type = StringAt(delta, "type");
    if (type == "text_delta") {
      const std::string text = StringAt(delta, "text");
      block.text += text;
      block.part = TextPart{block.text, {}};
      if (!text.empty()) out->push_back({StreamEvent::Kind::kText, text});
    } else if (type == "input_json_delta") {
      block.text += StringAt(delta, "partial_json");
    } else if (type == "thinking_delta") {
      const std::string text = StringAt(delta, "thinking");
      block.text += text;
      if (!text.empty()) out->push_back({StreamEvent::Kind::kReasoning, text});
    } else if (type == "signature_delta") {
      block.signature += StringAt(delta, "signature");
    }
  }

  void Close(int64_t index, std::vector<StreamEvent>* out) {
    Block& block = blocks_[index];
    if (block.type == "tool_use") {
      ToolCall call;
      call.id = StringAt(block.start, "id");
      call.name = StringAt(block.start, "name");
      SetArguments(&call, block.text);
      out->push_back({StreamEvent::Kind::kToolCall, call.name});
      block.part = std::move(call);
    } else if (block.type == "thinking") {
      block.part = Reasoning{block.text,
                             std::string(kName),
                             {{"type", "thinking"}, {"thinking", block.text}, {"signature", block.signature}}};
    } else if (block.type == "redacted_thinking") {
      block.part = Reasoning{{}, std::string(kName), block.start};
    }
  }

  void TakeStop(const Json& delta) {
    const std::string reason = StringAt(delta, "stop_reason");
    if (reason.empty()) return;
    stopped_ = true;
    reply_.stop = reason == "end_turn" || reason == "stop_sequence"                     ? StopReason::kEnd
                  : reason == "tool_use"                                                ? StopReason::kToolCalls
                  : reason == "max_tokens" || reason == "model_context_window_exceeded" ? StopReason::kLength
                  : reason == "refusal"                                                 ? StopReason::kRefused
                                                                                        : StopReason::kOther;
    reply_.stop_detail = reason;
    if (std::string why = StringAt(Member(delta, "stop_details"), "explanation"); !why.empty()) {
      reply_.stop_detail += ": " + why;
    }
  }

  const Endpoint endpoint_;
  Reply reply_;
  std::map<int64_t, Block> blocks_;
  bool stopped_ = false;
  bool finished_ = false;
};

class Anthropic : public WireFormat {
 public:
  std::string_view name() const override { return kName; }

  HttpRequest Build(const Endpoint& endpoint, const Request& request) const override {
    Json body = {{"model", endpoint.model},
                 {"max_tokens", request.max_output_tokens > 0 ? request.max_output_tokens : kDefaultOutputTokens},
                 {"messages", Messages(endpoint, request)}};
    if (endpoint.stream) body["stream"] = true;
    if (std::string system = SystemText(endpoint, request, false); !system.empty()) {
      Json block = {{"type", "text"}, {"text", std::move(system)}};
      if (endpoint.prompt_cache) block["cache_control"] = CacheMark();
      body["system"] = Json::array({std::move(block)});
    }
    if (!request.tools.empty()) {
      Json tools = Json::array();
      for (const ToolSpec& tool : request.tools) {
        tools.push_back({{"name", tool.name}, {"description", tool.description}, {"input_schema", tool.parameters}});
      }
      if (endpoint.prompt_cache) tools.back()["cache_control"] = CacheMark();
      body["tools"] = std::move(tools);
      const char* choice = request.tool_choice == ToolChoice::kAuto   ? "auto"
                           : request.tool_choice == ToolChoice::kNone ? "none"
                                                                      : "any";
      body["tool_choice"] = {{"type", choice}};
    }
    // No temperature: newer models refuse it, and the vendor's own client no longer has it.
    if (request.output && endpoint.structured == StructuredOutput::kNative) {
      body["output_config"]["format"] = {{"type", "json_schema"}, {"schema", WithoutRanges(request.output->schema)}};
    }
    if (request.effort != Effort::kDefault && endpoint.effort == EffortStyle::kLevel) {
      body["output_config"]["effort"] = EffortName(request.effort);
    }
    HttpRequest http;
    http.url = Url(endpoint, "/v1/messages");
    http.headers = {{"content-type", "application/json"}, {"anthropic-version", std::string(kVersion)}};
    http.body = DumpJson(body);
    return http;
  }

  SecretHeader KeyHeader(std::string_view key) const override { return {"x-api-key", std::string(key)}; }

  std::unique_ptr<Decoder> NewDecoder(const Endpoint& endpoint) const override {
    return std::make_unique<AnthropicDecoder>(endpoint);
  }

  CallError DecodeError(const Endpoint& endpoint, const HttpHead& head, const Json& body) const override {
    return FromErrorObject(endpoint, head, Member(body, "error"));
  }

  HttpRequest BuildList(const Endpoint& endpoint) const override {
    return {.method = "GET",
            .url = Url(endpoint, "/v1/models?limit=1000"),
            .headers = {{"anthropic-version", std::string(kVersion)}},
            .body = {}};
  }

  CallResult<std::vector<OfferedModel>> DecodeList(const Endpoint& endpoint, const Json& body) const override {
    const Json& models = Member(body, "data");
    if (!models.is_array()) return tl::unexpected(ProtocolError(endpoint, "the answer is no list of models"));
    std::vector<OfferedModel> offered;
    for (const Json& model : models) {
      if (std::string id = StringAt(model, "id"); !id.empty()) {
        offered.push_back({std::move(id), IntAt(model, "max_input_tokens"), IntAt(model, "max_tokens")});
      }
    }
    return offered;
  }
};

}  // namespace

const WireFormat& AnthropicWire() {
  static const Anthropic wire;
  return wire;
}

}  // namespace kernelwright::models
