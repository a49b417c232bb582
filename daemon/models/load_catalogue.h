// Reads the built-in list of models and, on top of it, the user's own.
#pragma once

#include <filesystem>

#include "daemon/base/status.h"
#include "daemon/models/catalogue.h"

namespace kernelwright::models {

// `agents_folder` holds models.json of this build. `config_folder` may hold one of the user's, whose entries replace
// those of the same name; it need not exist. A user's file that cannot be read is an error, not ignored: its prices may
// be what a budget rests on.
Expected<ModelCatalogue> LoadModelCatalogue(const std::filesystem::path& agents_folder,
                                            const std::filesystem::path& config_folder);

}  // namespace kernelwright::models
