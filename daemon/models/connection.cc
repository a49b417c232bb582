// From the name of a model to where it is and with which key it is asked; see remote_model.h.
#include <algorithm>
#include <cctype>

#include "daemon/base/text.h"
#include "daemon/models/answer.h"
#include "daemon/models/remote_model.h"
#include "daemon/models/wire_common.h"

namespace kernelwright::models {
namespace {

struct UrlParts {
  std::string scheme;
  std::string host;  // lower case, without brackets
  bool has_user = false;
};

// Enough of a URL to decide whether a key may go there.
std::optional<UrlParts> ParseUrl(const std::string& url) {
  const size_t end = url.find("://");
  if (end == std::string::npos) return std::nullopt;
  UrlParts parts;
  parts.scheme = ToLowerAscii(url.substr(0, end));
  std::string authority = url.substr(end + 3);
  authority = authority.substr(0, authority.find_first_of("/?#"));
  if (const size_t at = authority.rfind('@'); at != std::string::npos) {
    parts.has_user = true;
    authority.erase(0, at + 1);
  }
  if (authority.starts_with('[')) {
    const size_t close = authority.find(']');
    if (close == std::string::npos) return std::nullopt;
    parts.host = authority.substr(1, close - 1);
  } else {
    parts.host = authority.substr(0, authority.find(':'));
  }
  parts.host = ToLowerAscii(parts.host);
  if (parts.host.empty()) return std::nullopt;
  return parts;
}

bool IsThisMachine(const std::string& host) {
  if (host == "localhost" || host == "::1") return true;
  // Only as a whole address: "127.0.0.1.example.com" is somewhere else.
  return host.starts_with("127.") &&
         std::all_of(host.begin(), host.end(), [](char c) { return c == '.' || std::isdigit(c) != 0; });
}

Expected<std::string> ChooseUrl(const ProviderFacts& provider, const Environment& environment,
                                const std::string& given) {
  std::string url = given;
  std::string origin = "the base URL";
  for (const std::string& name : provider.base_url_env) {
    if (!url.empty()) break;
    url = std::string(Trim(environment(name).value_or("")));
    origin = name;
  }
  if (url.empty()) url = provider.base_url;
  while (url.ends_with('/')) url.pop_back();
  if (url.empty()) {
    return Fail(ErrorKind::kUsage, "provider '" + provider.name + "' needs a base URL", {},
                "Give --base-url, for example http://127.0.0.1:8000/v1.");
  }
  const std::optional<UrlParts> parts = ParseUrl(url);
  if (!parts || (parts->scheme != "https" && parts->scheme != "http") ||
      url.find_first_of("?# \t\r\n") != std::string::npos) {
    return Fail(ErrorKind::kUsage, "'" + url + "' is no base URL", origin,
                "It looks like https://host/v1, without a query.");
  }
  if (parts->has_user) {
    return Fail(ErrorKind::kUsage, "a base URL holds no user name or password", origin,
                "Put the key into the provider's environment variable.");
  }
  return url;
}

}  // namespace

SecretHeader Connection::KeyHeader() const { return key.empty() ? SecretHeader{} : wire->KeyHeader(key.value()); }

Expected<Connection> ResolveConnection(const ModelCatalogue& catalogue, const ModelName& name,
                                       const Environment& environment, const ConnectionOptions& options) {
  const Expected<const ProviderFacts*> found = catalogue.Provider(name.provider);
  if (!found) return Fail(found.error());
  const ProviderFacts& provider = **found;
  if (name.model.find_first_of(" \t\r\n?#%\\") != std::string::npos || name.model.find("..") != std::string::npos) {
    return Fail(ErrorKind::kUsage, "'" + name.model + "' is no name of a model");
  }
  Expected<std::string> url = ChooseUrl(provider, environment, options.base_url);
  if (!url) return Fail(url.error());

  Connection connection;
  connection.wire = FindWireFormat(provider.wire);
  connection.facts = catalogue.Facts(provider.name, name.model);
  connection.endpoint = {.provider = provider.name,
                         .model = name.model,
                         .base_url = *url,
                         .stream = options.stream,
                         .structured = connection.facts.structured.value_or(provider.structured),
                         .effort = connection.facts.effort.value_or(provider.effort),
                         .old_token_limit = provider.old_token_limit};
  if (options.key) {
    connection.key = ApiKey(*options.key);
  } else {
    Expected<ApiKey> key = KeyFromEnvironment(provider.key_env, environment);
    if (!key) return Fail(key.error());
    connection.key = *std::move(key);
  }
  if (connection.key.empty() && provider.key_required && options.need_key) {
    return Fail(ErrorKind::kEnvironment, "there is no key for " + provider.title, connection.endpoint.Where(),
                "Set " + Join(provider.key_env, " or ") +
                    " in the environment. Without a model ('none') everything that "
                    "rules can do still works.");
  }
  const std::optional<UrlParts> parts = ParseUrl(*url);
  // A server of this kind on another machine may be anyone's: what it costs is not known.
  if (provider.runs_locally && !IsThisMachine(parts->host) && connection.facts.date.empty()) {
    connection.facts.prices.clear();
    connection.facts.source.clear();
  }
  if (!connection.key.empty() && parts->scheme == "http" && !IsThisMachine(parts->host)) {
    return Fail(ErrorKind::kUsage, "the key would go over the network unencrypted", *url,
                "Use https, or a server on this machine.");
  }
  return connection;
}

CallResult<std::vector<OfferedModel>> ListOfferedModels(const Connection& connection, const HttpLimits& limits,
                                                        Transport& transport, const std::stop_token& stop) {
  HttpHead head;
  std::string body;
  const HttpSink sink{.on_head = [&head](const HttpHead& given) { head = given; },
                      .on_body = [&body](std::string_view bytes) { body += bytes; }};
  const HttpOutcome outcome =
      transport.Run(connection.wire->BuildList(connection.endpoint), connection.KeyHeader(), limits, sink, stop);
  if (outcome.failure != HttpFailure::kNone) return tl::unexpected(ErrorOfOutcome(outcome, connection.endpoint));
  const Expected<Json> parsed = ParseJson(body);
  if (head.status != 200) {
    return tl::unexpected(connection.wire->DecodeError(connection.endpoint, head, parsed ? *parsed : Json()));
  }
  if (!parsed) return tl::unexpected(ProtocolError(connection.endpoint, "the answer is no list of models"));
  return connection.wire->DecodeList(connection.endpoint, *parsed);
}

}  // namespace kernelwright::models
