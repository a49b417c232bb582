// See registry.h.
#include "daemon/tools/registry.h"

#include <array>

namespace kernelwright::tools {
namespace {

// The order is that in which a model sees them.
constexpr std::array<ToolMaker, 8> kMakers = {MakeReadFile,  MakeSearchWorkspace, MakeProposeEdit, MakeKernelActions,
                                              MakeLookUpApi, MakeSearchKnowledge, MakeRunHistory,  MakeChipTable};

}  // namespace

Expected<ToolBox> MakeToolBox(const ToolServices& services) {
  ToolBox box;
  for (const ToolMaker maker : kMakers) {
    for (std::unique_ptr<Tool>& tool : maker(services)) {
      if (Status added = box.Add(std::move(tool)); !added.ok()) return Fail(added);
    }
  }
  return box;
}

Json StringField(const std::string& description) { return {{"type", "string"}, {"description", description}}; }

Json IntegerField(const std::string& description, int64_t minimum) {
  return {{"type", "integer"}, {"minimum", minimum}, {"description", description}};
}

Json ObjectSchema(Json properties, std::vector<std::string> required) {
  return {{"type", "object"},
          {"additionalProperties", false},
          {"properties", std::move(properties)},
          {"required", std::move(required)}};
}

std::string TextArgument(const Json& arguments, const char* key) {
  const auto found = arguments.find(key);
  return found != arguments.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t IntegerArgument(const Json& arguments, const char* key, int64_t fallback) {
  const auto found = arguments.find(key);
  if (found == arguments.end() || !found->is_number()) return fallback;
  // The schema allows 3.0 for an integer.
  return found->is_number_float() ? static_cast<int64_t>(found->get<double>()) : found->get<int64_t>();
}

}  // namespace kernelwright::tools
