// The machine's clock and UTC text; see clock.h.
#include "daemon/base/clock.h"

#include <ctime>

#include "fmt/format.h"

namespace kernelwright {
namespace {

class RealClock : public Clock {
 public:
  int64_t NowMs() const override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  std::chrono::steady_clock::time_point Monotonic() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace

const Clock& SystemClock() {
  static const RealClock clock;
  return clock;
}

std::string FormatTimeUtc(int64_t ms_since_epoch) {
  int64_t seconds = ms_since_epoch / 1000;
  int64_t ms = ms_since_epoch % 1000;
  if (ms < 0) {
    ms += 1000;
    --seconds;
  }
  const auto time = static_cast<time_t>(seconds);
  struct tm parts{};
  ::gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, ms);
}

}  // namespace kernelwright
