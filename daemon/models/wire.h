// A wire format: how one family of servers wants to be asked and what it answers. Requests are built and answers
// decoded as values; nothing here touches the network. A new family is one file with a class of this kind and one line
// in wires.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/models/call_error.h"
#include "daemon/models/http.h"
#include "daemon/models/message.h"
#include "daemon/models/sse.h"

namespace kernelwright::models {

// How a server takes "answer with JSON of this schema".
enum class StructuredOutput { kNative, kPrompt };
// How a model takes Effort.
enum class EffortStyle { kNone, kLevel, kBudget };

// Where and how to ask.
struct Endpoint {
  std::string provider;  // "anthropic"; for messages
  std::string model;     // as the server calls it
  std::string base_url;  // without a slash at its end
  bool stream = true;
  StructuredOutput structured = StructuredOutput::kNative;
  EffortStyle effort = EffortStyle::kNone;
  bool old_token_limit = false;  // of OpenAI's kind: "max_tokens" instead of "max_completion_tokens"
  bool prompt_cache = true;      // mark prefixes for a cache where the server wants that

  std::string Where() const { return provider + ":" + model; }
};

// A model that a server offers.
struct OfferedModel {
  std::string id;
  int64_t context_tokens = 0;     // 0: it does not say
  int64_t max_output_tokens = 0;  // likewise
};

// The state of one answer while it arrives.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // One event of a stream; appends what to show to `out`. An error ends the answer.
  virtual CallResult<void> OnEvent(const SseEvent& event, std::vector<StreamEvent>* out) = 0;
  // An answer that came as one JSON value instead of a stream.
  virtual CallResult<void> OnWhole(const Json& body, std::vector<StreamEvent>* out) = 0;
  // Everything came. kCut when the answer's own end was missing.
  virtual CallResult<Reply> Finish() = 0;
  // What was understood so far, for an answer that was cut.
  virtual Reply Partial() const = 0;
};

class WireFormat {
 public:
  virtual ~WireFormat() = default;
  virtual std::string_view name() const = 0;  // "gemini", "anthropic", "openai"
  virtual HttpRequest Build(const Endpoint& endpoint, const Request& request) const = 0;
  virtual SecretHeader KeyHeader(std::string_view key) const = 0;
  virtual std::unique_ptr<Decoder> NewDecoder(const Endpoint& endpoint) const = 0;
  // What an answer with an error status says. `body` is null when it is not JSON.
  virtual CallError DecodeError(const Endpoint& endpoint, const HttpHead& head, const Json& body) const = 0;
  virtual HttpRequest BuildList(const Endpoint& endpoint) const = 0;
  virtual CallResult<std::vector<OfferedModel>> DecodeList(const Endpoint& endpoint, const Json& body) const = 0;
};

// All formats, and one by name (null when there is none).
std::vector<const WireFormat*> WireFormats();
const WireFormat* FindWireFormat(std::string_view name);

// The single formats, each in its own file.
const WireFormat& GeminiWire();
const WireFormat& AnthropicWire();
const WireFormat& OpenAiWire();

}  // namespace kernelwright::models
