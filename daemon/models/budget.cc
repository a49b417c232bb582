// See budget.h.
#include "daemon/models/budget.h"

#include <algorithm>

#include "fmt/core.h"

namespace kernelwright::models {
namespace {

std::string Dollars(double usd) { return fmt::format("${:.4f}", usd); }

}  // namespace

Json ToJson(const Spent& spent) {
  return {{"usd", spent.unknown_cost_calls == 0 ? Json(spent.known_usd) : Json()},
          {"known_usd", spent.known_usd},
          {"unknown_cost_calls", spent.unknown_cost_calls},
          {"tokens", spent.tokens},
          {"assumed_tokens", spent.assumed_tokens},
          {"calls", spent.calls}};
}

CallResult<Budget::Reservation> Budget::Reserve(const ModelFacts& facts, int64_t input_tokens, int64_t output_tokens,
                                                int64_t least_output_tokens) {
  const std::string where = facts.provider + ":" + facts.id;
  const std::lock_guard lock(mutex_);
  if (limits_.calls && spent_.calls >= *limits_.calls) {
    return tl::unexpected(
        MakeError(Cause::kBudget, fmt::format("all {} calls of the budget are used", *limits_.calls), where));
  }
  int64_t granted = output_tokens;
  if (limits_.tokens) {
    const int64_t left = *limits_.tokens - spent_.tokens - reserved_tokens_;
    granted = std::min(granted, left - input_tokens);
    if (granted < least_output_tokens) {
      return tl::unexpected(MakeError(Cause::kBudget,
                                      fmt::format("{} tokens of the budget are left, and the next call could take {}",
                                                  std::max<int64_t>(0, left), input_tokens + least_output_tokens),
                                      where));
    }
  }
  Reservation reservation{.output_tokens = granted, .input_tokens = input_tokens};
  if (limits_.usd) {
    const std::optional<double> least = facts.MostCost(input_tokens, least_output_tokens);
    if (!least) {
      return tl::unexpected(MakeError(
          Cause::kBudget, "the price of this model is not known, so a budget in dollars cannot be kept", where,
          "Give a budget in tokens instead, or write the price into your models.json (docs/models.md)."));
    }
    const double left = *limits_.usd - spent_.known_usd - reserved_usd_;
    if (*least > left) {
      return tl::unexpected(MakeError(Cause::kBudget,
                                      fmt::format("{} of the budget are left, and the next call could cost {}",
                                                  Dollars(std::max(0.0, left)), Dollars(*least)),
                                      where));
    }
    // The cost grows in a straight line with the output.
    const double most = facts.MostCost(input_tokens, granted).value_or(0);
    if (most > left && granted > least_output_tokens) {
      const double share = (left - *least) / (most - *least);
      granted = least_output_tokens + static_cast<int64_t>(static_cast<double>(granted - least_output_tokens) * share);
      reservation.output_tokens = granted;
    }
    reservation.usd = facts.MostCost(input_tokens, granted).value_or(0);
    reservation.counts_usd = true;
  }
  reserved_usd_ += reservation.usd;
  reserved_tokens_ += input_tokens + granted;
  ++spent_.calls;
  return reservation;
}

std::optional<double> Budget::Settle(const Reservation& reservation, const ModelFacts& facts, const Usage& usage,
                                     bool sent) {
  const std::lock_guard lock(mutex_);
  reserved_usd_ = std::max(0.0, reserved_usd_ - reservation.usd);
  reserved_tokens_ -= reservation.input_tokens + reservation.output_tokens;
  if (usage.known) {
    spent_.tokens += usage.input_tokens + usage.output_tokens;
  } else if (sent) {
    spent_.tokens += reservation.input_tokens + reservation.output_tokens;
    spent_.assumed_tokens += reservation.input_tokens + reservation.output_tokens;
  } else {
    return 0.0;  // nothing reached the server
  }
  const std::optional<double> cost = facts.Cost(usage);
  if (cost) {
    spent_.known_usd += *cost;
    return cost;
  }
  ++spent_.unknown_cost_calls;
  // The limit must hold all the same, so the most that it can have cost is taken.
  if (reservation.counts_usd) spent_.known_usd += reservation.usd;
  return std::nullopt;
}

Spent Budget::spent() const {
  const std::lock_guard lock(mutex_);
  return spent_;
}

}  // namespace kernelwright::models
