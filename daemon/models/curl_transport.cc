// See curl_transport.h. No thread is started here: the caller's thread drives the exchange, and a stop request wakes it
// through curl_multi_wakeup, so cancelling takes no longer than a system call. Handles with their open connections wait
// in a pool for the next exchange.
#include "daemon/models/curl_transport.h"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <vector>

#include "daemon/base/no_sigpipe.h"
#include "daemon/base/redact.h"
#include "daemon/base/text.h"
#include "daemon/base/units.h"

namespace kernelwright::models {
namespace {

using std::chrono::milliseconds;
using SteadyTime = std::chrono::steady_clock::time_point;

struct EasyCleanup {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiCleanup {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct ListCleanup {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, EasyCleanup>;
using Multi = std::unique_ptr<CURLM, MultiCleanup>;
using HeaderList = std::unique_ptr<curl_slist, ListCleanup>;

// Where a certificate bundle may be; a binary built elsewhere does not know this machine's place.
std::string FindCertificates(const std::string& chosen) {
  if (!chosen.empty()) return chosen;
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE"}) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  }
  for (const char* path :
       {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (::access(path, R_OK) == 0) return path;
  }
  return {};
}

// The state of one exchange, seen by libcurl's callbacks.
struct Exchange {
  const HttpSink* sink = nullptr;
  size_t max_bytes = 0;
  HttpHead head;
  bool head_given = false;
  bool too_large = false;
  bool connected = false;
  size_t bytes = 0;
  SteadyTime last_byte;
};

bool IsInterim(int status) { return status < 200; }

size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  auto* exchange = static_cast<Exchange*>(user);
  const std::string_view line = Trim(std::string_view(data, size * count));
  exchange->last_byte = std::chrono::steady_clock::now();
  if (line.starts_with("HTTP/")) {
    // A new answer: that of a proxy's CONNECT and interim ones come before the real one.
    exchange->head = {};
    const size_t space = line.find(' ');
    if (space != std::string_view::npos) exchange->head.status = std::atoi(std::string(line.substr(space)).c_str());
  } else if (const size_t colon = line.find(':'); colon != std::string_view::npos) {
    exchange->head.headers.emplace_back(Trim(line.substr(0, colon)), Trim(line.substr(colon + 1)));
  }
  return size * count;
}

size_t OnData(char* data, size_t size, size_t count, void* user) {
  auto* exchange = static_cast<Exchange*>(user);
  const size_t bytes = size * count;
  exchange->last_byte = std::chrono::steady_clock::now();
  exchange->bytes += bytes;
  if (exchange->bytes > exchange->max_bytes) {
    exchange->too_large = true;
    return 0;
  }
  if (!exchange->head_given && !IsInterim(exchange->head.status)) {
    exchange->head_given = true;
    if (exchange->sink->on_head) exchange->sink->on_head(exchange->head);
  }
  if (exchange->sink->on_body) exchange->sink->on_body({data, bytes});
  return bytes;
}

HttpFailure FailureOf(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return HttpFailure::kNone;
    case CURLE_COULDNT_RESOLVE_HOST:
      return HttpFailure::kResolve;
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
      return HttpFailure::kConnect;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
      return HttpFailure::kProxy;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
      return HttpFailure::kTls;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_FAILED_INIT:
    case CURLE_OUT_OF_MEMORY:
    case CURLE_NOT_BUILT_IN:
    case CURLE_BAD_FUNCTION_ARGUMENT:
      return HttpFailure::kSetup;
    default:
      return HttpFailure::kCut;  // send, receive, HTTP/2 stream errors, partial file, weird replies
  }
}

class CurlTransport : public Transport {
 public:
  explicit CurlTransport(CurlOptions options)
      : options_(std::move(options)), ca_file_(FindCertificates(options_.ca_file)) {}

  HttpOutcome Run(const HttpRequest& request, const SecretHeader& key, const HttpLimits& limits, const HttpSink& sink,
                  const std::stop_token& stop) override {
    if (stop.stop_requested()) return {HttpFailure::kCancelled, "the request was cancelled", {}};
    const NoSigpipe guard;  // the TLS library writes to connections that the other side closed
    Multi multi = TakeMulti();
    Easy easy(curl_easy_init());
    if (!multi || !easy) return {HttpFailure::kSetup, "libcurl cannot be set up", {}};
    Exchange exchange;
    exchange.sink = &sink;
    exchange.max_bytes = limits.max_bytes;
    exchange.last_byte = std::chrono::steady_clock::now();
    std::array<char, CURL_ERROR_SIZE> words{};
    const HeaderList headers = Configure(easy.get(), request, key, limits, &exchange, words.data());
    if (curl_multi_add_handle(multi.get(), easy.get()) != CURLM_OK) {
      return {HttpFailure::kSetup, "libcurl cannot take the request", {}};
    }
    HttpOutcome outcome = Drive(multi.get(), limits, &exchange, stop, words.data());
    outcome.http_version = VersionOf(easy.get());
    if (outcome.failure == HttpFailure::kCut) outcome = AsProxyFailure(easy.get(), std::move(outcome));
    curl_multi_remove_handle(multi.get(), easy.get());
    GiveBack(std::move(multi));
    return outcome;
  }

 private:
  HeaderList Configure(CURL* easy, const HttpRequest& request, const SecretHeader& key, const HttpLimits& limits,
                       Exchange* exchange, char* words) const {
    curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connect.count()));
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, words);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, options_.user_agent.c_str());
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (!options_.proxy.empty()) curl_easy_setopt(easy, CURLOPT_PROXY, options_.proxy.c_str());
    if (!ca_file_.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file_.c_str());
    if (request.method == "POST") {
      curl_easy_setopt(easy, CURLOPT_POST, 1L);
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.c_str());
    }
    curl_slist* list = curl_slist_append(nullptr, "Expect:");
    for (const auto& [name, value] : request.headers) list = curl_slist_append(list, (name + ": " + value).c_str());
    if (!key.name.empty()) list = curl_slist_append(list, (key.name + ": " + key.value).c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, OnHeader);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, OnData);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
    return HeaderList(list);
  }

  static HttpOutcome Drive(CURLM* multi, const HttpLimits& limits, Exchange* exchange, const std::stop_token& stop,
                           const char* words) {
    const std::stop_callback wake(stop, [multi] { curl_multi_wakeup(multi); });
    while (true) {
      int running = 0;
      if (const CURLMcode code = curl_multi_perform(multi, &running); code != CURLM_OK) {
        return {HttpFailure::kSetup, curl_multi_strerror(code), {}};
      }
      int left = 0;
      if (const CURLMsg* message = curl_multi_info_read(multi, &left); message != nullptr) {
        long connects = 0;
        curl_easy_getinfo(message->easy_handle, CURLINFO_NUM_CONNECTS, &connects);
        exchange->connected = connects > 0;
        return Ended(message->data.result, exchange, words);
      }
      if (stop.stop_requested()) return {HttpFailure::kCancelled, "the request was cancelled", {}};
      const milliseconds silence = exchange->head.status == 0 ? limits.first_byte : limits.idle;
      const Deadline quiet = Deadline::At(exchange->last_byte + silence);
      if (limits.deadline.expired()) return {HttpFailure::kTimeout, "the answer was not complete in time", {}};
      if (quiet.expired()) return {HttpFailure::kSilent, "nothing came for " + FormatDuration(silence), {}};
      curl_multi_poll(multi, nullptr, 0, limits.deadline.Earlier(quiet).PollTimeout(), nullptr);
    }
  }

  static HttpOutcome Ended(CURLcode code, Exchange* exchange, const char* words) {
    if (exchange->too_large) return {HttpFailure::kTooLarge, "the answer is too large", {}};
    if (!exchange->head_given && exchange->head.status >= 200) {
      exchange->head_given = true;
      if (exchange->sink->on_head) exchange->sink->on_head(exchange->head);
    }
    if (code == CURLE_OK) return {};
    const std::string detail = *words != '\0' ? words : curl_easy_strerror(code);
    // An answer whose first line is not HTTP's is called a protocol that libcurl does not speak.
    const bool foreign = code == CURLE_UNSUPPORTED_PROTOCOL && exchange->connected;
    return {foreign ? HttpFailure::kNotHttp : FailureOf(code), ProcessRedactor().Redact(detail), {}};
  }

  // A proxy's refusal of CONNECT looks like any failed receive; the code of its answer tells.
  static HttpOutcome AsProxyFailure(CURL* easy, HttpOutcome outcome) {
    long code = 0;
    curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &code);
    if (code >= 400) {
      outcome.failure = HttpFailure::kProxy;
      outcome.detail = "the proxy answered " + std::to_string(code) + " to the wish for a connection";
    }
    return outcome;
  }

  static std::string VersionOf(CURL* easy) {
    long version = 0;
    curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
    return version == CURL_HTTP_VERSION_2_0   ? "2"
           : version == CURL_HTTP_VERSION_1_1 ? "1.1"
           : version == CURL_HTTP_VERSION_1_0 ? "1.0"
                                              : "";
  }

  Multi TakeMulti() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        Multi multi = std::move(idle_.back());
        idle_.pop_back();
        return multi;
      }
    }
    return Multi(curl_multi_init());
  }

  void GiveBack(Multi multi) {
    constexpr size_t kMostIdle = 8;
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMostIdle) idle_.push_back(std::move(multi));
  }

  const CurlOptions options_;
  const std::string ca_file_;
  std::mutex mutex_;
  std::vector<Multi> idle_;  // with their open connections
};

}  // namespace

Expected<std::unique_ptr<Transport>> MakeCurlTransport(const CurlOptions& options) {
  // Not thread-safe by itself before libcurl 7.84; never undone, since other threads may be in a request.
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) {
    return Fail(ErrorKind::kEnvironment, std::string("libcurl cannot be set up: ") + curl_easy_strerror(ready));
  }
  return std::make_unique<CurlTransport>(options);
}

}  // namespace kernelwright::models
