// search_workspace: lines that contain a text, or the names of files. Plain text, no patterns: they can be made to run
// for ever, and models rarely need them.
#include <algorithm>

#include "daemon/base/text.h"
#include "daemon/tools/registry.h"

namespace kernelwright::tools {
namespace {

constexpr size_t kMostHits = 60;

class SearchWorkspaceTool : public Tool {
 public:
  explicit SearchWorkspaceTool(const Workspace& workspace) : workspace_(workspace) {}

  const models::ToolSpec& spec() const override { return spec_; }

  Expected<ToolOutput> Run(const Json& arguments, const std::stop_token& stop) override {
    const std::string wanted = TextArgument(arguments, "text");
    const std::string inside = TextArgument(arguments, "path_contains");
    const bool any_case = arguments.value("any_case", false);
    std::string text;
    size_t hits = 0;
    size_t files = 0;
    for (const std::string& path : workspace_.List()) {
      if (stop.stop_requested()) return Fail(ErrorKind::kCancelled, "the search was cancelled");
      if (!inside.empty() && path.find(inside) == std::string::npos) continue;
      if (wanted.empty()) {
        if (++hits <= kMostHits) text += path + "\n";
        continue;
      }
      const size_t before = hits;
      SearchFile(path, wanted, any_case, &text, &hits);
      if (hits > before) ++files;
    }
    if (hits == 0) return ToolError("nothing was found. Try a shorter text, or `any_case`.");
    if (hits > kMostHits) {
      text += "[" + std::to_string(hits - kMostHits) + " more; narrow it with `path_contains` or a longer text]\n";
    }
    if (!wanted.empty()) text = std::to_string(hits) + " lines in " + std::to_string(files) + " files\n" + text;
    return ToolOutput{.text = std::move(text), .data = {{"hits", hits}}};
  }

 private:
  void SearchFile(const std::string& path, const std::string& wanted, bool any_case, std::string* text,
                  size_t* hits) const {
    const Expected<WorkspaceFile> file = workspace_.Read(path);
    if (!file) return;  // a file that cannot be shown is not searched
    const std::string needle = any_case ? ToLowerAscii(wanted) : wanted;
    int number = 0;
    for (std::string_view line : SplitLines(file->text)) {
      ++number;
      const bool found =
          any_case ? ToLowerAscii(line).find(needle) != std::string::npos : line.find(needle) != std::string_view::npos;
      if (found && ++*hits <= kMostHits) {
        *text += path + ":" + std::to_string(number) + "| " + Truncate(Trim(line), 200) + "\n";
      }
    }
  }

  const Workspace& workspace_;
  const models::ToolSpec spec_{
      "search_workspace",
      "Lines of the workspace's text files that contain a text (no patterns), or without `text` the names of files.",
      ObjectSchema({{"text", StringField("Text to find; leave it out to list files")},
                    {"path_contains", StringField("Only files whose path contains this")},
                    {"any_case", {{"type", "boolean"}, {"description", "Ignore upper and lower case"}}}},
                   {})};
};

}  // namespace

std::vector<std::unique_ptr<Tool>> MakeSearchWorkspace(const ToolServices& services) {
  if (services.workspace == nullptr) return {};
  return OneTool<SearchWorkspaceTool>(*services.workspace);
}

}  // namespace kernelwright::tools
