// propose_edit: search/replace blocks on one file of the workspace. Each block has its own result; a text that does not
// parse any more is not taken, and a failed edit changes no byte.
#include "daemon/base/hash.h"
#include "daemon/base/text.h"
#include "daemon/kernels/diff.h"
#include "daemon/kernels/syntax.h"
#include "daemon/tools/edit_blocks.h"
#include "daemon/tools/registry.h"

namespace kernelwright::tools {
namespace {

Json BlocksSchema() {
  return {{"type", "array"},
          {"minItems", 1},
          {"maxItems", 40},
          {"items",
           ObjectSchema({{"search", StringField("Whole lines as they are in the file, enough of them to be unique; "
                                                "empty only for a new file")},
                         {"replace", StringField("Whole lines that take their place; empty removes them")},
                         {"line", IntegerField("Line where `search` starts, when it is there more than once", 1)}},
                        {"search", "replace"})}};
}

class ProposeEditTool : public Tool {
 public:
  explicit ProposeEditTool(Workspace& workspace) : workspace_(workspace) {}

  const models::ToolSpec& spec() const override { return spec_; }

  Expected<ToolOutput> Run(const Json& arguments, const std::stop_token&) override {
    const std::string path = TextArgument(arguments, "path");
    std::vector<EditBlock> blocks;
    for (const Json& block : arguments["blocks"]) {
      blocks.push_back({TextArgument(block, "search"), TextArgument(block, "replace"),
                        static_cast<int>(IntegerArgument(block, "line", 0))});
    }
    const Expected<std::string> name = workspace_.Resolve(path);
    if (!name) return ToolError(name.error());
    std::string before;
    const bool exists = workspace_.Exists(*name);
    if (exists) {
      Expected<WorkspaceFile> file = workspace_.Read(*name);
      if (!file) return ToolError(file.error());
      before = std::move(file->text);
    } else if (!Trim(blocks.front().search).empty()) {
      return ToolError(*name +
                       " does not exist. To make it, use one block with an empty `search`; else correct the path.");
    }
    if (exists && before.empty()) before = "\n";  // an empty file is edited like any other
    const EditOutcome outcome = ApplyBlocks(exists ? before : std::string_view(), blocks);
    return Take(*name, before, outcome);
  }

 private:
  Expected<ToolOutput> Take(const std::string& name, const std::string& before, const EditOutcome& outcome) {
    std::string report;
    Json list = Json::array();
    size_t applied = 0;
    for (size_t i = 0; i < outcome.outcomes.size(); ++i) {
      const BlockOutcome& block = outcome.outcomes[i];
      const std::string label = "block " + std::to_string(i + 1) + ": ";
      if (block.applied) ++applied;
      report +=
          label +
          (block.applied ? "replaces lines " + std::to_string(block.first_line) + "-" + std::to_string(block.last_line)
                         : "NOT applied: " + block.why) +
          "\n";
      list.push_back({{"applied", block.applied}, {"why", block.why}, {"how", block.how}});
    }
    if (applied == 0) return ToolError("Nothing was changed.\n" + report);
    if (outcome.text == before)
      return ToolError("The edit changes nothing: the new lines equal the old ones.\n" + report);
    if (name.ends_with(".py")) {
      const Status before_syntax = kernels::SourceFile(name, before).CheckSyntax();
      const Status syntax = kernels::SourceFile(name, outcome.text).CheckSyntax();
      if (before_syntax.ok() && !syntax.ok()) {
        return ToolError("Nothing was changed: the file would not parse any more.\n" + syntax.ToString() +
                         "\nThe line is counted with the edit in place:\n" + Around(outcome.text, syntax.where()) +
                         report);
      }
    }
    if (Status put = workspace_.Put(name, outcome.text); !put.ok()) return ToolError(put);
    const std::string diff = kernels::UnifiedDiff(name, before, outcome.text);
    ToolOutput output{.text = (outcome.all_applied() ? "Applied.\n" : "Applied in part.\n") + report + diff,
                      .is_error = !outcome.all_applied(),
                      .data = {{"path", name},
                               {"blocks", std::move(list)},
                               {"diff", diff},
                               {"base_sha256", Sha256Hex(before)},
                               {"sha256", Sha256Hex(outcome.text)}}};
    output.progress = true;
    return output;
  }

  // The lines around "FILE:LINE…".
  static std::string Around(std::string_view text, const std::string& where) {
    int line = 0;
    for (const std::string& part : Split(where, ':')) {
      if (!part.empty() && part.find_first_not_of("0123456789") == std::string::npos) {
        line = std::atoi(part.c_str());
        break;
      }
    }
    if (line == 0) return {};
    std::string shown;
    int number = 0;
    for (std::string_view current : SplitLines(text)) {
      ++number;
      if (number >= line - 2 && number <= line + 1) {
        shown += std::to_string(number) + "| " + Truncate(current, 160) + "\n";
      }
    }
    return shown;
  }

  Workspace& workspace_;
  const models::ToolSpec spec_{
      "propose_edit",
      "Changes a file by search/replace blocks. `search` must be whole lines copied from the file (without the line "
      "numbers of read_file). Several small blocks are better than one large one; never restate a whole file. Nothing "
      "is "
      "written to the user's disk.",
      ObjectSchema({{"path", StringField("Path relative to the workspace")}, {"blocks", BlocksSchema()}},
                   {"path", "blocks"})};
};

}  // namespace

std::vector<std::unique_ptr<Tool>> MakeProposeEdit(const ToolServices& services) {
  if (services.workspace == nullptr || !services.may_edit) return {};
  return OneTool<ProposeEditTool>(*services.workspace);
}

}  // namespace kernelwright::tools
