// The history of a run as the store has it, for the tool run_history.
#pragma once

#include <memory>
#include <string>

#include "daemon/store/store.h"
#include "daemon/tools/services.h"

namespace kernelwright::tools {

// `store` must outlive the result.
std::unique_ptr<RunHistory> MakeStoreHistory(store::Store& store, std::string run);

}  // namespace kernelwright::tools
