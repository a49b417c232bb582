// A request with everything in it, and how a reply is shown in the golden files.
#pragma once

#include <string>

#include "daemon/models/wire.h"

namespace kernelwright::models::testing {

inline Endpoint TestEndpoint(const std::string& wire) {
  return {.provider = wire,
          .model = "some-model",
          .base_url = "https://host.example/base",
          .stream = true,
          .structured = StructuredOutput::kNative,
          .effort = EffortStyle::kLevel};
}

// A conversation in which a tool was called, failed, and the model goes on.
inline Request FullRequest(const std::string& wire) {
  Request request;
  request.system = "You make kernels.";
  request.messages.push_back(Message::User("Why is it slow?"));
  Message answer = Message::Assistant("I look at it.");
  Json opaque = wire == "anthropic" ? Json{{"type", "thinking"}, {"thinking", "hm"}, {"signature", "c2ln"}} : Json();
  answer.parts.insert(answer.parts.begin(), Reasoning{"hm", wire, opaque});
  ToolCall call;
  call.id = "call_7";
  call.name = "read_file";
  call.arguments = {{"path", "k.py"}};
  call.raw = DumpJson(call.arguments);
  call.signature = wire == "gemini" ? "c2ln" : "";
  answer.parts.emplace_back(call);
  request.messages.push_back(answer);
  request.messages.push_back({Role::kUser, {ToolResult{"call_7", "read_file", "no such file: k.py", true}}});
  request.tools.push_back({"read_file",
                           "Lines of a file.",
                           {{"type", "object"},
                            {"additionalProperties", false},
                            {"required", {"path"}},
                            {"properties", {{"path", {{"type", "string"}, {"description", "relative path"}}}}}}});
  request.max_output_tokens = 1000;
  request.seed = 7;
  request.effort = Effort::kLow;
  return request;
}

// The same question with a schema for the answer and no tools.
inline Request StructuredRequest() {
  Request request;
  request.system = "You plan.";
  request.messages.push_back(Message::User("Plan it."));
  request.output = OutputSchema{
      "plan",
      {{"type", "object"},
       {"additionalProperties", false},
       {"required", {"steps"}},
       {"properties",
        {{"steps", {{"type", "array"}, {"maxItems", 8}, {"items", {{"type", "string"}, {"minLength", 1}}}}}}}}};
  request.temperature = 0.0;
  return request;
}

inline Json ToJson(const HttpRequest& request) {
  Json headers = Json::object();
  for (const auto& [name, value] : request.headers) headers[name] = value;
  return {{"method", request.method}, {"url", request.url}, {"headers", headers}, {"body", Json::parse(request.body)}};
}

inline Json ToJson(const Reply& reply) {
  Json parts = Json::array();
  for (const Part& part : reply.message.parts) {
    if (const auto* text = std::get_if<TextPart>(&part)) parts.push_back({{"text", text->text}});
    if (const auto* call = std::get_if<ToolCall>(&part)) {
      parts.push_back({{"call", call->name},
                       {"id", call->id},
                       {"arguments", call->arguments},
                       {"malformed", call->malformed},
                       {"signature", call->signature}});
    }
    if (const auto* reasoning = std::get_if<Reasoning>(&part)) {
      parts.push_back({{"reasoning", reasoning->text}, {"opaque", reasoning->opaque}});
    }
  }
  return {{"parts", parts},
          {"stop", StopReasonName(reply.stop)},
          {"stop_detail", reply.stop_detail},
          {"usage", kernelwright::models::ToJson(reply.usage)},
          {"model", reply.model},
          {"id", reply.id}};
}

}  // namespace kernelwright::models::testing
