// Reading and writing of the discovery file; see discovery.h.
#include "daemon/service/discovery.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "daemon/base/errno_status.h"
#include "daemon/base/files.h"
#include "nlohmann/json.hpp"

namespace kernelwright::service {
namespace {

constexpr size_t kMaxBytes = 64 << 10;

bool IsSecret(std::string_view text) {
  return text.size() == 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

std::string DiscoveryToJson(const Discovery& discovery) {
  return nlohmann::json{{"schema_version", 1},
                        {"socket", discovery.socket},
                        {"token", discovery.token},
                        {"cookie", discovery.cookie},
                        {"pid", discovery.pid},
                        {"start_unix_ms", discovery.start_ms},
                        {"version", discovery.build.version},
                        {"build", discovery.build.build},
                        {"commit", discovery.build.commit},
                        {"protocol", {{"min", discovery.protocol.min}, {"max", discovery.protocol.max}}},
                        {"capabilities", {"runs", "events"}}}
             .dump(2) +
         "\n";
}

Expected<Discovery> ParseDiscovery(const std::string& text) {
  Discovery result;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    // Later schemas may add fields; they may not change these.
    if (json.at("schema_version").get<int>() < 1) return Fail(ErrorKind::kInternal, "unknown schema");
    result.socket = json.at("socket").get<std::string>();
    result.token = json.at("token").get<std::string>();
    result.cookie = json.at("cookie").get<std::string>();
    result.pid = json.at("pid").get<int64_t>();
    result.start_ms = json.at("start_unix_ms").get<int64_t>();
    result.build.version = json.at("version").get<std::string>();
    result.build.build = json.at("build").get<int64_t>();
    result.build.commit = json.at("commit").get<std::string>();
    result.protocol.min = json.at("protocol").at("min").get<uint32_t>();
    result.protocol.max = json.at("protocol").at("max").get<uint32_t>();
  } catch (const nlohmann::json::exception& error) {
    return Fail(ErrorKind::kInternal, std::string("the discovery file cannot be read: ") + error.what());
  }
  if (!result.socket.starts_with('/') || !IsSecret(result.token) || !IsSecret(result.cookie) || result.pid <= 0 ||
      result.protocol.min == 0 || result.protocol.min > result.protocol.max) {
    return Fail(ErrorKind::kInternal, "the discovery file has values out of range");
  }
  return result;
}

Status WriteDiscovery(const std::filesystem::path& path, const Discovery& discovery) {
  // What an earlier daemon left may have any mode, and a rewrite keeps it.
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return StatusFromErrno(errno, "cannot replace", path);
  return WriteFileAtomically(path, DiscoveryToJson(discovery), 0600);
}

Expected<Discovery> ReadDiscovery(const std::filesystem::path& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return Fail(ErrorKind::kNotFound, "no daemon has announced itself", path);
    return Fail(StatusFromErrno(errno, "cannot read", path));
  }
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
    return Fail(ErrorKind::kEnvironment, "the discovery file is not private to you", path,
                "Remove it; the daemon writes a new one at its next start.");
  }
  Expected<std::string> text = ReadFile(path, kMaxBytes);
  if (!text) return Fail(text.error());
  Expected<Discovery> result = ParseDiscovery(*text);
  if (!result) return Fail(result.error().kind(), result.error().message(), path, result.error().remedy());
  return result;
}

}  // namespace kernelwright::service
