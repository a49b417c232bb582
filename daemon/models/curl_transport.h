// HTTP over libcurl's multi interface: HTTP/2 where the server speaks it, proxies, certificates of the user's choice.
// Each exchange runs on its caller's thread; connections are kept for the next one.
#pragma once

#include <memory>
#include <string>

#include "daemon/base/status.h"
#include "daemon/models/http.h"

namespace kernelwright::models {

struct CurlOptions {
  std::string proxy;    // empty: HTTPS_PROXY, HTTP_PROXY and NO_PROXY of this process
  std::string ca_file;  // empty: SSL_CERT_FILE, CURL_CA_BUNDLE, then where distributions keep it
  std::string user_agent;
};

// Fails only when libcurl cannot be set up.
Expected<std::unique_ptr<Transport>> MakeCurlTransport(const CurlOptions& options);

}  // namespace kernelwright::models
