// One line of JSON between a daemon and its starter; see startup_report.h.
#include "daemon/service/startup_report.h"

#include <unistd.h>

#include <cerrno>

#include "daemon/service/wire_status.h"
#include "nlohmann/json.hpp"

namespace kernelwright::service {
namespace {

constexpr const char* kNames[] = {"ready", "held", "failed"};

}  // namespace

std::string StartupReportToJson(const StartupReport& report) {
  nlohmann::json json{{"status", kNames[static_cast<int>(report.kind)]}};
  if (report.kind == StartupReport::Kind::kHeld) json["pid"] = report.held_by;
  if (!report.error.ok()) {
    json["error"] = {{"kind", ErrorKindName(report.error.kind())},
                     {"message", report.error.message()},
                     {"where", report.error.where()},
                     {"remedy", report.error.remedy()}};
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Expected<StartupReport> ParseStartupReport(const std::string& text) {
  StartupReport report;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    const std::string status = json.at("status").get<std::string>();
    if (status == "held") {
      report.kind = StartupReport::Kind::kHeld;
      report.held_by = json.at("pid").get<pid_t>();
    } else if (status == "failed") {
      report.kind = StartupReport::Kind::kFailed;
    } else if (status != "ready") {
      return Fail(ErrorKind::kInternal, "unknown start-up report: " + status);
    }
    if (json.contains("error")) {
      const nlohmann::json& error = json.at("error");
      report.error =
          Status(ErrorKindFromName(error.at("kind").get<std::string>()), error.at("message").get<std::string>(),
                 error.at("where").get<std::string>(), error.at("remedy").get<std::string>());
    }
  } catch (const nlohmann::json::exception& error) {
    return Fail(ErrorKind::kInternal, std::string("the daemon's start-up report cannot be read: ") + error.what());
  }
  return report;
}

void SendStartupReport(int fd, const StartupReport& report) {
  if (fd < 0) return;
  const std::string line = StartupReportToJson(report);
  size_t at = 0;
  while (at < line.size()) {
    const ssize_t wrote = ::write(fd, line.data() + at, line.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;  // the starter is gone; the daemon serves whoever comes next
    at += static_cast<size_t>(wrote);
  }
  ::close(fd);
}

}  // namespace kernelwright::service
