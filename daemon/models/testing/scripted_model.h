// A model that answers from a script, for tests of what asks models: no network, no time, and a record of what it was
// asked.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/models/model.h"

namespace kernelwright::models::testing {

class ScriptedModel : public Model {
 public:
  using Step = std::variant<Reply, CallError>;

  explicit ScriptedModel(std::string name = "model") {
    facts_.provider = "scripted";
    facts_.id = std::move(name);
  }

  void Say(std::string text) {
    Reply reply;
    reply.message = Message::Assistant(std::move(text));
    Add(std::move(reply));
  }
  void Call(std::string tool, Json arguments) {
    ToolCall call;
    call.id = "call-" + std::to_string(++calls_);
    call.name = std::move(tool);
    call.raw = DumpJson(arguments);
    call.arguments = std::move(arguments);
    Reply reply;
    reply.stop = StopReason::kToolCalls;
    reply.message = {Role::kAssistant, {std::move(call)}};
    Add(std::move(reply));
  }
  void Fail(Cause cause, const std::string& message) { Add(MakeError(cause, message, Name())); }
  void Add(Step step) {
    const std::lock_guard lock(mutex_);
    steps_.push_back(std::move(step));
  }

  AskResult Ask(const Request& request, const AskOptions& options) override {
    CallRecord record;
    record.provider = facts_.provider;
    record.model = facts_.id;
    Step step = MakeError(Cause::kEmpty, "the script has ended", Name());
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      if (!steps_.empty()) {
        step = std::move(steps_.front());
        steps_.pop_front();
      }
    }
    if (options.stop.stop_requested()) step = MakeError(Cause::kCancelled, "the request was cancelled", Name());
    if (auto* error = std::get_if<CallError>(&step)) return tl::unexpected(Failure{std::move(*error), record});
    auto& reply = std::get<Reply>(step);
    if (!reply.usage.known) {
      reply.usage = {.known = true, .input_tokens = 100, .output_tokens = 10};
    }
    record.usage = reply.usage;
    record.usd = 0.001;
    if (options.on_stream && !reply.message.Text().empty()) {
      options.on_stream({StreamEvent::Kind::kText, reply.message.Text()});
    }
    return Answer{std::move(reply), record};
  }

  const ModelFacts& facts() const override { return facts_; }
  std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  ModelFacts facts_;
  mutable std::mutex mutex_;
  std::deque<Step> steps_;
  std::vector<Request> requests_;
  int calls_ = 0;
};

}  // namespace kernelwright::models::testing
