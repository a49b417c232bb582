// What a run may spend on models. A call reserves the most that it can cost before it is made and is refused when that
// could exceed a limit; afterwards what it really cost takes the place of the reservation. So no limit is ever
// exceeded, whatever the number of calls at once. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "daemon/base/json.h"
#include "daemon/models/call_error.h"
#include "daemon/models/catalogue.h"

namespace kernelwright::models {

struct BudgetLimits {
  std::optional<double> usd = std::nullopt;
  std::optional<int64_t> tokens = std::nullopt;  // input and output together, cached ones included
  std::optional<int64_t> calls = std::nullopt;   // attempts: a call that is asked again counts again
};

struct Spent {
  double known_usd = 0;
  int64_t unknown_cost_calls = 0;  // attempts whose cost nobody knows: then known_usd is not all
  int64_t tokens = 0;
  int64_t assumed_tokens = 0;  // of these, what the server did not count and we took at the most
  int64_t calls = 0;
};
// {"usd": null when some cost is unknown, "known_usd", "unknown_cost_calls", "tokens", "assumed_tokens", "calls"}
Json ToJson(const Spent& spent);

class Budget {
 public:
  explicit Budget(BudgetLimits limits = {}) : limits_(limits) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  struct Reservation {
    int64_t output_tokens = 0;  // granted
    int64_t input_tokens = 0;   // at most
    double usd = 0;
    bool counts_usd = false;
  };

  // Room for one attempt with at most `input_tokens`, and with `output_tokens` or what the budget has left of them, but
  // no less than `least_output_tokens`. kBudget otherwise, also when there is a limit in dollars and the model's price
  // is unknown.
  CallResult<Reservation> Reserve(const ModelFacts& facts, int64_t input_tokens, int64_t output_tokens,
                                  int64_t least_output_tokens);
  // Replaces a reservation by what the attempt used. Usage that the server did not say counts as the whole reservation
  // if `sent`, else as nothing. Returns the cost when it is known.
  std::optional<double> Settle(const Reservation& reservation, const ModelFacts& facts, const Usage& usage, bool sent);

  Spent spent() const;
  const BudgetLimits& limits() const { return limits_; }

 private:
  const BudgetLimits limits_;
  mutable std::mutex mutex_;
  Spent spent_;
  double reserved_usd_ = 0;
  int64_t reserved_tokens_ = 0;
};

}  // namespace kernelwright::models
