// Who is checking what: a newer check of a document ends the older one, the daemon's end ends all, and what earlier
// checks showed (the version of jax, how long a document takes) helps the next one. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "daemon/agents/check.h"
#include "daemon/base/status.h"

namespace kernelwright::agents {

class CheckDesk {
 public:
  // A check in progress. Its stop is requested when the caller's is, when it is superseded, and at Close.
  class Seat {
   public:
    Seat(Seat&&) noexcept = default;
    Seat& operator=(Seat&&) = delete;
    ~Seat();
    std::stop_token stop() const { return state_->source.get_token(); }

   private:
    friend class CheckDesk;
    struct Forward {
      std::stop_source* source;
      void operator()() const { source->request_stop(); }
    };
    struct State {
      std::stop_source source;
      std::optional<std::stop_callback<Forward>> forward;
    };
    Seat(CheckDesk* desk, uint64_t number, std::unique_ptr<State> state)
        : desk_(desk), number_(number), state_(std::move(state)) {}
    CheckDesk* desk_;
    uint64_t number_;
    std::unique_ptr<State> state_;
  };

  // Ends an older check of the same document (not of an empty one). kCancelled after Close.
  Expected<Seat> Begin(const std::string& document, std::stop_token stop);

  // Of the last worker for this interpreter; empty when none was seen.
  std::string JaxVersion(const std::string& python) const;
  // How long to wait for the user to pause: a share of what the last check of the document took, within limits.
  std::chrono::milliseconds Debounce(const std::string& document) const;
  void Learn(const CheckRequest& request, const CheckResult& result);

  // Ends all checks and waits until their seats are free.
  void Close();

 private:
  struct Entry {
    std::string document;
    std::stop_source source;
  };
  static constexpr size_t kMaxDocuments = 256;  // whose duration is remembered

  mutable std::mutex mutex_;
  std::condition_variable free_;
  bool closed_ = false;
  uint64_t next_ = 0;
  std::map<uint64_t, Entry> entries_;
  std::map<std::string, std::string> jax_versions_;        // by interpreter as asked for
  std::map<std::string, std::chrono::milliseconds> took_;  // by document
};

}  // namespace kernelwright::agents
