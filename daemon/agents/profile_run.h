// `profile`: trace, compile, replay, report; no candidates and no run in the store.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "daemon/agents/profile_request.h"
#include "daemon/agents/store_journal.h"
#include "daemon/agents/toolchain.h"
#include "daemon/base/status.h"
#include "daemon/cost/chips.h"

namespace kernelwright::agents {

struct ProfileInputs {
  ProfileRequest request;
  std::vector<const cost::Chip*> chips;      // resolved, at least one
  const cost::Chip* against_chip = nullptr;  // resolved; null: the chip of each profile
  std::string build;                         // part of the evidence
  std::string captures;                      // folder of recorded calls; empty: none
};

// An error is what keeps every chip from being profiled: file, function, inputs, interpreter, trace. What goes wrong
// for one chip (a compile error, a limit) is in the result's entry of that chip.
Expected<ProfileReply> RunProfile(const ProfileInputs& inputs, ToolchainProvider& toolchains, BlobCache* cache,
                                  std::stop_token stop);

}  // namespace kernelwright::agents
