// See load_catalogue.h.
#include "daemon/models/load_catalogue.h"

#include "daemon/base/files.h"

namespace kernelwright::models {

Expected<ModelCatalogue> LoadModelCatalogue(const std::filesystem::path& agents_folder,
                                            const std::filesystem::path& config_folder) {
  constexpr size_t kMostBytes = size_t{4} << 20;
  const std::filesystem::path built_in = agents_folder / "models.json";
  const Expected<std::string> text = ReadFile(built_in, kMostBytes);
  if (!text) return Fail(text.error());
  Expected<ModelCatalogue> catalogue = ParseModelCatalogue(*text, built_in.string());
  if (!catalogue || config_folder.empty()) return catalogue;
  const std::filesystem::path own = config_folder / "models.json";
  const Expected<std::string> own_text = ReadFile(own, kMostBytes);
  if (!own_text) {
    if (own_text.error().kind() == ErrorKind::kNotFound) return catalogue;
    return Fail(own_text.error());
  }
  const Expected<ModelCatalogue> own_catalogue = ParseModelCatalogue(*own_text, own.string(), true);
  if (!own_catalogue) return Fail(own_catalogue.error());
  return catalogue->MergedWith(*own_catalogue);
}

}  // namespace kernelwright::models
