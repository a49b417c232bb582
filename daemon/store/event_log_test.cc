#include "daemon/store/event_log.h"

#include <latch>
#include <random>
#include <thread>

#include "daemon/base/files.h"
#include "gtest/gtest.h"

namespace kernelwright::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Event Make(const std::string& run, int value) { return {0, run, 0, "x", {{"value", value}}}; }

class EventLogTest : public ::testing::Test {
 protected:
  TempFolder folder_ = *TempFolder::Make();
  std::filesystem::path path_ = folder_.path() / "store.db";
  std::unique_ptr<Store> store_ = *Store::Open(path_);
};

TEST_F(EventLogTest, ReplaysThenGoesOnLive) {
  EventLog log(*store_);
  ASSERT_EQ(*log.Append(Make("a", 1)), 1);
  ASSERT_EQ(*log.Append(Make("b", 2)), 2);
  auto all = log.Subscribe(0);
  auto only_b = log.Subscribe(0, "b");
  auto since = log.Subscribe(1);
  EXPECT_EQ(all->Next(10, Deadline::Never())->size(), 2U);
  EXPECT_EQ(only_b->Next(10, Deadline::Never())->at(0).seq, 2);
  EXPECT_EQ(since->Next(10, Deadline::Never())->at(0).seq, 2);
  EXPECT_TRUE(all->Next(10, Deadline::After(milliseconds(0)))->empty());
  ASSERT_EQ(*log.Append(Make("a", 3)), 3);
  ASSERT_EQ(*log.Append(Make("b", 4)), 4);
  EXPECT_EQ(all->Next(1, Deadline::Never())->at(0).seq, 3);
  EXPECT_EQ(all->Next(1, Deadline::Never())->at(0).seq, 4);
  EXPECT_EQ(only_b->Next(10, Deadline::Never())->at(0).seq, 4);
  EXPECT_EQ(all->last_seq(), 4);
  EXPECT_EQ(all->resyncs(), 0);
}

// Invariant LogBeforeShow: whatever a client gets is in the file already, as another process would read it.
TEST_F(EventLogTest, LogBeforeShow) {
  EventLog log(*store_);
  std::unique_ptr<Store> other = *Store::Open(path_);
  std::jthread writer([&] {
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(log.Append(Make("a", i)).has_value());
    log.Close();
  });
  auto subscription = log.Subscribe(0);
  int64_t seen = 0;
  while (!subscription->closed()) {
    const std::vector<Event> batch = *subscription->Next(7, Deadline::Never());
    for (const Event& event : batch) {
      EXPECT_EQ(event.seq, ++seen);
      const std::vector<Event> stored = *other->ReadEvents(event.seq - 1, "", 1);
      ASSERT_EQ(stored.size(), 1U);
      EXPECT_EQ(stored[0].payload, event.payload);
    }
  }
  EXPECT_EQ(seen, 100);
}

TEST_F(EventLogTest, EvaluationAndItsEventComeTogether) {
  EventLog log(*store_);
  store::Run run;
  ASSERT_TRUE(store_->CreateRun(run));
  auto subscription = log.Subscribe(0);
  ASSERT_TRUE(log.Commit([&](Writer& writer) {
                   Candidate candidate;
                   candidate.run = run.id;
                   Status status = writer.PutCandidate(candidate);
                   Evaluation evaluation;
                   evaluation.run = run.id;
                   evaluation.candidate = candidate.id;
                   evaluation.stage = "compile";
                   evaluation.reported = true;
                   if (status) status = writer.PutEvaluation(evaluation);
                   Event event = Make(run.id, 1);
                   if (status) status = writer.AppendEvent(event);
                   return status;
                 })
                  .has_value());
  ASSERT_EQ(subscription->Next(1, Deadline::Never())->size(), 1U);
  EXPECT_TRUE(store_->ListEvaluations(run.id)->at(0).reported);
}

TEST_F(EventLogTest, FailedCommitShowsNothing) {
  EventLog log(*store_);
  auto subscription = log.Subscribe(0);
  EXPECT_FALSE(log.Commit([&](Writer& writer) {
                    Event event = Make("a", 1);
                    EXPECT_TRUE(writer.AppendEvent(event));
                    return Status(ErrorKind::kInternal, "no");
                  })
                   .has_value());
  EXPECT_TRUE(subscription->Next(1, Deadline::After(milliseconds(0)))->empty());
  EXPECT_EQ(*log.Append(Make("a", 2)), 1);
}

// C24: a client that does not read costs a bounded queue, holds up nobody, and still gets everything in the end.
TEST_F(EventLogTest, c24_SlowClientIsResynchronised) {
  EventLog log(*store_, 4);
  auto slow = log.Subscribe(0);
  EXPECT_TRUE(slow->Next(1, Deadline::After(milliseconds(0)))->empty());
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(log.Append(Make("a", i)).has_value());
  int64_t seen = 0;
  while (seen < 50) {
    const std::vector<Event> batch = *slow->Next(3, Deadline::Never());
    for (const Event& event : batch) EXPECT_EQ(event.seq, ++seen);
  }
  EXPECT_EQ(slow->resyncs(), 1);
  ASSERT_TRUE(log.Append(Make("a", 50)).has_value());
  EXPECT_EQ(slow->Next(3, Deadline::Never())->at(0).seq, 51);
}

TEST_F(EventLogTest, StopAndDeadlineEndTheWait) {
  EventLog log(*store_);
  auto subscription = log.Subscribe(0);
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_TRUE(subscription->Next(1, Deadline::Never(), stop.get_token())->empty());
  EXPECT_TRUE(subscription->Next(1, Deadline::After(milliseconds(1)))->empty());
}

TEST_F(EventLogTest, CloseDeliversTheRestAndEnds) {
  EventLog log(*store_);
  auto subscription = log.Subscribe(0);
  EXPECT_TRUE(subscription->Next(1, Deadline::After(milliseconds(0)))->empty());
  ASSERT_TRUE(log.Append(Make("a", 1)).has_value());
  log.Close();
  EXPECT_EQ(subscription->Next(1, Deadline::Never())->size(), 1U);
  EXPECT_TRUE(subscription->Next(1, Deadline::Never())->empty());
  EXPECT_TRUE(subscription->closed());
}

TEST_F(EventLogTest, EventsOfAnotherProcessAreNotLost) {
  EventLog log(*store_);
  std::unique_ptr<Store> other = *Store::Open(path_);
  auto subscription = log.Subscribe(0);
  EXPECT_TRUE(subscription->Next(1, Deadline::After(milliseconds(0)))->empty());
  ASSERT_EQ(*other->AppendEvent(Make("a", 1)), 1);
  ASSERT_EQ(*log.Append(Make("a", 2)), 2);
  const std::vector<Event> both = *subscription->Next(10, Deadline::Never());
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].seq, 1);
  ASSERT_EQ(*other->AppendEvent(Make("a", 3)), 3);
  ASSERT_TRUE(log.Poll());
  EXPECT_EQ(subscription->Next(10, Deadline::Never())->at(0).seq, 3);
  ASSERT_TRUE(log.Poll());
  EXPECT_TRUE(subscription->Next(10, Deadline::After(milliseconds(0)))->empty());
}

// Clients that join at any moment, with queues that overflow often, against several writers.
TEST_F(EventLogTest, NoGapAndNoDuplicateUnderLoad) {
  constexpr int kWriters = 3;
  constexpr int kEvents = 60;
  constexpr int kReaders = 5;
  EventLog log(*store_, 3);
  std::latch start(kWriters + kReaders);
  std::vector<std::jthread> readers;
  readers.reserve(kReaders);
  for (int r = 0; r < kReaders; ++r) {
    readers.emplace_back([&, r] {
      std::mt19937 random(static_cast<unsigned>(r));
      start.arrive_and_wait();
      const std::string run = r % 2 == 0 ? "" : "w1";
      int64_t last = 0;
      int count = 0;
      const int expected = run.empty() ? kWriters * kEvents : kEvents;
      auto subscription = log.Subscribe(0, run);
      while (count < expected) {
        const auto events = subscription->Next(1 + random() % 5, Deadline::After(seconds(60)));
        ASSERT_TRUE(events.has_value());
        ASSERT_FALSE(events->empty());
        for (const Event& event : *events) {
          ASSERT_GT(event.seq, last);
          if (run.empty()) {
            ASSERT_EQ(event.seq, last + 1);
          }
          last = event.seq;
          ++count;
        }
        // A client that loses its link comes back with the last number it saw.
        if (random() % 10 == 0) subscription = log.Subscribe(last, run);
      }
      EXPECT_EQ(count, expected);
    });
  }
  std::vector<std::jthread> writers;
  writers.reserve(kWriters);
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      start.arrive_and_wait();
      for (int i = 0; i < kEvents; ++i) ASSERT_TRUE(log.Append(Make("w" + std::to_string(w), i)).has_value());
    });
  }
}

}  // namespace
}  // namespace kernelwright::store
