// The discovery file: how a client finds the daemon and proves itself to it. Mode 0600, replaced by rename, checked
// when read; the token in it is the right to call the daemon.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "daemon/base/status.h"
#include "daemon/service/build_identity.h"

namespace kernelwright::service {

struct Discovery {
  std::string socket;    // absolute path
  std::string token;     // 64 hexadecimal digits, sent with every call
  std::string cookie;    // 64 hexadecimal digits, comes back in the handshake
  int64_t pid = 0;       // of the daemon
  int64_t start_ms = 0;  // its start, milliseconds since 1970 UTC
  BuildIdentity build;
  ProtocolRange protocol;
};

// JSON text; schema_version 1.
std::string DiscoveryToJson(const Discovery& discovery);

// kInternal when the text is not a discovery file of a known schema with every field in its range.
Expected<Discovery> ParseDiscovery(const std::string& text);

Status WriteDiscovery(const std::filesystem::path& path, const Discovery& discovery);

// kNotFound when there is none; kEnvironment when others could have written or read it.
Expected<Discovery> ReadDiscovery(const std::filesystem::path& path);

}  // namespace kernelwright::service
