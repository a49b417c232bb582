// Why a model gave no usable answer. The cause decides what happens next: whether asking again can help, and what the
// person is told to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/base/status.h"
#include "daemon/models/message.h"
#include "tl/expected.hpp"

namespace kernelwright::models {

enum class Cause {
  kSetup,       // no such model or provider, no key, a wrong URL
  kAuth,        // the server does not accept the key
  kForbidden,   // the key may not use this model
  kQuota,       // money or quota of the account is used up: waiting does not help
  kRateLimit,   // too many requests for now
  kOverloaded,  // the server has no capacity for now
  kServer,      // a fault of the server
  kBadRequest,  // the server does not understand the request: our fault, or a feature that it lacks
  kTooLong,     // the prompt does not fit the model's context
  kNoModel,     // the server has no such model
  kRefused,     // the model or a filter refused
  kTruncated,   // the answer was cut at the limit of output tokens
  kEmpty,       // an answer without text and without a call
  kMalformed,   // the model wrote something that is no answer
  kProtocol,    // what came is not what this kind of server sends
  kCut,         // the connection ended in the middle of an answer
  kNetwork,     // no connection
  kTls,         // the server could not prove who it is
  kProxy,       // the proxy refused
  kSilent,      // nothing came for too long
  kTimeout,     // the time for the whole call is used up
  kCancelled,
  kBudget,  // the next call could exceed the budget
};
std::string_view CauseName(Cause cause);  // "setup", "auth", "rate_limit", …

struct CallError {
  Cause cause = Cause::kProtocol;
  Status status;                          // for people; holds no key
  int http_status = 0;                    // 0: none was received
  std::optional<bool> server_says_retry;  // header of some servers
  std::optional<int64_t> retry_after_ms;  // what the server asked to wait
  int64_t continue_at_ms = 0;             // when it is worth asking again, ms since 1970; 0: not known
  Usage usage;                            // of an answer that was cut or refused, as far as the server said
  Message partial;                        // what was received of it
};

template <typename T>
using CallResult = tl::expected<T, CallError>;

// An error with the kind that fits the cause. `where` names provider and model.
CallError MakeError(Cause cause, const std::string& message, std::string where, std::string remedy = {});

// Whether asking the same again can succeed.
bool MayRetry(const CallError& error);

}  // namespace kernelwright::models
