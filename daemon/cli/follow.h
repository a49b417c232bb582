// Follows a run to its end and shows the outcome: shared by optimize, tune, runs watch, runs resume and runs show.
#pragma once

#include <string>

#include "daemon/base/status.h"
#include "daemon/cli/context.h"
#include "daemon/service/client.h"

namespace kernelwright::cli {

// What to do with the outcome.
struct ShowOptions {
  bool diff = false;   // only the diff on standard output
  bool apply = false;  // write the best candidate into the user's files
  std::string chip;    // for diff and apply; empty: the only one
};

enum class OnInterrupt {
  kCancelRun,  // the first Ctrl-C cancels the run, the second leaves
  kDetach,     // the first Ctrl-C leaves; the run goes on
};

// Shows the run's events after `since` until it ends. An error when the connection is lost or the user left.
Status FollowRun(Context* context, service::Client* client, const std::string& run, uint64_t since,
                 OnInterrupt on_interrupt);

// Prints the stored result as the flags say, applies it if asked; returns the exit code of the run.
Expected<int> ShowRun(Context* context, service::Client* client, const std::string& run, const ShowOptions& show);

}  // namespace kernelwright::cli
