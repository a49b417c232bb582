// See api_key.h.
#include "daemon/models/api_key.h"

#include <cstdlib>
#include <utility>

#include "daemon/base/redact.h"
#include "daemon/base/text.h"

namespace kernelwright::models {
namespace {

// Written through a volatile pointer, so that the compiler keeps it although nobody reads the bytes again.
void Wipe(std::string* text) {
  volatile char* bytes = text->data();
  for (size_t i = 0; i < text->size(); ++i) bytes[i] = '\0';
  text->clear();
}

}  // namespace

Expected<ApiKey> ApiKey::Make(std::string_view text, const std::string& origin) {
  const std::string_view trimmed = Trim(text);
  ProcessRedactor().AddSecret(trimmed);
  for (char c : trimmed) {
    if (c <= ' ' || c > '~') {
      return Fail(ErrorKind::kUsage, "this is no key: it holds blanks, control characters or letters outside ASCII",
                  origin, "Copy the key again.");
    }
  }
  ApiKey key;
  key.value_ = trimmed;
  key.origin_ = origin;
  return key;
}

ApiKey::ApiKey(const ApiKey& other) = default;

ApiKey::ApiKey(ApiKey&& other) noexcept : origin_(std::move(other.origin_)) {
  // Moving a short string copies its bytes: both must be wiped.
  value_ = std::string_view(other.value_);
  Wipe(&other.value_);
}

ApiKey& ApiKey::operator=(ApiKey&& other) noexcept {
  if (this != &other) {
    Wipe(&value_);
    value_ = other.value_;
    origin_ = std::move(other.origin_);
    Wipe(&other.value_);
  }
  return *this;
}

ApiKey::~ApiKey() { Wipe(&value_); }

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

Expected<ApiKey> KeyFromEnvironment(const std::vector<std::string>& names, const Environment& environment) {
  for (const std::string& name : names) {
    const std::optional<std::string> value = environment(name);
    if (value && !Trim(*value).empty()) return ApiKey::Make(*value, name);
  }
  return ApiKey();
}

}  // namespace kernelwright::models
