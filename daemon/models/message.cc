// See message.h.
#include "daemon/models/message.h"

namespace kernelwright::models {

std::string Message::Text() const {
  std::string text;
  for (const Part& part : parts) {
    if (const auto* piece = std::get_if<TextPart>(&part)) text += piece->text;
  }
  return text;
}

std::vector<ToolCall> Message::ToolCalls() const {
  std::vector<ToolCall> calls;
  for (const Part& part : parts) {
    if (const auto* call = std::get_if<ToolCall>(&part)) calls.push_back(*call);
  }
  return calls;
}

std::string_view EffortName(Effort effort) {
  switch (effort) {
    case Effort::kDefault:
      return "default";
    case Effort::kLow:
      return "low";
    case Effort::kMedium:
      return "medium";
    case Effort::kHigh:
      return "high";
  }
  return "default";
}

Usage Sum(const Usage& a, const Usage& b) {
  return {.known = a.known || b.known,
          .input_tokens = a.input_tokens + b.input_tokens,
          .cached_input_tokens = a.cached_input_tokens + b.cached_input_tokens,
          .cache_write_tokens = a.cache_write_tokens + b.cache_write_tokens,
          .cache_write_1h_tokens = a.cache_write_1h_tokens + b.cache_write_1h_tokens,
          .output_tokens = a.output_tokens + b.output_tokens,
          .reasoning_tokens = a.reasoning_tokens + b.reasoning_tokens};
}

Json ToJson(const Usage& usage) {
  if (!usage.known) return nullptr;
  return {{"input_tokens", usage.input_tokens},
          {"cached_input_tokens", usage.cached_input_tokens},
          {"cache_write_tokens", usage.cache_write_tokens},
          {"cache_write_1h_tokens", usage.cache_write_1h_tokens},
          {"output_tokens", usage.output_tokens},
          {"reasoning_tokens", usage.reasoning_tokens}};
}

std::string_view StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kEnd:
      return "end";
    case StopReason::kToolCalls:
      return "tool_calls";
    case StopReason::kLength:
      return "length";
    case StopReason::kRefused:
      return "refused";
    case StopReason::kMalformed:
      return "malformed";
    case StopReason::kOther:
      return "other";
  }
  return "other";
}

}  // namespace kernelwright::models
