// One HTTP answer of a model server, from its pieces to a reply or the reason why there is none. Copes with what
// servers and the boxes between do: an error with status 200, JSON where a stream was asked for, a page of HTML, a
// stream that ends too early. Pure: bytes in, value out.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "daemon/models/wire.h"

namespace kernelwright::models {

class AnswerReader {
 public:
  // `wire` must outlive the reader; `on_stream` may be empty.
  AnswerReader(const WireFormat& wire, Endpoint endpoint, OnStream on_stream);

  void OnHead(const HttpHead& head);
  void OnBody(std::string_view bytes);
  // The reply, or the error; `now_ms` (since 1970) is what dates in headers are compared with.
  CallResult<Reply> Finish(const HttpOutcome& outcome, int64_t now_ms);
  // Nothing that follows can change the result: the rest of the exchange may be dropped.
  bool failed() const { return error_.has_value(); }

 private:
  enum class Shape { kUnknown, kStream, kWhole, kOther };

  CallResult<Reply> FinishBody();
  CallError WithPartial(CallError error) const;
  CallError ForeignError() const;
  void Feed(const std::vector<SseEvent>& events);

  const WireFormat& wire_;
  const Endpoint endpoint_;
  const OnStream on_stream_;
  std::unique_ptr<Decoder> decoder_;
  SseParser parser_;
  HttpHead head_;
  Shape shape_ = Shape::kUnknown;
  std::string body_;  // of everything but a stream
  std::optional<CallError> error_;
};

// The error for an exchange that failed before there was an answer.
CallError ErrorOfOutcome(const HttpOutcome& outcome, const Endpoint& endpoint);

// A whole answer at once; for tests and for answers that are no stream.
CallResult<Reply> DecodeAnswer(const WireFormat& wire, const Endpoint& endpoint, const HttpHead& head,
                               std::string_view body, int64_t now_ms);

}  // namespace kernelwright::models
