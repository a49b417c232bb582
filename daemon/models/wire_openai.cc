// OpenAI's chat completions, and the many servers that speak them: vLLM, Ollama, llama.cpp, OpenRouter. They differ in
// small things, so reading is lenient: tool calls without an index, arguments as an object, reasoning under two names.
#include <algorithm>
#include <map>

#include "daemon/base/text.h"
#include "daemon/models/wire_common.h"

namespace kernelwright::models {
namespace {

constexpr std::string_view kName = "openai";

// One of our messages can be several here: each tool result is a message of its own.
void AppendMessage(const Message& message, Json* messages) {
  std::string text;
  Json calls = Json::array();
  for (const Part& part : message.parts) {
    if (const auto* piece = std::get_if<TextPart>(&part)) {
      text += piece->text;
    } else if (const auto* call = std::get_if<ToolCall>(&part)) {
      const std::string arguments = call->arguments.is_object() ? DumpJson(call->arguments) : "{}";
      calls.push_back(
          {{"id", call->id}, {"type", "function"}, {"function", {{"name", call->name}, {"arguments", arguments}}}});
    } else if (const auto* result = std::get_if<ToolResult>(&part)) {
      // There is no flag for errors.
      messages->push_back({{"role", "tool"},
                           {"tool_call_id", result->id},
                           {"content", result->is_error ? "Error: " + result->text : result->text}});
    }
  }
  if (message.role == Role::kUser) {
    if (!text.empty()) messages->push_back({{"role", "user"}, {"content", text}});
    return;
  }
  if (text.empty() && calls.empty()) return;
  Json json = {{"role", "assistant"}};
  json["content"] = text.empty() ? Json() : Json(text);
  if (!calls.empty()) json["tool_calls"] = std::move(calls);
  messages->push_back(std::move(json));
}

CallError FromErrorObject(const Endpoint& endpoint, const HttpHead& head, const Json& object) {
  std::string message = object.is_string() ? object.get<std::string>() : StringAt(object, "message");
  const Json& code = Member(object, "code");
  const std::string word = code.is_string() ? code.get<std::string>() : StringAt(object, "type");
  // Routers put the words of the server behind them here.
  if (std::string raw = StringAt(Member(object, "metadata"), "raw"); !raw.empty()) message += " (" + raw + ")";
  CallError error = ErrorOfStatus(endpoint, head, message.empty() ? word : message);
  if (word == "insufficient_quota" || StringAt(object, "type") == "insufficient_quota") {
    SetCause(&error, Cause::kQuota);
  } else if (word == "context_length_exceeded") {
    SetCause(&error, Cause::kTooLong);
  } else if (word == "invalid_api_key") {
    SetCause(&error, Cause::kAuth);
  } else if (word == "model_not_found") {
    SetCause(&error, Cause::kNoModel);
  } else if (word == "content_filter" || word == "content_policy_violation") {
    SetCause(&error, Cause::kRefused);
  }
  return error;
}

class OpenAiDecoder : public Decoder {
 public:
  explicit OpenAiDecoder(Endpoint endpoint) : endpoint_(std::move(endpoint)) {}

  CallResult<void> OnEvent(const SseEvent& event, std::vector<StreamEvent>* out) override {
    if (Trim(event.data) == "[DONE]") {
      done_ = true;
      return {};
    }
    CallResult<Json> body = ParseEventData(endpoint_, event.data);
    if (!body) return tl::unexpected(body.error());
    return Take(*body, "delta", out);
  }

  CallResult<void> OnWhole(const Json& body, std::vector<StreamEvent>* out) override {
    if (CallResult<void> taken = Take(body, "message", out); !taken) return taken;
    done_ = true;
    return {};
  }

  CallResult<Reply> Finish() override {
    if (!done_ && !stopped_) {
      CallError error = MakeError(Cause::kCut, "the answer ended before its end", endpoint_.Where());
      error.usage = reply_.usage;
      return tl::unexpected(std::move(error));
    }
    Reply reply = Partial();
    const bool calls = !calls_.empty();
    // Servers differ in which word they use when there are calls.
    if (calls && (reply.stop == StopReason::kEnd || reply.stop == StopReason::kOther)) {
      reply.stop = StopReason::kToolCalls;
    }
    if (!refusal_.empty()) {
      reply.stop = StopReason::kRefused;
      reply.stop_detail = refusal_;
    }
    return reply;
  }

  Reply Partial() const override {
    Reply reply = reply_;
    reply.message.role = Role::kAssistant;
    if (!reasoning_.empty()) reply.message.parts.emplace_back(Reasoning{reasoning_, std::string(kName), nullptr});
    if (!text_.empty()) reply.message.parts.emplace_back(TextPart{text_, {}});
    int own_ids = 0;
    for (const auto& [index, pending] : calls_) {
      ToolCall call;
      call.id = pending.id.empty() ? std::string(kOwnIdPrefix) + std::to_string(++own_ids) : pending.id;
      call.name = pending.name;
      SetArguments(&call, pending.arguments);
      reply.message.parts.emplace_back(std::move(call));
    }
    return reply;
  }

 private:
  struct PendingCall {
    std::string id;
    std::string name;
    std::string arguments;
  };

  // `key`: "delta" in a stream, "message" in a whole answer.
  CallResult<void> Take(const Json& body, std::string_view key, std::vector<StreamEvent>* out) {
    if (const Json& error = Member(body, "error"); !error.is_null()) return tl::unexpected(BodyError(error));
    const Json& choices = Member(body, "choices");
    if (!choices.is_array()) {
      // Some servers report a fault as {"detail": …} or {"message": …} with status 200.
      for (const char* name : {"detail", "message"}) {
        if (const Json& words = Member(body, name); words.is_string()) return tl::unexpected(BodyError(words));
      }
      if (key == "delta" && Member(body, "usage").is_object()) {
        TakeUsage(Member(body, "usage"));
        return {};
      }
      return tl::unexpected(ProtocolError(endpoint_, "the answer is no chat completion"));
    }
    if (std::string id = StringAt(body, "id"); !id.empty()) reply_.id = std::move(id);
    if (std::string model = StringAt(body, "model"); !model.empty()) reply_.model = std::move(model);
    TakeUsage(Member(body, "usage"));
    if (choices.empty()) return {};
    const Json& choice = choices.front();
    if (const Json& error = Member(choice, "error"); error.is_object()) return tl::unexpected(BodyError(error));
    TakeDelta(Member(choice, key), out);
    TakeStop(StringAt(choice, "finish_reason"), out);
    return {};
  }

  CallError BodyError(const Json& object) const {
    HttpHead head;
    const Json& code = Member(object, "code");
    head.status = code.is_number_integer() ? static_cast<int>(IntAt(object, "code")) : 500;
    if (head.status < 400 || head.status > 599) head.status = 500;
    CallError error = FromErrorObject(endpoint_, head, object);
    error.usage = reply_.usage;
    return error;
  }

  void TakeUsage(const Json& json) {
    if (!json.is_object()) return;
    Usage& usage = reply_.usage;
    usage.known = true;
    usage.input_tokens = IntAt(json, "prompt_tokens");
    usage.cached_input_tokens = IntAt(Member(json, "prompt_tokens_details"), "cached_tokens");
    usage.cache_write_tokens = IntAt(Member(json, "prompt_tokens_details"), "cache_write_tokens");
    usage.output_tokens = IntAt(json, "completion_tokens");
    usage.reasoning_tokens = IntAt(Member(json, "completion_tokens_details"), "reasoning_tokens");
  }

  void TakeDelta(const Json& delta, std::vector<StreamEvent>* out) {
    std::string thought = StringAt(delta, "reasoning_content");
    if (thought.empty()) thought = StringAt(delta, "reasoning");
    if (!thought.empty()) {
      reasoning_ += thought;
      out->push_back({StreamEvent::Kind::kReasoning, thought});
    }
    if (const std::string text = StringAt(delta, "content"); !text.empty()) {
      text_ += text;
      out->push_back({StreamEvent::Kind::kText, text});
    }
    refusal_ += StringAt(delta, "refusal");
    const Json& calls = Member(delta, "tool_calls");
    for (const Json& call : calls.is_array() ? calls : Json::array()) TakeCall(call);
  }

  void TakeCall(const Json& call) {
    const Json& function = Member(call, "function");
    const std::string id = StringAt(call, "id");
    const std::string name = StringAt(function, "name");
    int64_t index = IntAt(call, "index");
    if (!call.contains("index")) {
      // Without an index a new id or name starts a new call.
      const bool fresh = calls_.empty() || !id.empty() || !name.empty();
      index = calls_.empty() ? 0 : calls_.rbegin()->first + (fresh ? 1 : 0);
    }
    PendingCall& pending = calls_[index];
    if (!id.empty()) pending.id = id;
    if (pending.name.empty()) pending.name = name;
    const Json& arguments = Member(function, "arguments");
    if (arguments.is_string()) {
      pending.arguments += arguments.get<std::string>();
    } else if (arguments.is_object()) {
      pending.arguments = DumpJson(arguments);
    }
  }

  void TakeStop(const std::string& reason, std::vector<StreamEvent>* out) {
    if (reason.empty()) return;
    stopped_ = true;
    reply_.stop = reason == "stop"                                      ? StopReason::kEnd
                  : reason == "tool_calls" || reason == "function_call" ? StopReason::kToolCalls
                  : reason == "length"                                  ? StopReason::kLength
                  : reason == "content_filter"                          ? StopReason::kRefused
                  : reason == "error"                                   ? StopReason::kMalformed
                                                                        : StopReason::kOther;
    reply_.stop_detail = reason;
    for (const auto& [index, call] : calls_) out->push_back({StreamEvent::Kind::kToolCall, call.name});
  }

  const Endpoint endpoint_;
  Reply reply_;
  std::string text_;
  std::string reasoning_;
  std::string refusal_;
  std::map<int64_t, PendingCall> calls_;
  bool stopped_ = false;
  bool done_ = false;
};

class OpenAi : public WireFormat {
 public:
  std::string_view name() const override { return kName; }

  HttpRequest Build(const Endpoint& endpoint, const Request& request) const override {
    Json messages = Json::array();
    if (std::string system = SystemText(endpoint, request, false); !system.empty()) {
      messages.push_back({{"role", "system"}, {"content", std::move(system)}});
    }
    for (const Message& message : request.messages) AppendMessage(message, &messages);
    Json body = {{"model", endpoint.model}, {"messages", std::move(messages)}};
    body[endpoint.old_token_limit ? "max_tokens" : "max_completion_tokens"] =
        request.max_output_tokens > 0 ? request.max_output_tokens : kDefaultOutputTokens;
    if (endpoint.stream) {
      body["stream"] = true;
      body["stream_options"] = {{"include_usage", true}};
    }
    if (!request.tools.empty()) {
      Json tools = Json::array();
      for (const ToolSpec& tool : request.tools) {
        tools.push_back(
            {{"type", "function"},
             {"function", {{"name", tool.name}, {"description", tool.description}, {"parameters", tool.parameters}}}});
      }
      body["tools"] = std::move(tools);
      body["tool_choice"] = request.tool_choice == ToolChoice::kAuto   ? "auto"
                            : request.tool_choice == ToolChoice::kNone ? "none"
                                                                       : "required";
    }
    if (request.output && endpoint.structured == StructuredOutput::kNative) {
      Json schema = {{"name", request.output->name}, {"schema", request.output->schema}};
      if (IsStrict(request.output->schema)) {
        schema["strict"] = true;
        schema["schema"] = WithoutRanges(request.output->schema);
      }
      body["response_format"] = {{"type", "json_schema"}, {"json_schema", std::move(schema)}};
    }
    if (request.temperature) body["temperature"] = *request.temperature;
    if (request.seed) body["seed"] = *request.seed;
    if (request.effort != Effort::kDefault && endpoint.effort == EffortStyle::kLevel) {
      body["reasoning_effort"] = EffortName(request.effort);
    }
    HttpRequest http;
    http.url = Url(endpoint, "/chat/completions");
    http.headers = {{"content-type", "application/json"}};
    http.body = DumpJson(body);
    return http;
  }

  SecretHeader KeyHeader(std::string_view key) const override {
    return {"authorization", "Bearer " + std::string(key)};
  }

  std::unique_ptr<Decoder> NewDecoder(const Endpoint& endpoint) const override {
    return std::make_unique<OpenAiDecoder>(endpoint);
  }

  CallError DecodeError(const Endpoint& endpoint, const HttpHead& head, const Json& body) const override {
    for (const char* key : {"error", "detail", "message"}) {
      if (const Json& object = Member(body, key); object.is_object() || object.is_string()) {
        return FromErrorObject(endpoint, head, object);
      }
    }
    return FromErrorObject(endpoint, head, nullptr);
  }

  HttpRequest BuildList(const Endpoint& endpoint) const override {
    return {.method = "GET", .url = Url(endpoint, "/models"), .headers = {}, .body = {}};
  }

  CallResult<std::vector<OfferedModel>> DecodeList(const Endpoint& endpoint, const Json& body) const override {
    const Json& models = Member(body, "data");
    if (!models.is_array()) return tl::unexpected(ProtocolError(endpoint, "the answer is no list of models"));
    std::vector<OfferedModel> offered;
    for (const Json& model : models) {
      if (std::string id = StringAt(model, "id"); !id.empty()) {
        const int64_t context = std::max(IntAt(model, "context_length"), IntAt(model, "max_model_len"));
        offered.push_back({std::move(id), context, 0});
      }
    }
    return offered;
  }
};

}  // namespace

const WireFormat& OpenAiWire() {
  static const OpenAi wire;
  return wire;
}

}  // namespace kernelwright::models
