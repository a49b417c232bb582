// The event log that clients see. An event is on disk, numbered, before anyone is told (LogBeforeShow). A client names
// the last number it has and gets everything after it, first from the store, then live, without gap or duplicate.
// Nobody waits for a slow client: its queue is dropped and it reads on from the store.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/base/deadline.h"
#include "daemon/store/store.h"

namespace kernelwright::store {

class EventLog;

// One client's place in the log. Used by one thread at a time; it must not outlive the EventLog.
class Subscription {
 public:
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;
  ~Subscription();

  // The next events in order, at least one, at most `max`. Empty when the deadline passed, a stop was asked for, or the
  // log was closed and everything has been delivered.
  Expected<std::vector<Event>> Next(size_t max, const Deadline& deadline, const std::stop_token& stop = {});

  // Number of the last event that Next returned; what a client gives as `since` when it comes back.
  int64_t last_seq() const { return last_seq_; }
  // How often the queue overflowed and the store had to be read instead.
  int64_t resyncs() const;
  bool closed() const;

 private:
  friend class EventLog;
  Subscription(EventLog& log, int64_t since, std::string run) : log_(log), run_(std::move(run)), last_seq_(since) {}

  EventLog& log_;
  const std::string run_;
  int64_t last_seq_;
  // Guarded by log_.mutex_.
  std::deque<Event> queue_;
  bool behind_ = true;  // the queue is not complete: read the store
  int64_t resyncs_ = 0;
};

class EventLog {
 public:
  // `queue_limit`: events kept in memory per client.
  explicit EventLog(Store& store, size_t queue_limit = 1024)
      : store_(store), queue_limit_(queue_limit), published_(store.LastSeq().value_or(0)) {}
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  ~EventLog() { Close(); }

  // Stores the event, then shows it. Returns its number.
  Expected<int64_t> Append(Event event);

  // Runs `work` in one transaction of the store, then shows the events that it appended: so an evaluation and the event
  // that reports it are on disk together before any client sees either.
  Expected<std::vector<Event>> Commit(const std::function<Status(Writer&)>& work);

  // Events above `since`; of one run if it is named.
  std::unique_ptr<Subscription> Subscribe(int64_t since, std::string run = {});

  // Looks whether another process has written events and lets clients read them. Cheap; call it now and then.
  Status Poll();

  // Wakes all clients; what they have not read yet is still delivered.
  void Close();

 private:
  friend class Subscription;
  void Publish(const std::vector<Event>& events);

  Store& store_;
  const size_t queue_limit_;
  std::mutex commit_mutex_;  // over commit and publication: events are shown in the order of their numbers
  std::mutex mutex_;         // over everything below and the queues; never held during a read or write of the store
  std::condition_variable_any changed_;
  std::vector<Subscription*> subscriptions_;
  int64_t published_;  // highest number shown, or in the store when this object was made
  bool closed_ = false;
};

}  // namespace kernelwright::store
