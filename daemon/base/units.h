// Durations and byte sizes as people write and read them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/base/status.h"

namespace kernelwright {

// "340 ms", "1.2 s", "3 min 5 s", "2 h 10 min".
std::string FormatDuration(std::chrono::milliseconds duration);

// Binary units: "512 B", "1.5 KiB", "16 MiB".
std::string FormatBytes(uint64_t bytes);

// "90s", "10m", "1h30m", "1.5h", "250ms", "2d"; a bare number is seconds. Negative, empty and unknown units are kUsage.
Expected<std::chrono::milliseconds> ParseDuration(std::string_view text);

// "512", "64k", "16MiB", "2G", "1.5GB": k, M, G, T are powers of 1024 with or without "iB"; "kB", "MB"… are powers of
// 1000.
Expected<uint64_t> ParseBytes(std::string_view text);

}  // namespace kernelwright
