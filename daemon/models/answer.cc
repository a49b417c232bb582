// See answer.h.
#include "daemon/models/answer.h"

#include <algorithm>
#include <cctype>

#include "daemon/base/text.h"
#include "daemon/models/wire_common.h"

namespace kernelwright::models {
namespace {

// "text/html; charset=utf-8" → "text/html"
std::string MediaType(const HttpHead& head) {
  return ToLowerAscii(Trim(Split(head.Header("content-type"), ';').front()));
}

// The title of a page of HTML, or its first words, to show what answered instead of the server.
std::string FirstWords(std::string_view body) {
  const std::string lower = ToLowerAscii(body.substr(0, 4096));
  if (const size_t open = lower.find("<title>"); open != std::string::npos) {
    const size_t close = lower.find("</title>", open);
    if (close != std::string::npos) body = body.substr(open + 7, close - open - 7);
  }
  std::string words;
  for (char c : SanitizeUtf8(body.substr(0, 400))) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space) words += c;
    if (space && !words.empty() && words.back() != ' ') words += ' ';
  }
  return Truncate(Trim(words), 160);
}

Cause CauseOfFailure(HttpFailure failure) {
  switch (failure) {
    case HttpFailure::kNone:
    case HttpFailure::kTooLarge:
    case HttpFailure::kNotHttp:
      return Cause::kProtocol;
    case HttpFailure::kSetup:
      return Cause::kSetup;
    case HttpFailure::kResolve:
    case HttpFailure::kConnect:
      return Cause::kNetwork;
    case HttpFailure::kProxy:
      return Cause::kProxy;
    case HttpFailure::kTls:
      return Cause::kTls;
    case HttpFailure::kCut:
      return Cause::kCut;
    case HttpFailure::kSilent:
      return Cause::kSilent;
    case HttpFailure::kTimeout:
      return Cause::kTimeout;
    case HttpFailure::kCancelled:
      return Cause::kCancelled;
  }
  return Cause::kProtocol;
}

}  // namespace

AnswerReader::AnswerReader(const WireFormat& wire, Endpoint endpoint, OnStream on_stream)
    : wire_(wire),
      endpoint_(std::move(endpoint)),
      on_stream_(std::move(on_stream)),
      decoder_(wire.NewDecoder(endpoint_)) {}

void AnswerReader::OnHead(const HttpHead& head) {
  head_ = head;
  const std::string type = MediaType(head_);
  if (head_.status != 200 || type == "application/json" || type.ends_with("+json")) {
    shape_ = Shape::kWhole;
  } else if (type == "text/event-stream") {
    shape_ = Shape::kStream;
  } else {
    // Some servers give no type, or a wrong one, for what they stream: the bytes decide.
    shape_ = type == "text/html" ? Shape::kOther : Shape::kUnknown;
  }
}

void AnswerReader::OnBody(std::string_view bytes) {
  if (error_) return;
  if (shape_ == Shape::kUnknown) {
    body_ += bytes;
    const std::string_view start = Trim(body_);
    if (start.size() < 6) return;
    const bool stream = start.starts_with("data:") || start.starts_with("event:") || start.starts_with(":");
    shape_ = stream ? Shape::kStream : start.front() == '{' || start.front() == '[' ? Shape::kWhole : Shape::kOther;
    if (shape_ != Shape::kStream) return;
    Feed(parser_.Feed(std::exchange(body_, {})));
  } else if (shape_ == Shape::kStream) {
    // A server that fails before its first event may still say that it streams.
    if (!parser_.saw_field() && body_.size() < (size_t{1} << 16)) body_ += bytes;
    Feed(parser_.Feed(bytes));
  } else if (body_.size() < (size_t{64} << 20)) {
    body_ += bytes;
  }
}

void AnswerReader::Feed(const std::vector<SseEvent>& events) {
  std::vector<StreamEvent> shown;
  for (const SseEvent& event : events) {
    CallResult<void> taken = decoder_->OnEvent(event, &shown);
    if (!taken) {
      error_ = std::move(taken.error());
      break;
    }
  }
  if (parser_.too_large()) error_ = ProtocolError(endpoint_, "one event of the answer is larger than 32 MiB");
  if (on_stream_) {
    for (const StreamEvent& event : shown) on_stream_(event);
  }
}

CallResult<Reply> AnswerReader::Finish(const HttpOutcome& outcome, int64_t now_ms) {
  // What the server said about a failure is worth more than how the connection ended after it.
  if (head_.status == 0 || (outcome.failure != HttpFailure::kNone && !error_ && head_.status == 200)) {
    if (outcome.failure == HttpFailure::kNone) {
      return tl::unexpected(ProtocolError(endpoint_, "the server closed the connection without an answer"));
    }
    return tl::unexpected(WithPartial(ErrorOfOutcome(outcome, endpoint_)));
  }
  if (!error_ && head_.status == 200) {
    CallResult<Reply> reply = FinishBody();
    if (reply) return reply;
    error_ = std::move(reply.error());
  }
  if (!error_) {
    const Expected<Json> body = ParseJson(body_);
    error_ = wire_.DecodeError(endpoint_, head_, body ? *body : Json());
    if (!body && !Trim(body_).empty()) {
      CallError plain = ErrorOfStatus(endpoint_, head_, FirstWords(body_));
      plain.server_says_retry = error_->server_says_retry;
      error_ = std::move(plain);
    }
  }
  if (!error_->retry_after_ms) error_->retry_after_ms = ParseRetryAfter(head_, now_ms);
  if (error_->retry_after_ms) error_->continue_at_ms = now_ms + *error_->retry_after_ms;
  return tl::unexpected(WithPartial(*std::move(error_)));
}

CallError AnswerReader::WithPartial(CallError error) const {
  Reply partial = decoder_->Partial();
  if (!error.usage.known) error.usage = partial.usage;
  error.partial = std::move(partial.message);
  return error;
}

CallResult<Reply> AnswerReader::FinishBody() {
  if (shape_ == Shape::kStream) {
    Feed(parser_.Finish());
    if (error_) return tl::unexpected(*error_);
    if (parser_.saw_field()) return decoder_->Finish();
  }
  if (Trim(body_).empty()) {
    return tl::unexpected(MakeError(Cause::kCut, "the server sent an empty answer", endpoint_.Where()));
  }
  const Expected<Json> body = ParseJson(body_);
  if (!body) return tl::unexpected(ForeignError());
  std::vector<StreamEvent> shown;
  if (CallResult<void> taken = decoder_->OnWhole(*body, &shown); !taken) return tl::unexpected(taken.error());
  if (on_stream_) {
    for (const StreamEvent& event : shown) on_stream_(event);
  }
  return decoder_->Finish();
}

CallError AnswerReader::ForeignError() const {
  const std::string type(head_.Header("content-type"));
  // JSON that does not parse was cut or damaged on its way; anything else comes from another kind of server.
  if (shape_ == Shape::kWhole) {
    return MakeError(Cause::kCut, "the answer is not JSON: " + FirstWords(body_), endpoint_.Where());
  }
  return ProtocolError(endpoint_, "the answer is of type '" + (type.empty() ? "unknown" : type) +
                                      "', not an answer of a model: " + FirstWords(body_));
}

CallError ErrorOfOutcome(const HttpOutcome& outcome, const Endpoint& endpoint) {
  return MakeError(CauseOfFailure(outcome.failure), outcome.detail, endpoint.Where());
}

CallResult<Reply> DecodeAnswer(const WireFormat& wire, const Endpoint& endpoint, const HttpHead& head,
                               std::string_view body, int64_t now_ms) {
  AnswerReader reader(wire, endpoint, {});
  reader.OnHead(head);
  reader.OnBody(body);
  return reader.Finish({}, now_ms);
}

}  // namespace kernelwright::models
