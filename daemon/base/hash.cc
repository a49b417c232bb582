// SHA-256 over OpenSSL's EVP interface, random bytes over getrandom(2); see hash.h.
#include "daemon/base/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "daemon/base/errno_status.h"

namespace kernelwright {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  // Fails only without memory, or when OpenSSL was built without SHA-256: then no result of ours could be trusted.
  if (state_->context == nullptr || EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) != 1) std::abort();
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256& Sha256::Update(std::string_view bytes) {
  if (EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) != 1) std::abort();
  return *this;
}

Sha256& Sha256::Field(std::string_view value) {
  std::array<char, 8> length{};
  uint64_t size = value.size();
  for (char& byte : length) {
    byte = static_cast<char>(size & 0xff);
    size >>= 8;
  }
  return Update({length.data(), length.size()}).Update(value);
}

std::string Sha256::Hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(state_->context, digest.data(), &size) != 1) std::abort();
  return HexEncode({reinterpret_cast<const char*>(digest.data()), size});
}

std::string Sha256Hex(std::string_view bytes) { return Sha256().Update(bytes).Hex(); }

std::string HexEncode(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Expected<std::string> RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  size_t done = 0;
  while (done < count) {
    const ssize_t got = ::getrandom(bytes.data() + done, count - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(StatusFromErrno(errno, "the kernel gave no random bytes"));
    done += static_cast<size_t>(got);
  }
  return bytes;
}

Expected<std::string> RandomToken() {
  return RandomBytes(32).map([](const std::string& bytes) { return HexEncode(bytes); });
}

bool EqualInConstantTime(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace kernelwright
