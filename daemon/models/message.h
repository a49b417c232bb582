// What is said to a language model and what comes back, in no provider's words. The wire formats translate these values
// to and from what each provider's server speaks; everything above them sees only these.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/base/json.h"

namespace kernelwright::models {

struct TextPart {
  std::string text;
  std::string signature;  // opaque, of providers that want it back with the text; else empty
};

// A request of the model to run a tool.
struct ToolCall {
  std::string id;         // the server's, or "kw-1" where it gives none
  std::string name;       // as the model wrote it: may name no tool that exists
  Json arguments;         // null when they are not JSON
  std::string raw;        // the arguments as received
  std::string malformed;  // why they are not JSON; empty when they are
  std::string signature;  // opaque, of providers that want it back with the call
};

// Ids that we made up, because the server gave none, start with this and are never sent.
inline constexpr std::string_view kOwnIdPrefix = "kw-";

struct ToolResult {
  std::string id;    // of the call
  std::string name;  // of the tool
  std::string text;
  bool is_error = false;
};

// What the model thought before it answered, as far as it shows that. Some providers want it back unchanged.
struct Reasoning {
  std::string text;  // for people; may be empty
  std::string wire;  // format that made it: other formats leave it out
  Json opaque;       // what to send back
};

using Part = std::variant<TextPart, ToolCall, ToolResult, Reasoning>;

enum class Role { kUser, kAssistant };

struct Message {
  Role role = Role::kUser;
  std::vector<Part> parts;

  static Message User(std::string text) { return {Role::kUser, {TextPart{std::move(text), {}}}}; }
  static Message Assistant(std::string text) { return {Role::kAssistant, {TextPart{std::move(text), {}}}}; }
  // All text parts joined.
  std::string Text() const;
  std::vector<ToolCall> ToolCalls() const;
};

struct ToolSpec {
  std::string name;         // [a-zA-Z0-9_-]{1,64}
  std::string description;  // for the model
  Json parameters;          // JSON schema of an object
};

enum class ToolChoice { kAuto, kNone, kRequired };

// The answer must be one JSON value that this schema allows.
struct OutputSchema {
  std::string name;  // [a-zA-Z0-9_-]{1,64}
  Json schema;
};

enum class Effort { kDefault, kLow, kMedium, kHigh };
std::string_view EffortName(Effort effort);  // "default", "low", "medium", "high"

struct Request {
  std::string system;
  std::vector<Message> messages;
  std::vector<ToolSpec> tools;
  ToolChoice tool_choice = ToolChoice::kAuto;
  std::optional<OutputSchema> output;
  int64_t max_output_tokens = 0;      // 0: the model's limit, at most kDefaultOutputTokens
  std::optional<double> temperature;  // where the provider has one; some models refuse any, so leave it empty
  std::optional<int64_t> seed;        // where the provider has one
  Effort effort = Effort::kDefault;   // where the model has one
};

inline constexpr int64_t kDefaultOutputTokens = 16384;

struct Usage {
  bool known = false;                 // the server counted; else all are 0
  int64_t input_tokens = 0;           // all of the prompt, cached ones included
  int64_t cached_input_tokens = 0;    // of these, read from a cache
  int64_t cache_write_tokens = 0;     // of these, written to a cache that lives for minutes
  int64_t cache_write_1h_tokens = 0;  // of these, written to a cache that lives for an hour
  int64_t output_tokens = 0;          // reasoning included
  int64_t reasoning_tokens = 0;       // of these, not shown as an answer
};
Usage Sum(const Usage& a, const Usage& b);  // known when either is
Json ToJson(const Usage& usage);            // null when not known

enum class StopReason {
  kEnd,        // the answer is complete
  kToolCalls,  // it wants tools to be run
  kLength,     // cut at max_output_tokens, or the context is full
  kRefused,    // the model or a filter of the provider refused
  kMalformed,  // the server says that the model wrote no valid answer; asking again may help
  kOther,      // a reason that this build does not know
};
std::string_view StopReasonName(StopReason reason);  // "end", "tool_calls", "length", "refused", "malformed", "other"

struct Reply {
  Message message;  // of the assistant
  StopReason stop = StopReason::kEnd;
  std::string stop_detail;  // the server's own word, and what it says about a refusal
  Usage usage;
  std::string model;  // that answered, as the server calls it
  std::string id;     // the server's, for its support
};

// What is known while an answer is being written.
struct StreamEvent {
  enum class Kind {
    kText,       // `text` is the next piece of the answer
    kReasoning,  // `text` is the next piece of visible reasoning
    kToolCall,   // a call is complete: `text` is its tool's name
    kWait,       // asked again after `wait_ms`, because of `text`; what was shown so far is void
  };
  Kind kind = Kind::kText;
  std::string text;
  int64_t wait_ms = 0;
};
using OnStream = std::function<void(const StreamEvent&)>;

}  // namespace kernelwright::models
