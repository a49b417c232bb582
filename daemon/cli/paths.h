// Where this build's data and the user's state are.
#pragma once

#include <filesystem>

#include "daemon/agents/engine.h"
#include "daemon/base/status.h"

namespace kernelwright::cli {

// This program's file, links resolved.
Expected<std::filesystem::path> ProgramPath();

// $XDG_STATE_HOME/kernelwright or ~/.local/state/kernelwright, made private: store and logs.
Expected<std::filesystem::path> StateFolder();

// State, cache ($XDG_CACHE_HOME/kernelwright or ~/.cache/kernelwright) and the files of this build: beside an installed
// program in ../share/kernelwright, beside a built one in the source tree.
Expected<agents::EngineOptions> FindEngineOptions();

}  // namespace kernelwright::cli
