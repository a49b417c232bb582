// Base64 (RFC 4648, with padding), for bytes inside JSON.
#pragma once

#include <string>
#include <string_view>

#include "daemon/base/status.h"

namespace kernelwright {

std::string Base64Encode(std::string_view bytes);

// Strict: padding is required, anything outside the alphabet is an error.
Expected<std::string> Base64Decode(std::string_view text);

}  // namespace kernelwright
