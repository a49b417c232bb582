// Compression of blobs in the gzip format, with a limit on what a small input may blow up to.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "daemon/base/status.h"

namespace kernelwright {

// Level 1 (fast) to 9 (small).
Expected<std::string> GzipCompress(std::string_view bytes, int level = 6);

// The whole of one gzip stream. Damaged or cut input is kInternal, more than `max_bytes` of output is kLimit.
Expected<std::string> GzipDecompress(std::string_view bytes, size_t max_bytes = size_t{1} << 30);

}  // namespace kernelwright
