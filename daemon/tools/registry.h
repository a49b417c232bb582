// The list of tools: one is a file with a class and a line in registry.cc.
#pragma once

#include "daemon/tools/services.h"
#include "daemon/tools/tool.h"

namespace kernelwright::tools {

// All tools for which there is a service. What `services` points to must outlive the box.
Expected<ToolBox> MakeToolBox(const ToolServices& services);

// Each makes its tools, or none when a service that they need is missing.
using ToolMaker = std::vector<std::unique_ptr<Tool>> (*)(const ToolServices& services);
std::vector<std::unique_ptr<Tool>> MakeReadFile(const ToolServices& services);
std::vector<std::unique_ptr<Tool>> MakeSearchWorkspace(const ToolServices& services);
std::vector<std::unique_ptr<Tool>> MakeProposeEdit(const ToolServices& services);
std::vector<std::unique_ptr<Tool>> MakeKernelActions(const ToolServices& services);
std::vector<std::unique_ptr<Tool>> MakeLookUpApi(const ToolServices& services);
std::vector<std::unique_ptr<Tool>> MakeSearchKnowledge(const ToolServices& services);
std::vector<std::unique_ptr<Tool>> MakeRunHistory(const ToolServices& services);
std::vector<std::unique_ptr<Tool>> MakeChipTable(const ToolServices& services);

// For the makers: a list with one tool.
template <typename T, typename... Args>
std::vector<std::unique_ptr<Tool>> OneTool(Args&&... args) {
  std::vector<std::unique_ptr<Tool>> tools;
  tools.push_back(std::make_unique<T>(std::forward<Args>(args)...));
  return tools;
}

// Schemas of the usual kinds of arguments.
Json StringField(const std::string& description);
Json IntegerField(const std::string& description, int64_t minimum);
Json ObjectSchema(Json properties, std::vector<std::string> required);
std::string TextArgument(const Json& arguments, const char* key);  // "" when missing
int64_t IntegerArgument(const Json& arguments, const char* key, int64_t fallback);

}  // namespace kernelwright::tools
