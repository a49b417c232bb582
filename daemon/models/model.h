// The one interface that everything above asks: a model that answers. What stands behind it is a server
// (remote_model.h) or, in tests, a script (testing/scripted_model.h). `none` is the absence of a model: a null pointer.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/base/deadline.h"
#include "daemon/base/json.h"
#include "daemon/models/call_error.h"
#include "daemon/models/catalogue.h"
#include "daemon/models/message.h"

namespace kernelwright::models {

// One attempt of a call, for the record.
struct Attempt {
  std::string outcome;  // "ok", or the name of a Cause
  int http_status = 0;
  int64_t milliseconds = 0;
  int64_t waited_ms = 0;  // before it
};

// What a call took; kept in the store with its input and output.
struct CallRecord {
  std::string provider;
  std::string model;     // as it was asked for
  std::string answered;  // as the server calls itself
  std::string http_version;
  std::vector<Attempt> attempts;
  Usage usage;                 // of all attempts, as far as servers said
  std::optional<double> usd;   // of all attempts; empty: unknown
  std::string price_source;    // where the price was read, and when; empty when unknown
  int64_t milliseconds = 0;    // waits included
  int64_t first_piece_ms = 0;  // until the first piece of the answer that counted; 0: it came whole
  std::string request_sha256;  // of the body that was sent
};
Json ToJson(const CallRecord& record);

struct Answer {
  Reply reply;
  CallRecord record;
};

struct Failure {
  CallError error;
  CallRecord record;
};

using AskResult = tl::expected<Answer, Failure>;

struct AskOptions {
  std::stop_token stop;
  Deadline deadline;  // of the whole call, waits included
  OnStream on_stream;
};

class Model {
 public:
  virtual ~Model() = default;
  // Blocks until there is an answer that can be used: complete, not refused, its tool calls and JSON as the model wrote
  // them. Everything else is a Failure. Any thread may ask, several at once.
  virtual AskResult Ask(const Request& request, const AskOptions& options) = 0;
  virtual const ModelFacts& facts() const = 0;
  std::string Name() const { return facts().provider + ":" + facts().id; }
};

}  // namespace kernelwright::models
