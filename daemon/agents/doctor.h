// Looks at the environment: interpreter, versions, sandbox, chips that compile, store. Each problem has its remedy.
#pragma once

#include <stop_token>
#include <vector>

#include "daemon/agents/engine.h"
#include "daemon/agents/toolchain.h"
#include "daemon/cost/chips.h"
#include "daemon/store/store.h"

namespace kernelwright::agents {

// Versions of jax that the tests run with; others work but are shown as untested.
inline constexpr const char* kTestedJax = "0.10.2";

Expected<std::vector<DoctorItem>> RunDoctor(const DoctorOptions& options, ToolchainProvider& toolchains,
                                            const cost::ChipTable& chips, store::Store& store, std::stop_token stop);

}  // namespace kernelwright::agents
