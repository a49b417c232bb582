// The engine over a store and workers of this machine: runs on threads of their own, their events in the log, their
// results in the store.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "daemon/agents/check_rules.h"
#include "daemon/agents/engine.h"
#include "daemon/agents/store_journal.h"
#include "daemon/agents/toolchain.h"
#include "daemon/base/lock_file.h"
#include "daemon/cost/chips.h"

namespace kernelwright::agents {

// What the engine is made of. The store must not be null; `cache` may be.
struct LocalEngineParts {
  std::unique_ptr<LockFile> store_lock;  // held as long as the engine lives; null beside a daemon (--in-process)
  std::unique_ptr<store::Store> store;
  std::unique_ptr<BlobCache> cache;
  std::unique_ptr<ToolchainProvider> toolchains;
  std::unique_ptr<CheckRules> check_rules;  // null: checks are refused
  cost::ChipTable chips{{}};
  std::string build;                       // identity of this build, part of the evidence
  std::string captures;                    // folder of recorded calls (docs/capture.md)
  std::function<uint64_t()> random_seed;   // for frozen seeds
  std::function<uint64_t()> stored_bytes;  // database and cache on disk
  int parallel = 2;
};

std::unique_ptr<Engine> MakeLocalEngine(LocalEngineParts parts);

}  // namespace kernelwright::agents
