// Gives a command its client: the daemon, started if there is none, or an engine in this process.
#pragma once

#include <memory>
#include <string>

#include "daemon/base/status.h"
#include "daemon/cli/context.h"
#include "daemon/service/client.h"
#include "daemon/service/launcher.h"

namespace kernelwright::cli {

// Who this client is, test flags included.
Expected<service::ClientIdentity> IdentityOf(const CommonOptions& common);

Expected<service::RuntimeFolder> OpenRuntime();

Expected<std::unique_ptr<service::Client>> OpenClient(Context* context);

// Starts the run; should the daemon just be ending, on its successor, which then replaces `client`.
Expected<std::string> StartRun(Context* context, std::unique_ptr<service::Client>* client,
                               const agents::RunRequest& request);

// The variables of this process that choose an interpreter; no keys.
std::map<std::string, std::string> InterpreterEnvironment();

}  // namespace kernelwright::cli
