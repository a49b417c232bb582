// See call_error.h.
#include "daemon/models/call_error.h"

#include "daemon/base/redact.h"
#include "daemon/base/text.h"

namespace kernelwright::models {
namespace {

struct CauseFacts {
  std::string_view name;
  ErrorKind kind;
  bool retry;
  std::string_view remedy;  // unless the error brings its own
};

CauseFacts FactsOf(Cause cause) {
  switch (cause) {
    case Cause::kSetup:
      return {"setup", ErrorKind::kEnvironment, false, ""};
    case Cause::kAuth:
      return {"auth", ErrorKind::kEnvironment, false, "Check the key in the provider's environment variable."};
    case Cause::kForbidden:
      return {"forbidden", ErrorKind::kEnvironment, false,
              "Choose a model that this key may use: 'models list --ask'."};
    case Cause::kQuota:
      return {"quota", ErrorKind::kLimit, false,
              "Add credit or raise the quota at the provider, or choose another one."};
    case Cause::kRateLimit:
      return {"rate_limit", ErrorKind::kLimit, true, "Try again later."};
    case Cause::kOverloaded:
      return {"overloaded", ErrorKind::kLimit, true, "Try again later."};
    case Cause::kServer:
      return {"server", ErrorKind::kEnvironment, true, "Try again later."};
    case Cause::kBadRequest:
      return {"bad_request", ErrorKind::kEnvironment, false, "Another model of this provider may accept it."};
    case Cause::kTooLong:
      return {"too_long", ErrorKind::kLimit, false, "Use a model with a longer context, or a smaller context budget."};
    case Cause::kNoModel:
      return {"no_model", ErrorKind::kEnvironment, false, "'models list --ask' shows the models that the server has."};
    case Cause::kRefused:
      return {"refused", ErrorKind::kLimit, false, "Word the request differently, or choose another model."};
    case Cause::kTruncated:
      return {"truncated", ErrorKind::kLimit, false, "Allow more output tokens, or ask for less at once."};
    case Cause::kEmpty:
      return {"empty", ErrorKind::kEnvironment, true, "Try again, or choose another model."};
    case Cause::kMalformed:
      return {"malformed", ErrorKind::kEnvironment, true, "Try again, or choose another model."};
    case Cause::kProtocol:
      return {"protocol", ErrorKind::kEnvironment, false, "Check the base URL and the kind of the provider."};
    case Cause::kCut:
      return {"cut", ErrorKind::kEnvironment, true, "Try again; look at the network or the proxy if it stays."};
    case Cause::kNetwork:
      return {"network", ErrorKind::kEnvironment, true, "Check the network, the base URL and the proxy."};
    case Cause::kTls:
      return {"tls", ErrorKind::kEnvironment, false,
              "If a proxy opens TLS here, name its certificate in SSL_CERT_FILE."};
    case Cause::kProxy:
      return {"proxy", ErrorKind::kEnvironment, false, "Check HTTPS_PROXY and NO_PROXY."};
    case Cause::kSilent:
      return {"silent", ErrorKind::kLimit, true, "Try again later."};
    case Cause::kTimeout:
      return {"timeout", ErrorKind::kLimit, false, "Raise --timeout, or ask for less at once."};
    case Cause::kCancelled:
      return {"cancelled", ErrorKind::kCancelled, false, ""};
    case Cause::kBudget:
      return {"budget", ErrorKind::kLimit, false, "Raise the budget to go on."};
  }
  return {"protocol", ErrorKind::kInternal, false, ""};
}

}  // namespace

std::string_view CauseName(Cause cause) { return FactsOf(cause).name; }

CallError MakeError(Cause cause, const std::string& message, std::string where, std::string remedy) {
  const CauseFacts facts = FactsOf(cause);
  if (remedy.empty()) remedy = facts.remedy;
  CallError error;
  error.cause = cause;
  // Servers quote what they were sent; the text goes to logs and events.
  error.status = Status(facts.kind, ProcessRedactor().Redact(Truncate(SanitizeUtf8(message), 2000)), std::move(where),
                        std::move(remedy));
  return error;
}

bool MayRetry(const CallError& error) {
  if (error.cause == Cause::kQuota || error.cause == Cause::kAuth) return false;
  if (error.server_says_retry && error.http_status >= 400) return *error.server_says_retry;
  return FactsOf(error.cause).retry;
}

}  // namespace kernelwright::models
