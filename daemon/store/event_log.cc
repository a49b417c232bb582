// See event_log.h. Why there is no gap: a subscription is registered first and marked behind, so that it reads the
// store before its queue. An event is committed before it is queued; so whatever the store did not yet have at that
// read comes into the queue after it, and what is in both is dropped by its number.
#include "daemon/store/event_log.h"

#include <algorithm>

namespace kernelwright::store {

Subscription::~Subscription() {
  std::lock_guard lock(log_.mutex_);
  std::erase(log_.subscriptions_, this);
}

int64_t Subscription::resyncs() const {
  std::lock_guard lock(log_.mutex_);
  return resyncs_;
}

bool Subscription::closed() const {
  std::lock_guard lock(log_.mutex_);
  return log_.closed_ && !behind_ && queue_.empty();
}

Expected<std::vector<Event>> Subscription::Next(size_t max, const Deadline& deadline, const std::stop_token& stop) {
  max = std::max<size_t>(max, 1);
  std::vector<Event> events;
  while (true) {
    {
      std::unique_lock lock(log_.mutex_);
      const auto ready = [&] { return behind_ || !queue_.empty() || log_.closed_; };
      if (deadline.never()) {
        log_.changed_.wait(lock, stop, ready);
      } else {
        log_.changed_.wait_until(lock, stop, deadline.time(), ready);
      }
      if (stop.stop_requested() || !ready()) return events;
      if (!behind_) {
        while (!queue_.empty() && events.size() < max) {
          if (queue_.front().seq > last_seq_) events.push_back(std::move(queue_.front()));
          queue_.pop_front();
        }
        if (!events.empty()) last_seq_ = events.back().seq;
        if (!events.empty() || log_.closed_) return events;
        continue;
      }
      // Cleared before the read: what is committed during the read may come twice, but never not at all.
      behind_ = false;
      queue_.clear();
    }
    Expected<std::vector<Event>> stored = log_.store_.ReadEvents(last_seq_, run_, max);
    if (!stored || stored->size() == max) {
      std::lock_guard lock(log_.mutex_);
      behind_ = true;
    }
    if (!stored) return stored;
    if (!stored->empty()) {
      last_seq_ = stored->back().seq;
      return stored;
    }
  }
}

Expected<int64_t> EventLog::Append(Event event) {
  Expected<std::vector<Event>> events = Commit([&](Writer& writer) { return writer.AppendEvent(event); });
  if (!events) return Fail(events.error());
  return event.seq;
}

Expected<std::vector<Event>> EventLog::Commit(const std::function<Status(Writer&)>& work) {
  std::lock_guard commit_lock(commit_mutex_);
  Expected<std::vector<Event>> events = store_.Transact(work);
  if (events) Publish(*events);
  return events;
}

void EventLog::Publish(const std::vector<Event>& events) {
  if (events.empty()) return;
  std::lock_guard lock(mutex_);
  // A jump in the numbers: another process wrote in between, and only the store has those events.
  const bool jumped = events.front().seq != published_ + 1;
  for (Subscription* subscription : subscriptions_) {
    if (jumped) subscription->behind_ = true;
    for (const Event& event : events) {
      if (subscription->behind_) break;
      if (!subscription->run_.empty() && subscription->run_ != event.run) continue;
      if (subscription->queue_.size() >= queue_limit_) {
        subscription->behind_ = true;
        ++subscription->resyncs_;
        break;
      }
      subscription->queue_.push_back(event);
    }
    if (subscription->behind_) subscription->queue_.clear();
  }
  published_ = events.back().seq;
  changed_.notify_all();
}

std::unique_ptr<Subscription> EventLog::Subscribe(int64_t since, std::string run) {
  std::unique_ptr<Subscription> subscription(new Subscription(*this, since, std::move(run)));
  std::lock_guard lock(mutex_);
  subscriptions_.push_back(subscription.get());
  return subscription;
}

Status EventLog::Poll() {
  std::lock_guard commit_lock(commit_mutex_);
  Expected<int64_t> last = store_.LastSeq();
  if (!last) return last.error();
  std::lock_guard lock(mutex_);
  if (*last <= published_) return {};
  for (Subscription* subscription : subscriptions_) {
    subscription->behind_ = true;
    subscription->queue_.clear();
  }
  published_ = *last;
  changed_.notify_all();
  return {};
}

void EventLog::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace kernelwright::store
