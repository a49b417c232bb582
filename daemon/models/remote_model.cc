// See remote_model.h.
#include "daemon/models/remote_model.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "daemon/base/hash.h"
#include "daemon/base/log.h"
#include "daemon/base/units.h"
#include "daemon/models/answer.h"

namespace kernelwright::models {
namespace {

using std::chrono::milliseconds;

// A token is at least one byte, so the body bounds the tokens of the prompt; servers add words of their own for tools
// and formats.
constexpr int64_t kHiddenPromptTokens = 2048;

int64_t Milliseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration_cast<milliseconds>(duration).count();
}

// Bytes of what was received of an answer: no fewer than its tokens.
int64_t ReceivedBytes(const Message& message) {
  size_t bytes = 0;
  for (const Part& part : message.parts) {
    if (const auto* text = std::get_if<TextPart>(&part)) bytes += text->text.size();
    if (const auto* call = std::get_if<ToolCall>(&part)) bytes += call->name.size() + call->raw.size();
    if (const auto* reasoning = std::get_if<Reasoning>(&part)) bytes += reasoning->text.size();
  }
  return static_cast<int64_t>(bytes);
}

// An answer that came whole but cannot be used, as an error.
std::optional<CallError> Unusable(const Reply& reply, const std::string& where) {
  std::optional<CallError> error;
  switch (reply.stop) {
    case StopReason::kRefused:
      error = MakeError(Cause::kRefused, "the model refused: " + reply.stop_detail, where);
      break;
    case StopReason::kLength:
      error = MakeError(Cause::kTruncated, "the answer was cut at its limit (" + reply.stop_detail + ")", where);
      break;
    case StopReason::kMalformed:
      error = MakeError(Cause::kMalformed, "the model wrote no valid answer: " + reply.stop_detail, where);
      break;
    default:
      if (reply.message.Text().empty() && reply.message.ToolCalls().empty()) {
        error = MakeError(Cause::kEmpty, "the answer is empty (" + reply.stop_detail + ")", where);
      }
  }
  if (error) {
    error->usage = reply.usage;
    error->partial = reply.message;
  }
  return error;
}

class RemoteModel : public Model {
 public:
  RemoteModel(Connection connection, RemoteOptions options, Budget& budget, Surroundings surroundings)
      : connection_(std::move(connection)), options_(options), budget_(budget), around_(surroundings) {}

  const ModelFacts& facts() const override { return connection_.facts; }

  AskResult Ask(const Request& request, const AskOptions& options) override {
    Call call{*this, options, request, around_.clock->Monotonic(), {}, {}};
    call.deadline = options.deadline.Earlier(Deadline::After(options_.total));
    call.record.provider = connection_.facts.provider;
    call.record.model = connection_.facts.id;
    if (connection_.facts.has_price()) {
      call.record.price_source = connection_.facts.source;
      if (!connection_.facts.date.empty()) call.record.price_source += ", " + connection_.facts.date;
    }
    CallResult<Reply> reply = call.Run();
    call.record.milliseconds = Milliseconds(around_.clock->Monotonic() - call.begin);
    if (!call.cost_known) call.record.usd.reset();
    const CallRecord& record = call.record;
    LogInfo("model {}: {} after {} attempts, {} ms, {} tokens in, {} out", Name(),
            reply ? "ok" : CauseName(reply.error().cause), record.attempts.size(), record.milliseconds,
            record.usage.input_tokens, record.usage.output_tokens);
    if (!reply) return tl::unexpected(Failure{std::move(reply.error()), std::move(call.record)});
    call.record.answered = reply->model;
    return Answer{*std::move(reply), std::move(call.record)};
  }

 private:
  struct Call {  // one call, with all its attempts
    RemoteModel& model;
    const AskOptions& options;
    Request request;
    std::chrono::steady_clock::time_point begin;
    Deadline deadline;
    CallRecord record;
    bool cost_known = true;
    int64_t waited_ms = 0;

    CallResult<Reply> Run();
    CallResult<Reply> Try();
    CallResult<Reply> Exchange(const HttpRequest& http, bool* sent);
    Status Wait(milliseconds duration);
    bool GrowOutput(const CallError& error);
  };

  int64_t OutputLimit(int64_t wanted) const {
    const int64_t most = connection_.facts.max_output_tokens;
    if (wanted <= 0) wanted = kDefaultOutputTokens;
    return most > 0 ? std::min(wanted, most) : wanted;
  }

  // Others of this model wait too when the server asked one of us to.
  void NoteServerWait(const CallError& error) {
    if (!error.retry_after_ms || error.cause != Cause::kRateLimit) return;
    const std::lock_guard lock(mutex_);
    not_before_ms_ = std::max(not_before_ms_, around_.clock->NowMs() + *error.retry_after_ms);
  }
  milliseconds UntilAllowed() {
    const std::lock_guard lock(mutex_);
    const int64_t left = not_before_ms_ - around_.clock->NowMs();
    return milliseconds(std::clamp<int64_t>(left, 0, options_.retry.longest_server_wait.count()));
  }

  const Connection connection_;
  const RemoteOptions options_;
  Budget& budget_;
  const Surroundings around_;
  std::mutex mutex_;
  int64_t not_before_ms_ = 0;
};

CallResult<Reply> RemoteModel::Call::Run() {
  const std::string where = model.Name();
  int answers = 0;
  bool grown = false;
  while (true) {
    if (const milliseconds pause = model.UntilAllowed(); pause.count() > 0) {
      if (Status waited = Wait(pause); !waited.ok()) {
        return tl::unexpected(
            MakeError(options.stop.stop_requested() ? Cause::kCancelled : Cause::kTimeout, waited.message(), where));
      }
    }
    CallResult<Reply> reply = Try();
    if (reply) return reply;
    CallError error = std::move(reply.error());
    if (error.cause == Cause::kTruncated && !grown && GrowOutput(error)) {
      grown = true;
      if (options.on_stream) options.on_stream({StreamEvent::Kind::kWait, error.status.message(), 0});
      continue;
    }
    if (AfterAnswer(error)) ++answers;
    model.NoteServerWait(error);
    const RetryDecision decision = DecideRetry(model.options_.retry, error, static_cast<int>(record.attempts.size()),
                                               answers, model.around_.random->Uniform());
    if (!decision.again) {
      if (error.retry_after_ms && MayRetry(error)) {
        const std::string remedy = "The server asks to wait " + FormatDuration(milliseconds(*error.retry_after_ms)) +
                                   ": continue after " + FormatTimeUtc(error.continue_at_ms) + ".";
        error.status = Status(error.status.kind(), error.status.message(), error.status.where(), remedy);
      }
      return tl::unexpected(std::move(error));
    }
    if (decision.wait >= deadline.Remaining()) {
      error.status = Status(error.status.kind(), error.status.message(), error.status.where(),
                            "There was no time left to ask again. " + error.status.remedy());
      return tl::unexpected(std::move(error));
    }
    if (options.on_stream) {
      options.on_stream({StreamEvent::Kind::kWait, error.status.message(), decision.wait.count()});
    }
    if (Status waited = Wait(decision.wait); !waited.ok()) {
      return tl::unexpected(MakeError(Cause::kCancelled, waited.message(), where));
    }
  }
}

Status RemoteModel::Call::Wait(milliseconds duration) {
  if (duration >= deadline.Remaining()) return Status(ErrorKind::kLimit, "the time for the call is used up");
  waited_ms += duration.count();
  if (!model.around_.sleeper->Sleep(duration, options.stop)) {
    return Status(ErrorKind::kCancelled, "the request was cancelled");
  }
  return {};
}

// Doubles the room for the answer where the model has more.
bool RemoteModel::Call::GrowOutput(const CallError& error) {
  if (!model.options_.grow_output) return false;
  const int64_t before = model.OutputLimit(request.max_output_tokens);
  // The context was full, or the budget had granted less: more room would change nothing.
  if (error.usage.known && error.usage.output_tokens + 16 < before) return false;
  request.max_output_tokens = before * 2;
  return model.OutputLimit(request.max_output_tokens) > before;
}

CallResult<Reply> RemoteModel::Call::Try() {
  const ModelFacts& facts = model.connection_.facts;
  request.max_output_tokens = model.OutputLimit(request.max_output_tokens);
  HttpRequest http = model.connection_.wire->Build(model.connection_.endpoint, request);
  const int64_t input_bound = static_cast<int64_t>(http.body.size()) + kHiddenPromptTokens;
  const int64_t least = std::min(model.options_.least_output_tokens, request.max_output_tokens);
  const auto reservation = model.budget_.Reserve(facts, input_bound, request.max_output_tokens, least);
  if (!reservation) return tl::unexpected(reservation.error());
  if (reservation->output_tokens < request.max_output_tokens) {
    Request smaller = request;
    smaller.max_output_tokens = reservation->output_tokens;
    http = model.connection_.wire->Build(model.connection_.endpoint, smaller);
  }
  record.request_sha256 = Sha256Hex(http.body);

  Attempt attempt{.outcome = "ok", .waited_ms = std::exchange(waited_ms, 0)};
  const auto start = model.around_.clock->Monotonic();
  bool sent = false;
  CallResult<Reply> reply = Exchange(http, &sent);
  if (reply) {
    if (std::optional<CallError> error = Unusable(*reply, model.Name())) reply = tl::unexpected(*std::move(error));
  }
  Usage usage = reply ? reply->usage : reply.error().usage;
  if (!reply) {
    const CallError& error = reply.error();
    attempt.outcome = CauseName(error.cause);
    attempt.http_status = error.http_status;
    if (error.cause == Cause::kCut || error.cause == Cause::kSilent || error.cause == Cause::kCancelled ||
        error.cause == Cause::kTimeout) {
      // The server's last word on the output came before the end of it.
      usage.output_tokens = std::max(usage.output_tokens, ReceivedBytes(error.partial));
    }
    // Servers do not charge for what they answer with an error status.
    if (error.http_status >= 400) sent = false;
  } else {
    attempt.http_status = 200;
  }
  attempt.milliseconds = Milliseconds(model.around_.clock->Monotonic() - start);
  record.attempts.push_back(attempt);
  record.usage = Sum(record.usage, usage);
  const std::optional<double> cost = model.budget_.Settle(*reservation, facts, usage, sent);
  if (cost) {
    record.usd = record.usd.value_or(0) + *cost;
  } else {
    cost_known = false;
  }
  return reply;
}

CallResult<Reply> RemoteModel::Call::Exchange(const HttpRequest& http, bool* sent) {
  record.first_piece_ms = 0;
  AnswerReader reader(*model.connection_.wire, model.connection_.endpoint, [this](const StreamEvent& event) {
    if (record.first_piece_ms == 0) {
      record.first_piece_ms = std::max<int64_t>(1, Milliseconds(model.around_.clock->Monotonic() - begin));
    }
    if (options.on_stream) options.on_stream(event);
  });
  // An answer that has already failed is not read to its end.
  std::stop_source give_up;
  const std::stop_callback forward(options.stop, [&give_up] { give_up.request_stop(); });
  const HttpSink sink{.on_head =
                          [&](const HttpHead& head) {
                            *sent = true;
                            reader.OnHead(head);
                          },
                      .on_body =
                          [&](std::string_view bytes) {
                            reader.OnBody(bytes);
                            if (reader.failed()) give_up.request_stop();
                          }};
  HttpLimits limits = model.options_.limits;
  limits.deadline = deadline;
  HttpOutcome outcome =
      model.around_.transport->Run(http, model.connection_.KeyHeader(), limits, sink, give_up.get_token());
  // A request that may have arrived may cost something.
  if (outcome.failure == HttpFailure::kCut || outcome.failure == HttpFailure::kSilent ||
      outcome.failure == HttpFailure::kTimeout || outcome.failure == HttpFailure::kCancelled) {
    *sent = true;
  }
  record.http_version = outcome.http_version;
  if (outcome.failure == HttpFailure::kCancelled && reader.failed() && !options.stop.stop_requested()) outcome = {};
  return reader.Finish(outcome, model.around_.clock->NowMs());
}

}  // namespace

std::unique_ptr<Model> MakeRemoteModel(Connection connection, RemoteOptions options, Budget& budget,
                                       Surroundings surroundings) {
  return std::make_unique<RemoteModel>(std::move(connection), options, budget, surroundings);
}

}  // namespace kernelwright::models
