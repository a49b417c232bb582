// read_file: lines of a file with their numbers.
#include <algorithm>
#include <set>

#include "daemon/base/hash.h"
#include "daemon/base/text.h"
#include "daemon/tools/registry.h"

namespace kernelwright::tools {
namespace {

constexpr int64_t kMostLines = 400;

class ReadFileTool : public Tool {
 public:
  explicit ReadFileTool(const Workspace& workspace) : workspace_(workspace) {}

  const models::ToolSpec& spec() const override { return spec_; }

  Expected<ToolOutput> Run(const Json& arguments, const std::stop_token&) override {
    const Expected<WorkspaceFile> file = workspace_.Read(TextArgument(arguments, "path"));
    if (!file) return ToolError(file.error());
    const std::vector<std::string_view> lines = SplitLines(file->text);
    const auto total = static_cast<int64_t>(lines.size());
    const int64_t first = IntegerArgument(arguments, "first_line", 1);
    const int64_t last = std::min({IntegerArgument(arguments, "last_line", total), total, first + kMostLines - 1});
    if (first > std::max<int64_t>(total, 1)) {
      return ToolError("`first_line` is " + std::to_string(first) + ", but " + file->path + " has " +
                       std::to_string(total) + " lines");
    }
    std::string text = file->path + ", lines " + std::to_string(first) + "-" + std::to_string(last) + " of " +
                       std::to_string(total) + (file->edited ? ", with your edits" : "") + "\n";
    for (int64_t line = first; line <= last; ++line) {
      text += std::to_string(line) + "| " + std::string(lines[static_cast<size_t>(line - 1)]) + "\n";
    }
    ToolOutput output{.text = std::move(text), .data = {{"path", file->path}, {"sha256", Sha256Hex(file->text)}}};
    output.progress = seen_.insert(output.text).second;
    return output;
  }

 private:
  const Workspace& workspace_;
  std::set<std::string> seen_;
  const models::ToolSpec spec_{
      "read_file",
      "Lines of a text file of the workspace, with line numbers ('12| code'; the number and bar are not part of the "
      "file). At most 400 lines at once.",
      ObjectSchema({{"path", StringField("Path relative to the workspace")},
                    {"first_line", IntegerField("First line, from 1; default 1", 1)},
                    {"last_line", IntegerField("Last line; default the last of the file", 1)}},
                   {"path"})};
};

}  // namespace

std::vector<std::unique_ptr<Tool>> MakeReadFile(const ToolServices& services) {
  if (services.workspace == nullptr) return {};
  return OneTool<ReadFileTool>(*services.workspace);
}

}  // namespace kernelwright::tools
