// What the commands about models share: the list of models, the connection's flags.
#pragma once

#include <memory>
#include <string>

#include "daemon/cli/context.h"
#include "daemon/models/catalogue.h"
#include "daemon/models/http.h"

namespace kernelwright::cli {

struct ServerFlags {
  std::string base_url;
  std::string proxy;
  std::string ca_file;
};

// Adds them to a command; `flags` must live as long as it.
void AddServerFlags(CLI::App* command, ServerFlags* flags);

// The built-in list with the user's own on top.
Expected<models::ModelCatalogue> ReadModelCatalogue();

Expected<std::unique_ptr<models::Transport>> OpenTransport(Context* context, const ServerFlags& flags);

// models ask; in a file of its own.
void AddModelsAsk(CLI::App* parent, Context* context);

}  // namespace kernelwright::cli
