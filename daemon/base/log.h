// Logging: to standard error and/or a rotating file, never to standard output, which belongs to results and protocols.
// Each line is formatted first and redacted as a whole, so that a secret split over several arguments is caught too.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <utility>

#include "daemon/base/status.h"
#include "fmt/core.h"

namespace kernelwright {

enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError, kOff };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  bool to_stderr = true;
  std::filesystem::path file;  // empty: no file. Its folder must exist; the file is made with mode 0600.
  size_t max_file_bytes = size_t{8} << 20;
  size_t max_files = 3;  // besides the current one
};

// "trace", "debug", "info", "warning", "error", "off".
Expected<LogLevel> ParseLogLevel(std::string_view name);

// Replaces the current set-up. Before the first call, warnings and errors go to standard error.
Status InitLogging(const LogOptions& options);
void SetLogLevel(LogLevel level);
bool LogEnabled(LogLevel level);
// Writes out what is buffered.
void FlushLog();

// One line at the given level. Thread-safe, never fails: a log that cannot be written must not stop the work.
void LogLine(LogLevel level, std::string_view text);

template <typename... Args>
void Log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (LogEnabled(level)) LogLine(level, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogDebug(fmt::format_string<Args...> format, Args&&... args) {
  Log(LogLevel::kDebug, format, std::forward<Args>(args)...);
}
template <typename... Args>
void LogInfo(fmt::format_string<Args...> format, Args&&... args) {
  Log(LogLevel::kInfo, format, std::forward<Args>(args)...);
}
template <typename... Args>
void LogWarning(fmt::format_string<Args...> format, Args&&... args) {
  Log(LogLevel::kWarning, format, std::forward<Args>(args)...);
}
template <typename... Args>
void LogError(fmt::format_string<Args...> format, Args&&... args) {
  Log(LogLevel::kError, format, std::forward<Args>(args)...);
}

}  // namespace kernelwright
