// See check_desk.h.
#include "daemon/agents/check_desk.h"

#include <algorithm>
#include <utility>

namespace kernelwright::agents {
namespace {

constexpr std::chrono::milliseconds kLeastPause{80};
constexpr std::chrono::milliseconds kLongestPause{600};
constexpr int kPauseShare = 8;  // of the time that a check takes

}  // namespace

CheckDesk::Seat::~Seat() {
  if (!state_) return;  // moved from
  state_->forward.reset();
  const std::lock_guard lock(desk_->mutex_);
  desk_->entries_.erase(number_);
  desk_->free_.notify_all();
}

Expected<CheckDesk::Seat> CheckDesk::Begin(const std::string& document, std::stop_token stop) {
  auto state = std::make_unique<Seat::State>();
  uint64_t number = 0;
  std::vector<std::stop_source> superseded;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return Fail(ErrorKind::kCancelled, "the daemon is ending", "daemon", "Run the command again.");
    if (!document.empty()) {
      for (const auto& [other, entry] : entries_) {
        if (entry.document == document) superseded.push_back(entry.source);
      }
    }
    number = next_++;
    entries_[number] = {document, state->source};
  }
  for (std::stop_source& source : superseded) source.request_stop();
  state->forward.emplace(std::move(stop), Seat::Forward{&state->source});
  return Seat(this, number, std::move(state));
}

std::string CheckDesk::JaxVersion(const std::string& python) const {
  const std::lock_guard lock(mutex_);
  const auto found = jax_versions_.find(python);
  return found == jax_versions_.end() ? "" : found->second;
}

std::chrono::milliseconds CheckDesk::Debounce(const std::string& document) const {
  const std::lock_guard lock(mutex_);
  const auto found = took_.find(document);
  if (found == took_.end()) return kLeastPause;
  return std::clamp(found->second / kPauseShare, kLeastPause, kLongestPause);
}

void CheckDesk::Learn(const CheckRequest& request, const CheckResult& result) {
  const std::lock_guard lock(mutex_);
  if (const auto jax = result.versions.find("jax"); jax != result.versions.end()) {
    jax_versions_[request.python] = jax->second;
  }
  if (request.document.empty() || !result.failure.ok()) return;
  if (took_.size() >= kMaxDocuments) took_.clear();
  took_[request.document] = std::chrono::milliseconds(static_cast<int64_t>(result.milliseconds));
}

void CheckDesk::Close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  std::vector<std::stop_source> sources;
  sources.reserve(entries_.size());
  for (const auto& [number, entry] : entries_) sources.push_back(entry.source);
  lock.unlock();
  for (std::stop_source& source : sources) source.request_stop();
  lock.lock();
  free_.wait(lock, [this] { return entries_.empty(); });
}

}  // namespace kernelwright::agents
