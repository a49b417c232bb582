// See models_flags.h.
#include "daemon/cli/models_flags.h"

#include <cstdlib>
#include <filesystem>

#include "daemon/cli/connection.h"
#include "daemon/cli/paths.h"
#include "daemon/models/curl_transport.h"
#include "daemon/models/load_catalogue.h"

namespace kernelwright::cli {
namespace {

std::filesystem::path ConfigFolder() {
  if (const char* value = std::getenv("XDG_CONFIG_HOME"); value != nullptr && *value == '/') {
    return std::filesystem::path(value) / "kernelwright";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return std::filesystem::path(home) / ".config" / "kernelwright";
  }
  return {};
}

}  // namespace

Expected<models::ModelCatalogue> ReadModelCatalogue() {
  const Expected<agents::EngineOptions> options = FindEngineOptions();
  if (!options) return Fail(options.error());
  return models::LoadModelCatalogue(options->agents_folder, ConfigFolder());
}

Expected<std::unique_ptr<models::Transport>> OpenTransport(Context* context, const ServerFlags& flags) {
  const Expected<service::ClientIdentity> identity = IdentityOf(context->common);
  if (!identity) return Fail(identity.error());
  return models::MakeCurlTransport(
      {.proxy = flags.proxy, .ca_file = flags.ca_file, .user_agent = "kernelwright/" + identity->build.version});
}

void AddServerFlags(CLI::App* command, ServerFlags* flags) {
  command->add_option("--base-url", flags->base_url, "Ask this server instead of the provider's")->type_name("URL");
  command->add_option("--proxy", flags->proxy, "Proxy; default: HTTPS_PROXY and NO_PROXY")->type_name("URL");
  command->add_option("--ca", flags->ca_file, "Certificates to trust; default: SSL_CERT_FILE, else the system's")
      ->type_name("FILE");
}

}  // namespace kernelwright::cli
