// spdlog behind a formatter that redacts; see log.h. The redaction sits in the formatter because every sink calls it
// with the finished line: no path around it exists.
#include "daemon/base/log.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <memory>
#include <mutex>
#include <vector>

#include "daemon/base/errno_status.h"
#include "daemon/base/redact.h"
#include "daemon/base/unique_fd.h"
#include "spdlog/logger.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/rotating_file_sink.h"
#include "spdlog/sinks/stdout_sinks.h"

namespace kernelwright {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"trace", "debug", "info", "warning", "error", "off"};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

class RedactingFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    spdlog::memory_buf_t line;
    pattern_.format(message, line);
    const std::string clean = ProcessRedactor().Redact({line.data(), line.size()});
    out.append(clean.data(), clean.data() + clean.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<RedactingFormatter>(); }

 private:
  // UTC time, level, process, thread, text.
  spdlog::pattern_formatter pattern_{"%Y-%m-%dT%H:%M:%S.%eZ %L %P/%t %v", spdlog::pattern_time_type::utc};
};

std::shared_ptr<spdlog::logger> MakeLogger(std::vector<spdlog::sink_ptr> sinks, LogLevel level) {
  auto logger = std::make_shared<spdlog::logger>("kernelwright", sinks.begin(), sinks.end());
  logger->set_formatter(std::make_unique<RedactingFormatter>());
  logger->set_level(ToSpdlog(level));
  logger->flush_on(spdlog::level::info);
  // A full disk must not end the program nor fill standard error; the line is lost.
  logger->set_error_handler([](const std::string&) {});
  return logger;
}

struct LogState {
  std::mutex mutex;
  std::shared_ptr<spdlog::logger> logger =
      MakeLogger({std::make_shared<spdlog::sinks::stderr_sink_mt>()}, LogLevel::kWarning);
};

LogState& State() {
  static LogState& state = *new LogState();  // never destroyed: threads may log while the process ends
  return state;
}

std::shared_ptr<spdlog::logger> Logger() {
  LogState& state = State();
  std::lock_guard lock(state.mutex);
  return state.logger;
}

}  // namespace

Expected<LogLevel> ParseLogLevel(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<LogLevel>(i);
  }
  return Fail(ErrorKind::kUsage, "unknown log level `" + std::string(name) + "`", {},
              "Use trace, debug, info, warning, error or off.");
}

Status InitLogging(const LogOptions& options) {
  std::vector<spdlog::sink_ptr> sinks;
  if (options.to_stderr) sinks.push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  if (!options.file.empty()) {
    // Made here first: the library would use the umask's mode, and throws where we want a clear message.
    UniqueFd fd(::open(options.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!fd.valid()) return StatusFromErrno(errno, "cannot open the log file", options.file.string());
    ::fchmod(fd.get(), 0600);
    try {
      sinks.push_back(std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
          options.file.string(), options.max_file_bytes, options.max_files));
    } catch (const std::exception& error) {
      return Status(ErrorKind::kEnvironment, std::string("cannot open the log file: ") + error.what(),
                    options.file.string(), "Check the folder's permissions.");
    }
  }
  auto logger = MakeLogger(std::move(sinks), options.level);
  LogState& state = State();
  std::lock_guard lock(state.mutex);
  state.logger = std::move(logger);
  return {};
}

void SetLogLevel(LogLevel level) { Logger()->set_level(ToSpdlog(level)); }

bool LogEnabled(LogLevel level) { return level != LogLevel::kOff && Logger()->should_log(ToSpdlog(level)); }

void FlushLog() { Logger()->flush(); }

void LogLine(LogLevel level, std::string_view text) {
  Logger()->log(ToSpdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace kernelwright
