// Takes keys out of text before it is logged: values that were registered as secret, and everything that has the shape
// of one (provider keys, bearer tokens, "api_key=…"). One instance serves the whole process.
#pragma once

#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

namespace kernelwright {

class Redactor {
 public:
  // Hides this value from now on, also in its JSON-escaped, percent-encoded and base64 forms. Values under 6 characters
  // are ignored: hiding them would make every text unreadable and they protect nothing.
  void AddSecret(std::string_view value);
  void RemoveSecret(std::string_view value);

  // The text with every secret and every key-shaped token replaced by "[redacted]".
  std::string Redact(std::string_view text) const;
  // Only the registered values; for text that must otherwise stay as it is, such as a user's source.
  std::string RedactRegistered(std::string_view text) const;

 private:
  struct Secret {
    std::string value;
    std::vector<std::string> forms;
  };
  mutable std::shared_mutex mutex_;
  std::vector<Secret> secrets_;
};

// The one that logging and the store use.
Redactor& ProcessRedactor();

}  // namespace kernelwright
