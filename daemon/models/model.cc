// See model.h.
#include "daemon/models/model.h"

namespace kernelwright::models {

Json ToJson(const CallRecord& record) {
  Json attempts = Json::array();
  for (const Attempt& attempt : record.attempts) {
    attempts.push_back({{"outcome", attempt.outcome},
                        {"http_status", attempt.http_status == 0 ? Json() : Json(attempt.http_status)},
                        {"milliseconds", attempt.milliseconds},
                        {"waited_ms", attempt.waited_ms}});
  }
  return {{"provider", record.provider},
          {"model", record.model},
          {"answered", record.answered.empty() ? Json() : Json(record.answered)},
          {"http_version", record.http_version.empty() ? Json() : Json(record.http_version)},
          {"attempts", std::move(attempts)},
          {"usage", ToJson(record.usage)},
          {"usd", record.usd ? Json(*record.usd) : Json()},
          {"price_source", record.price_source.empty() ? Json() : Json(record.price_source)},
          {"milliseconds", record.milliseconds},
          {"first_piece_ms", record.first_piece_ms == 0 ? Json() : Json(record.first_piece_ms)},
          {"request_sha256", record.request_sha256}};
}

}  // namespace kernelwright::models
