// See wire_common.h.
#include "daemon/models/wire_common.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include "daemon/base/text.h"

namespace kernelwright::models {
namespace {

Cause CauseOfStatus(int status) {
  switch (status) {
    case 401:
      return Cause::kAuth;
    case 402:
      return Cause::kQuota;
    case 403:
      return Cause::kForbidden;
    case 404:
      return Cause::kNoModel;
    case 407:
      return Cause::kProxy;
    case 413:
      return Cause::kTooLong;
    case 408:
    case 409:
    case 425:
      return Cause::kServer;
    case 429:
      return Cause::kRateLimit;
    case 503:
    case 529:
      return Cause::kOverloaded;
    case 501:
    case 505:
      return Cause::kBadRequest;
    default:
      break;
  }
  if (status >= 500) return Cause::kServer;
  if (status >= 300 && status < 400) return Cause::kProtocol;
  return Cause::kBadRequest;
}

std::optional<double> Number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0) || value > 1e9) return std::nullopt;
  return value;
}

// The date form of HTTP, as seconds since 1970.
std::optional<int64_t> HttpDate(const std::string& text) {
  std::tm time{};
  const char* end = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &time);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return static_cast<int64_t>(::timegm(&time));
}

constexpr std::array<std::string_view, 13> kRangeKeywords = {
    "minimum",  "maximum",  "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
    "minItems", "maxItems", "uniqueItems",      "pattern",          "default",    "examples"};

}  // namespace

std::string_view HttpHead::Header(std::string_view name) const {
  const std::string wanted = ToLowerAscii(name);
  for (const auto& [key, value] : headers) {
    if (ToLowerAscii(key) == wanted) return value;
  }
  return {};
}

const Json& Member(const Json& value, std::string_view key) {
  static const Json null;
  if (!value.is_object()) return null;
  const auto found = value.find(key);
  return found == value.end() ? null : *found;
}

std::string StringAt(const Json& value, std::string_view key) {
  const Json& member = Member(value, key);
  return member.is_string() ? member.get<std::string>() : std::string();
}

int64_t IntAt(const Json& value, std::string_view key) {
  const Json& member = Member(value, key);
  if (member.is_number_unsigned()) {
    return static_cast<int64_t>(std::min(member.get<uint64_t>(), uint64_t{1} << 62));
  }
  return member.is_number_integer() ? member.get<int64_t>() : 0;
}

void SetArguments(ToolCall* call, std::string raw) {
  call->raw = std::move(raw);
  if (Trim(call->raw).empty()) {
    call->arguments = Json::object();
    return;
  }
  Expected<Json> parsed = ParseJson(call->raw);
  if (!parsed) {
    call->malformed = parsed.error().message();
  } else if (!parsed->is_object()) {
    call->malformed = "the arguments must be a JSON object";
  } else {
    call->arguments = *std::move(parsed);
  }
}

CallError ErrorOfStatus(const Endpoint& endpoint, const HttpHead& head, std::string message) {
  CallError error = ErrorOfStatus(endpoint, head.status, std::move(message));
  const std::string_view retry = head.Header("x-should-retry");
  if (retry == "true") error.server_says_retry = true;
  if (retry == "false") error.server_says_retry = false;
  return error;
}

CallError ErrorOfStatus(const Endpoint& endpoint, int status, std::string message) {
  Cause cause = CauseOfStatus(status);
  if (cause == Cause::kBadRequest && SaysTooLong(message)) cause = Cause::kTooLong;
  std::string text = "the server answered " + std::to_string(status);
  if (status >= 300 && status < 400) text += ", a redirection, which is not followed because the key would go with it";
  if (!message.empty()) text += ": " + std::move(message);
  CallError error = MakeError(cause, std::move(text), endpoint.Where());
  error.http_status = status;
  return error;
}

void SetCause(CallError* error, Cause cause) {
  if (error->cause == cause) return;
  const CallError with_cause = MakeError(cause, error->status.message(), error->status.where());
  error->cause = cause;
  error->status = with_cause.status;
}

bool SaysTooLong(std::string_view message) {
  const std::string text = ToLowerAscii(message);
  for (std::string_view words :
       {"prompt is too long", "context length", "context window", "maximum context", "context_length_exceeded",
        "exceeds the maximum number of tokens", "too many tokens", "input is too long", "input token count"}) {
    if (text.find(words) != std::string::npos) return true;
  }
  return false;
}

std::optional<int64_t> ParseRetryAfter(const HttpHead& head, int64_t now_ms) {
  if (const auto ms = Number(Trim(head.Header("retry-after-ms")))) return static_cast<int64_t>(*ms);
  const std::string text(Trim(head.Header("retry-after")));
  if (text.empty()) return std::nullopt;
  if (const auto seconds = Number(text)) return static_cast<int64_t>(*seconds * 1000);
  if (const auto date = HttpDate(text)) return std::max<int64_t>(0, *date * 1000 - now_ms);
  return std::nullopt;
}

CallError ProtocolError(const Endpoint& endpoint, const std::string& what) {
  return MakeError(Cause::kProtocol, what, endpoint.Where());
}

CallResult<Json> ParseEventData(const Endpoint& endpoint, std::string_view data) {
  Expected<Json> parsed = ParseJson(data);
  if (parsed && parsed->is_object()) return *std::move(parsed);
  return tl::unexpected(MakeError(Cause::kCut,
                                  "a piece of the answer is not a JSON object: " + Truncate(SanitizeUtf8(data), 120),
                                  endpoint.Where()));
}

std::string SystemText(const Endpoint& endpoint, const Request& request, bool schema_in_prompt) {
  std::string text = request.system;
  if (request.output && (schema_in_prompt || endpoint.structured == StructuredOutput::kPrompt)) {
    if (!text.empty()) text += "\n\n";
    text += "Answer with one JSON value and nothing else: no prose, no code fence. It must match this JSON schema:\n" +
            DumpJson(request.output->schema);
  }
  return text;
}

std::string Url(const Endpoint& endpoint, std::string_view path) { return endpoint.base_url + std::string(path); }

Json WithoutRanges(const Json& schema) {
  if (schema.is_array()) {
    Json result = Json::array();
    for (const Json& element : schema) result.push_back(WithoutRanges(element));
    return result;
  }
  if (!schema.is_object()) return schema;
  Json result = Json::object();
  for (const auto& [key, value] : schema.items()) {
    if (key == "properties" && value.is_object()) {
      // Names of properties are not keywords.
      Json properties = Json::object();
      for (const auto& [name, property] : value.items()) properties[name] = WithoutRanges(property);
      result[key] = std::move(properties);
    } else if (std::find(kRangeKeywords.begin(), kRangeKeywords.end(), key) == kRangeKeywords.end()) {
      result[key] = key == "enum" || key == "const" ? value : WithoutRanges(value);
    }
  }
  return result;
}

bool IsStrict(const Json& schema) {
  if (schema.is_array()) return std::all_of(schema.begin(), schema.end(), IsStrict);
  if (!schema.is_object()) return true;
  const Json& properties = Member(schema, "properties");
  if (StringAt(schema, "type") == "object" || properties.is_object()) {
    if (Member(schema, "additionalProperties") != Json(false)) return false;
    const Json& required = Member(schema, "required");
    const size_t count = properties.is_object() ? properties.size() : 0;
    if ((required.is_array() ? required.size() : 0) != count) return false;
  }
  for (const auto& [key, value] : schema.items()) {
    if (key == "properties") {
      for (const auto& property : value) {
        if (!IsStrict(property)) return false;
      }
    } else if (key != "enum" && key != "const" && !IsStrict(value)) {
      return false;
    }
  }
  return true;
}

}  // namespace kernelwright::models
