// libcurl against a small server in this process: pieces as they come, cancelling, silence, refusals.
#include "daemon/models/curl_transport.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "daemon/base/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright::models {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

// Takes one connection, reads the request, sends `answer`, and then closes or keeps the connection open.
class OneShotServer {
 public:
  explicit OneShotServer(std::string answer, bool keep_open = false) {
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ::listen(listener_.get(), 4);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this, answer = std::move(answer), keep_open] { Serve(answer, keep_open); });
  }
  ~OneShotServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    if (peer_.valid()) ::shutdown(peer_.get(), SHUT_RDWR);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/x"; }
  // Only after the exchange has ended.
  std::string request() {
    thread_.join();
    return request_;
  }

 private:
  void Serve(const std::string& answer, bool keep_open) {
    peer_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer_.valid()) return;
    char buffer[4096];
    while (request_.find("\r\n\r\n") == std::string::npos || !request_.ends_with("}")) {
      const ssize_t count = ::read(peer_.get(), buffer, sizeof buffer);
      if (count <= 0) break;
      request_.append(buffer, static_cast<size_t>(count));
    }
    ::send(peer_.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    if (keep_open) {
      while (::read(peer_.get(), buffer, sizeof buffer) > 0) {
      }
    }
    ::shutdown(peer_.get(), SHUT_RDWR);
  }

  UniqueFd listener_;
  UniqueFd peer_;
  int port_ = 0;
  std::string request_;
  std::jthread thread_;
};

struct Received {
  int status = 0;
  std::string type;
  std::string body;
  HttpSink Sink() {
    return {.on_head =
                [this](const HttpHead& head) {
                  status = head.status;
                  type = head.Header("Content-Type");
                },
            .on_body = [this](std::string_view bytes) { body += bytes; }};
  }
};

std::unique_ptr<Transport> NewTransport() {
  return MakeCurlTransport({.proxy = {}, .ca_file = {}, .user_agent = "test/1"}).value();
}

HttpRequest Post(const std::string& url) {
  return {.method = "POST", .url = url, .headers = {{"content-type", "application/json"}}, .body = "{}"};
}

constexpr const char* kAnswer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]";
constexpr const char* kOpenStream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: a\n\n";

TEST(CurlTransportTest, WholeExchange) {
  OneShotServer server(kAnswer);
  Received received;
  const HttpOutcome outcome = NewTransport()->Run(Post(server.url()), {"x-key", "k123456"}, {}, received.Sink(), {});
  EXPECT_EQ(outcome.failure, HttpFailure::kNone) << outcome.detail;
  EXPECT_EQ(outcome.http_version, "1.1");
  EXPECT_EQ(received.status, 200);
  EXPECT_EQ(received.type, "application/json");
  EXPECT_EQ(received.body, "[]");
  const std::string request = server.request();
  EXPECT_THAT(request, HasSubstr("x-key: k123456\r\n"));
  EXPECT_THAT(request, HasSubstr("User-Agent: test/1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\n\r\n{}"));
}

TEST(CurlTransportTest, CancelTakesLessThan100Ms) {
  OneShotServer server(kOpenStream, true);
  Received received;
  std::stop_source stop;
  steady_clock::time_point asked;
  HttpSink sink = received.Sink();
  std::jthread canceller;
  sink.on_body = [&](std::string_view) {
    // From another thread, once the exchange waits for more.
    canceller = std::jthread([&] {
      asked = steady_clock::now();
      stop.request_stop();
    });
  };
  const HttpOutcome outcome = NewTransport()->Run(Post(server.url()), {}, {}, sink, stop.get_token());
  canceller.join();
  EXPECT_EQ(outcome.failure, HttpFailure::kCancelled);
  EXPECT_LT(steady_clock::now() - asked, milliseconds(100));
}

TEST(CurlTransportTest, AStopBeforeTheStartSendsNothing) {
  std::stop_source stop;
  stop.request_stop();
  Received received;
  EXPECT_EQ(NewTransport()->Run(Post("http://127.0.0.1:9/"), {}, {}, received.Sink(), stop.get_token()).failure,
            HttpFailure::kCancelled);
}

TEST(CurlTransportTest, SilenceAndDeadlineAreToldApart) {
  {
    OneShotServer server(kOpenStream, true);
    Received received;
    HttpLimits limits;
    limits.idle = milliseconds(50);
    const HttpOutcome outcome = NewTransport()->Run(Post(server.url()), {}, limits, received.Sink(), {});
    EXPECT_EQ(outcome.failure, HttpFailure::kSilent) << outcome.detail;
    EXPECT_EQ(received.body, "data: a\n\n");
  }
  {
    OneShotServer server("", true);
    Received received;
    HttpLimits limits;
    limits.first_byte = milliseconds(50);
    EXPECT_EQ(NewTransport()->Run(Post(server.url()), {}, limits, received.Sink(), {}).failure, HttpFailure::kSilent);
  }
  OneShotServer server(kOpenStream, true);
  Received received;
  HttpLimits limits;
  limits.deadline = Deadline::After(milliseconds(50));
  EXPECT_EQ(NewTransport()->Run(Post(server.url()), {}, limits, received.Sink(), {}).failure, HttpFailure::kTimeout);
}

TEST(CurlTransportTest, ACutAnswerIsNoWholeOne) {
  OneShotServer server("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n[1,");
  Received received;
  EXPECT_EQ(NewTransport()->Run(Post(server.url()), {}, {}, received.Sink(), {}).failure, HttpFailure::kCut);
  EXPECT_EQ(received.body, "[1,");
}

TEST(CurlTransportTest, NobodyThere) {
  Received received;
  // Port 1 of this machine is closed.
  EXPECT_EQ(NewTransport()->Run(Post("http://127.0.0.1:1/"), {}, {}, received.Sink(), {}).failure,
            HttpFailure::kConnect);
  EXPECT_EQ(NewTransport()->Run(Post("http://no-such-host.invalid/"), {}, {}, received.Sink(), {}).failure,
            HttpFailure::kResolve);
  EXPECT_EQ(NewTransport()->Run(Post("gopher://127.0.0.1/"), {}, {}, received.Sink(), {}).failure, HttpFailure::kSetup);
}

TEST(CurlTransportTest, ARedirectionIsNotFollowed) {
  OneShotServer server("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n");
  Received received;
  EXPECT_EQ(NewTransport()->Run(Post(server.url()), {"x-key", "k123456"}, {}, received.Sink(), {}).failure,
            HttpFailure::kNone);
  EXPECT_EQ(received.status, 302);
}

TEST(CurlTransportTest, TooLargeAnAnswerIsGivenUp) {
  OneShotServer server(std::string("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n") + std::string(5000, 'x'));
  Received received;
  HttpLimits limits;
  limits.max_bytes = 1000;
  EXPECT_EQ(NewTransport()->Run(Post(server.url()), {}, limits, received.Sink(), {}).failure, HttpFailure::kTooLarge);
}

TEST(CurlTransportTest, AnswersThatAreNoHttpOrNoTls) {
  {
    OneShotServer server("SSH-2.0-OpenSSH_9.2\r\n");
    Received received;
    EXPECT_EQ(NewTransport()->Run(Post(server.url()), {}, {}, received.Sink(), {}).failure, HttpFailure::kNotHttp);
  }
  OneShotServer server(kAnswer);
  Received received;
  std::string url = server.url();
  url.replace(0, 4, "https");
  // The greeting of TLS is no request: the server must not wait for one.
  std::stop_source stop;
  HttpLimits limits;
  limits.first_byte = milliseconds(200);
  limits.connect = milliseconds(200);
  const HttpFailure failure = NewTransport()->Run(Post(url), {}, limits, received.Sink(), {}).failure;
  EXPECT_TRUE(failure == HttpFailure::kTls || failure == HttpFailure::kSilent || failure == HttpFailure::kConnect);
}

}  // namespace
}  // namespace kernelwright::models
