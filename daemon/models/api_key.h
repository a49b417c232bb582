// A provider's key in memory. Whoever holds one has told the redactor about it, so it cannot reach a log; it has no
// form of output, and its bytes are overwritten when it goes. Keys come from an environment or from a call's parameter,
// never from a file or an argument.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::models {

class ApiKey {
 public:
  ApiKey() = default;  // no key: for servers that want none
  // Blanks around it are dropped. kUsage for what cannot be a key: line ends or other control characters inside, or
  // bytes that are not ASCII.
  static Expected<ApiKey> Make(std::string_view text, const std::string& origin);
  ApiKey(ApiKey&& other) noexcept;
  ApiKey& operator=(ApiKey&& other) noexcept;
  ApiKey(const ApiKey& other);
  ApiKey& operator=(const ApiKey&) = delete;
  ~ApiKey();

  bool empty() const { return value_.empty(); }
  // For the one place that sends it.
  std::string_view value() const { return value_; }
  const std::string& origin() const { return origin_; }  // "ANTHROPIC_API_KEY", "the caller"

 private:
  std::string value_;
  std::string origin_;
};

// Looks up a variable: empty optional when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment ProcessEnvironment();

// The key in the first of these variables that is set and not blank; an empty key when none is.
Expected<ApiKey> KeyFromEnvironment(const std::vector<std::string>& names, const Environment& environment);

}  // namespace kernelwright::models
