// Content hashes and random tokens. SHA-256 names cache entries, frozen references and candidates; it comes from
// OpenSSL, which the transport links anyway.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "daemon/base/status.h"

namespace kernelwright {

// SHA-256 of the bytes as 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);

// SHA-256 of bytes that come in parts. Field() mixes in a length first, so that ("ab", "c") and ("a", "bc") differ:
// use it to hash a record of several values.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  Sha256& Update(std::string_view bytes);
  Sha256& Field(std::string_view value);
  // Ends the hash; the object must not be used after it.
  std::string Hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// 256 random bits from the kernel as 64 hexadecimal digits; for the daemon's token and cookie.
Expected<std::string> RandomToken();

// `count` random bytes from the kernel.
Expected<std::string> RandomBytes(size_t count);

// Compares in time that depends on the lengths only; for tokens.
bool EqualInConstantTime(std::string_view a, std::string_view b);

std::string HexEncode(std::string_view bytes);

}  // namespace kernelwright
