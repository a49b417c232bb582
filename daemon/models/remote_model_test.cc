// A model on a scripted server: what is asked again, what is not, what it costs, and how it ends.
#include "daemon/models/remote_model.h"

#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "daemon/models/structured.h"
#include "daemon/models/testing/scripted_model.h"
#include "daemon/models/wire_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelwright::models {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Answers exchanges from a list; remembers what was sent.
class ScriptedTransport : public Transport {
 public:
  struct Step {
    int status = 200;
    std::string type = "application/json";
    HttpHeaders headers = HttpHeaders();
    std::string body = std::string();
    HttpFailure failure = HttpFailure::kNone;
  };
  void Add(Step step) { steps_.push_back(std::move(step)); }
  void Answer(const std::string& text, int input = 10, int output = 5) {
    Add({.body = Json{{"id", "x"},
                      {"model", "m-real"},
                      {"choices", {{{"finish_reason", "stop"}, {"message", {{"content", text}}}}}},
                      {"usage", {{"prompt_tokens", input}, {"completion_tokens", output}}}}
                     .dump()});
  }
  void Fail(int status, HttpHeaders headers = {}, const std::string& message = "no") {
    Add({.status = status, .headers = std::move(headers), .body = Json{{"error", {{"message", message}}}}.dump()});
  }

  HttpOutcome Run(const HttpRequest& request, const SecretHeader& key, const HttpLimits&, const HttpSink& sink,
                  const std::stop_token& stop) override {
    const std::lock_guard lock(mutex_);
    sent.push_back(Json::parse(request.body));
    keys.push_back(key.value);
    if (on_run) on_run();
    if (stop.stop_requested()) return {HttpFailure::kCancelled, "cancelled", {}};
    if (steps_.empty()) return {HttpFailure::kConnect, "the script has ended", {}};
    const Step step = std::move(steps_.front());
    steps_.pop_front();
    if (step.status != 0) {
      HttpHead head{.status = step.status, .headers = step.headers};
      head.headers.emplace_back("content-type", step.type);
      sink.on_head(head);
      sink.on_body(step.body);
    }
    return {step.failure, step.failure == HttpFailure::kNone ? "" : "it broke", "2"};
  }

  std::vector<Json> sent;
  std::vector<std::string> keys;
  std::function<void()> on_run;

 private:
  std::mutex mutex_;
  std::deque<Step> steps_;
};

class FakeSleeper : public Sleeper {
 public:
  explicit FakeSleeper(FakeClock& clock) : clock_(clock) {}
  bool Sleep(milliseconds duration, const std::stop_token& stop) override {
    slept.push_back(duration);
    clock_.Advance(duration);
    if (on_sleep) on_sleep();
    return !stop.stop_requested();
  }
  std::vector<milliseconds> slept;
  std::function<void()> on_sleep;

 private:
  FakeClock& clock_;
};

class HalfRandom : public RandomSource {
 public:
  double Uniform() override { return 0.5; }
};

class RemoteModelTest : public ::testing::Test {
 protected:
  AskResult Ask(const AskOptions& options = {}) { return Make()->Ask(request_, options); }
  std::unique_ptr<Model> Make() {
    Connection connection;
    connection.wire = &OpenAiWire();
    connection.endpoint = testing::TestEndpoint("openai");
    connection.endpoint.stream = false;
    connection.facts = facts_;
    connection.key = ApiKey::Make("key-123456", "test").value();
    return MakeRemoteModel(std::move(connection), options_, budget(), {&transport_, &clock_, &sleeper_, &random_});
  }
  Budget& budget() {
    if (!budget_) budget_ = std::make_unique<Budget>(limits_);
    return *budget_;
  }
  RemoteModelTest() {
    facts_.provider = "openai";
    facts_.id = "some-model";
    facts_.prices = {{.input = 1.0, .output = 10.0}};
    facts_.source = "a list";
    facts_.date = "2026-12-01";
    facts_.max_output_tokens = 4000;
    request_.messages = {Message::User("hello")};
  }

  ModelFacts facts_;
  Request request_;
  RemoteOptions options_;
  BudgetLimits limits_;
  ScriptedTransport transport_;
  FakeClock clock_;
  FakeSleeper sleeper_{clock_};
  HalfRandom random_;
  std::unique_ptr<Budget> budget_;
};

TEST_F(RemoteModelTest, AnAnswerWithItsRecord) {
  transport_.Answer("hi", 100, 20);
  const AskResult result = Ask();
  ASSERT_TRUE(result) << result.error().error.status.ToString();
  EXPECT_EQ(result->reply.message.Text(), "hi");
  EXPECT_EQ(result->record.answered, "m-real");
  EXPECT_EQ(result->record.http_version, "2");
  EXPECT_EQ(result->record.usage.output_tokens, 20);
  EXPECT_DOUBLE_EQ(*result->record.usd, 0.0003);
  EXPECT_EQ(result->record.price_source, "a list, 2026-12-01");
  EXPECT_THAT(transport_.keys, ElementsAre("Bearer key-123456"));
  EXPECT_EQ(transport_.sent[0]["max_completion_tokens"], 4000) << "never more than the model can";
  EXPECT_THAT(ToJson(result->record).dump(), ::testing::Not(HasSubstr("key-123456")));
}

TEST_F(RemoteModelTest, C55OneLayerWaitsAsLongAsTheServerAsks) {
  transport_.Fail(429, {{"retry-after", "7"}});
  transport_.Answer("hi");
  std::vector<std::string> notes;
  const AskResult result = Ask({.stop = {}, .deadline = {}, .on_stream = [&](const StreamEvent& event) {
                                  if (event.kind == StreamEvent::Kind::kWait) notes.push_back(event.text);
                                }});
  ASSERT_TRUE(result);
  EXPECT_GE(sleeper_.slept.at(0), milliseconds(7000));
  EXPECT_EQ(result->record.attempts.size(), 2);
  EXPECT_EQ(result->record.attempts[0].outcome, "rate_limit");
  EXPECT_THAT(notes, ElementsAre(HasSubstr("429")));
}

TEST_F(RemoteModelTest, C56TooLongAWaitEndsAndSaysWhenToGoOn) {
  transport_.Fail(429, {{"retry-after", "3600"}});
  const AskResult result = Ask();
  ASSERT_FALSE(result);
  EXPECT_THAT(sleeper_.slept, IsEmpty());
  EXPECT_EQ(result.error().error.cause, Cause::kRateLimit);
  EXPECT_EQ(result.error().error.continue_at_ms, clock_.NowMs() + 3'600'000);
  EXPECT_THAT(result.error().error.status.remedy(), HasSubstr("continue after 2023-11-14T23:13:20"));
}

TEST_F(RemoteModelTest, C57TheSameModelIsWaitedForByAllItsCallers) {
  transport_.Fail(429, {{"retry-after", "50"}});
  transport_.Fail(400);
  const auto model = Make();
  EXPECT_FALSE(model->Ask(request_, {}));
  sleeper_.slept.clear();
  transport_.Fail(429, {{"retry-after", "59"}});
  options_.retry.most_attempts = 1;
  transport_.Answer("hi");
  const auto impatient = Make();
  EXPECT_FALSE(impatient->Ask(request_, {}));
  ASSERT_TRUE(impatient->Ask(request_, {})) << "the second caller waits for the first one's limit";
  EXPECT_THAT(sleeper_.slept, ElementsAre(milliseconds(59'000)));
}

TEST_F(RemoteModelTest, WhatCannotSucceedIsAskedOnce) {
  for (int status : {400, 401, 403, 404, 413}) {
    transport_.Fail(status);
    EXPECT_FALSE(Ask()) << status;
  }
  EXPECT_EQ(transport_.sent.size(), 5);
  EXPECT_THAT(sleeper_.slept, IsEmpty());
}

TEST_F(RemoteModelTest, FaultsOfTheServerAreAskedAgainWithGrowingWaits) {
  for (int status : {500, 502, 503, 529}) transport_.Fail(status);
  transport_.Answer("hi");
  ASSERT_TRUE(Ask());
  EXPECT_THAT(sleeper_.slept,
              ElementsAre(milliseconds(375), milliseconds(750), milliseconds(1500), milliseconds(3000)));
}

TEST_F(RemoteModelTest, ACutAnswerIsAskedAgainAndCounted) {
  transport_.Add({.type = "text/event-stream",
                  .body = "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n",
                  .failure = HttpFailure::kCut});
  transport_.Answer("hello", 10, 5);
  const AskResult result = Ask();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->reply.message.Text(), "hello");
  EXPECT_EQ(result->record.attempts[0].outcome, "cut");
  EXPECT_FALSE(result->record.usd) << "the server did not say what the cut answer cost";
  EXPECT_EQ(budget().spent().unknown_cost_calls, 1);
  EXPECT_GT(budget().spent().assumed_tokens, 4000);
}

TEST_F(RemoteModelTest, UselessAnswersAreAskedAgainAFewTimesOnly) {
  for (int i = 0; i < 9; ++i) transport_.Answer("");
  const AskResult result = Ask();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().error.cause, Cause::kEmpty);
  EXPECT_EQ(transport_.sent.size(), 3);
}

TEST_F(RemoteModelTest, ARefusalIsAnErrorAndNotRepeated) {
  transport_.Add({.body = R"({"choices":[{"finish_reason":"stop","message":{"refusal":"I will not."}}]})"});
  const AskResult result = Ask();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().error.cause, Cause::kRefused);
  EXPECT_THAT(result.error().error.status.message(), HasSubstr("I will not."));
  EXPECT_EQ(transport_.sent.size(), 1);
}

TEST_F(RemoteModelTest, ATruncatedAnswerGetsMoreRoomOnce) {
  const std::string cut = R"({"choices":[{"finish_reason":"length","message":{"content":"half"}}],
    "usage":{"prompt_tokens":10,"completion_tokens":1000}})";
  request_.max_output_tokens = 1000;
  transport_.Add({.body = cut});
  transport_.Answer("whole");
  ASSERT_TRUE(Ask());
  EXPECT_EQ(transport_.sent[1]["max_completion_tokens"], 2000);
  transport_.Add({.body = cut});
  transport_.Add({.body = cut});
  const AskResult result = Ask();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().error.cause, Cause::kTruncated);
  EXPECT_EQ(result.error().error.partial.Text(), "half");
}

TEST_F(RemoteModelTest, BudgetedStopsBeforeTheCall) {
  limits_.usd = 0.05;
  transport_.Answer("one", 1000, 4000);
  ASSERT_TRUE(Ask());
  EXPECT_EQ(transport_.sent.size(), 1);
  EXPECT_DOUBLE_EQ(budget().spent().known_usd, 0.041);
  transport_.Answer("two", 100, 100);
  ASSERT_TRUE(Ask());
  EXPECT_LT(transport_.sent[1]["max_completion_tokens"], 900) << "what the budget allows";
  limits_ = {};
  budget_ = std::make_unique<Budget>(BudgetLimits{.usd = 0.001});
  const AskResult result = Ask();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().error.cause, Cause::kBudget);
  EXPECT_EQ(transport_.sent.size(), 2) << "nothing was sent";
}

TEST_F(RemoteModelTest, RetriesStopAtTheBudget) {
  limits_.calls = 2;
  for (int i = 0; i < 5; ++i) transport_.Fail(500);
  const AskResult result = Ask();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().error.cause, Cause::kBudget);
  EXPECT_EQ(transport_.sent.size(), 2);
}

TEST_F(RemoteModelTest, CancelledWhileAskingAndWhileWaiting) {
  std::stop_source stop;
  transport_.on_run = [&] { stop.request_stop(); };
  AskResult result = Ask({.stop = stop.get_token(), .deadline = {}, .on_stream = {}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().error.cause, Cause::kCancelled);
  EXPECT_EQ(result.error().error.status.kind(), ErrorKind::kCancelled);

  std::stop_source second;
  transport_.on_run = {};
  sleeper_.on_sleep = [&] { second.request_stop(); };
  transport_.Fail(500);
  result = Ask({.stop = second.get_token(), .deadline = {}, .on_stream = {}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().error.cause, Cause::kCancelled);
}

TEST_F(RemoteModelTest, NoTimeLeftToWaitIsSaid) {
  transport_.Fail(429, {{"retry-after", "30"}});
  const AskResult result = Ask({.stop = {}, .deadline = Deadline::After(milliseconds(10'000)), .on_stream = {}});
  ASSERT_FALSE(result);
  EXPECT_THAT(sleeper_.slept, IsEmpty());
  EXPECT_THAT(result.error().error.status.remedy(), HasSubstr("no time left"));
}

TEST_F(RemoteModelTest, UnknownPriceIsUnknownCost) {
  facts_.prices.clear();
  transport_.Answer("hi");
  const AskResult result = Ask();
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->record.usd);
  EXPECT_TRUE(ToJson(result->record)["usd"].is_null());
}

TEST_F(RemoteModelTest, NoKeysOnDiskNorInErrors) {
  transport_.Fail(401, {}, "Incorrect API key provided: key-123456");
  const AskResult result = Ask();
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().error.status.ToString(), ::testing::Not(HasSubstr("key-123456")));
}

TEST_F(RemoteModelTest, ManyCallersAtOnce) {
  for (int i = 0; i < 40; ++i) transport_.Answer("hi", 10, 5);
  const auto model = Make();
  std::vector<std::jthread> callers;
  std::atomic<int> answers = 0;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int k = 0; k < 10; ++k) answers += model->Ask(request_, {}) ? 1 : 0;
    });
  }
  callers.clear();
  EXPECT_EQ(answers, 40);
  EXPECT_EQ(budget().spent().tokens, 600);
}

TEST(StructuredTest, AWrongAnswerIsCorrectedByAsking) {
  testing::ScriptedModel model;
  model.Say("steps: none");
  model.Say(R"({"steps": "none"})");
  model.Say(R"({"steps": ["a"]})");
  const auto answer = AskStructured(model, testing::StructuredRequest(), {});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->value["steps"][0], "a");
  EXPECT_EQ(answer->records.size(), 3);
  EXPECT_THAT(model.requests()[1].messages.back().Text(), HasSubstr("not JSON"));
  EXPECT_THAT(model.requests()[2].messages.back().Text(), HasSubstr("`steps` must be an array"));
}

TEST(StructuredTest, TheSameWrongAnswerTwiceEndsIt) {
  testing::ScriptedModel model;
  for (int i = 0; i < 5; ++i) model.Say("no");
  const auto answer = AskStructured(model, testing::StructuredRequest(), {}, 5);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().error.cause, Cause::kMalformed);
  EXPECT_EQ(answer.error().records.size(), 2);
}

}  // namespace
}  // namespace kernelwright::models
