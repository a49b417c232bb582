// Compiles a traced function for a chip, or finds what an earlier profile's compile gave.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/agents/frozen_reference.h"
#include "daemon/agents/store_journal.h"
#include "daemon/agents/toolchain.h"
#include "daemon/cost/program_estimate.h"

namespace kernelwright::agents {

struct ProfileCompile {
  std::optional<CodeError> error;  // of lowering or compiling
  cost::Dumps dumps;
  Versions versions;
  bool cached = false;
};

// `cache` may be null. A Status error means that there is no verdict: cancelled, a limit, the worker failed.
Expected<ProfileCompile> CompileForProfile(const FrozenReference& frozen, const std::string& chip, Toolchain& toolchain,
                                           const Limits& limits, BlobCache* cache, std::stop_token stop);

}  // namespace kernelwright::agents
