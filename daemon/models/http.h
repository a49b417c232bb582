// HTTP as an interface: one exchange whose answer arrives in pieces. What carries it (libcurl, or a script in tests) is
// behind it, so that providers and retries are tested without a network.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/base/deadline.h"

namespace kernelwright::models {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "POST";
  std::string url;
  HttpHeaders headers;  // without the key
  std::string body;
};

// A header that holds the key. Kept apart from the request, so that a request can be shown.
struct SecretHeader {
  std::string name;
  std::string value;
};

struct HttpHead {
  int status = 0;
  HttpHeaders headers;
  // The value of the first header of this name, without regard to case; empty when there is none.
  std::string_view Header(std::string_view name) const;
};

struct HttpLimits {
  std::chrono::milliseconds connect{15'000};
  std::chrono::milliseconds first_byte{300'000};  // from the end of sending; a model may think for minutes
  std::chrono::milliseconds idle{120'000};        // between two pieces
  Deadline deadline;                              // of the whole exchange
  size_t max_bytes = size_t{64} << 20;            // of the answer
};

enum class HttpFailure {
  kNone,  // the answer is complete, whatever its status
  kSetup,
  kResolve,
  kConnect,
  kProxy,
  kTls,
  kCut,
  kSilent,
  kTimeout,
  kTooLarge,
  kNotHttp,
  kCancelled,
};

struct HttpOutcome {
  HttpFailure failure = HttpFailure::kNone;
  std::string detail;        // for people
  std::string http_version;  // "1.1", "2"; empty when no answer came
};

// Called on the thread that runs the exchange, in the order of arrival. A second head (of a redirect or an interim
// answer) never comes.
struct HttpSink {
  std::function<void(const HttpHead&)> on_head;
  std::function<void(std::string_view)> on_body;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Blocks until the exchange has ended; at most 100 ms longer once a stop is requested. Safe to call from several
  // threads.
  virtual HttpOutcome Run(const HttpRequest& request, const SecretHeader& key, const HttpLimits& limits,
                          const HttpSink& sink, const std::stop_token& stop) = 0;
};

}  // namespace kernelwright::models
