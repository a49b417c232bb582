// See tool.h.
#include "daemon/tools/tool.h"

#include <algorithm>
#include <utility>

#include "daemon/base/redact.h"
#include "daemon/base/text.h"
#include "daemon/models/json_schema.h"

namespace kernelwright::tools {

ToolOutput ToolError(std::string text) { return {.text = std::move(text), .is_error = true, .data = nullptr}; }

ToolOutput ToolError(const Status& status) { return ToolError(status.ToString()); }

Status ToolBox::Add(std::unique_ptr<Tool> tool) {
  const models::ToolSpec& spec = tool->spec();
  for (const auto& known : tools_) {
    if (known->spec().name == spec.name) return Status(ErrorKind::kInternal, "two tools are named " + spec.name);
  }
  if (Status good = models::CheckSchema(spec.parameters); !good.ok()) {
    return Status(ErrorKind::kInternal, good.message(), spec.name + ": " + good.where());
  }
  tools_.push_back(std::move(tool));
  return {};
}

std::vector<models::ToolSpec> ToolBox::Specs() const {
  std::vector<models::ToolSpec> specs;
  specs.reserve(tools_.size());
  for (const auto& tool : tools_) specs.push_back(tool->spec());
  return specs;
}

Expected<std::vector<models::ToolSpec>> ToolBox::Specs(const std::vector<std::string>& names) const {
  std::vector<models::ToolSpec> specs;
  for (const std::string& name : names) {
    const auto found = std::find_if(tools_.begin(), tools_.end(),
                                    [&](const std::unique_ptr<Tool>& tool) { return tool->spec().name == name; });
    if (found == tools_.end()) {
      return Fail(ErrorKind::kNotFound, "there is no tool '" + name + "'", {},
                  "The tools are " + Join(Names(), ", ") + ".");
    }
    specs.push_back((*found)->spec());
  }
  return specs;
}

std::vector<std::string> ToolBox::Names() const {
  std::vector<std::string> names;
  names.reserve(tools_.size());
  for (const auto& tool : tools_) names.push_back(tool->spec().name);
  return names;
}

Expected<ToolOutput> ToolBox::Run(const models::ToolCall& call, const std::vector<std::string>& allowed,
                                  const std::stop_token& stop, size_t most_bytes) const {
  const std::vector<std::string> names = allowed.empty() ? Names() : allowed;
  Tool* tool = nullptr;
  for (const auto& known : tools_) {
    if (known->spec().name == call.name) tool = known.get();
  }
  if (tool == nullptr || std::find(names.begin(), names.end(), call.name) == names.end()) {
    const std::optional<std::string> meant = ClosestMatch(call.name, names);
    return ToolError("there is no tool `" + Truncate(SanitizeUtf8(call.name), 64) + "`" +
                     (meant ? "; did you mean `" + *meant + "`?" : "") + " The tools are " + Join(names, ", ") + ".");
  }
  if (!call.malformed.empty()) {
    return ToolError("the arguments are not a JSON object: " + call.malformed +
                     ". Call the tool again with the whole object; escape line ends in strings as \\n.");
  }
  const std::vector<std::string> problems = models::CheckAgainstSchema(tool->spec().parameters, call.arguments);
  if (!problems.empty()) {
    return ToolError("the arguments do not fit: " + Join(problems, "; ") + ". Nothing was done; call the tool again.");
  }
  if (stop.stop_requested()) return Fail(ErrorKind::kCancelled, "the call of " + call.name + " was cancelled");
  Expected<ToolOutput> output = tool->Run(call.arguments, stop);
  if (!output) return output;
  output->text =
      CutLines(ProcessRedactor().RedactRegistered(SanitizeUtf8(output->text)), most_bytes, "ask for a smaller part");
  return output;
}

models::ToolResult ToResult(const models::ToolCall& call, const ToolOutput& output) {
  return {call.id, call.name, output.text, output.is_error};
}

std::string CutLines(std::string_view text, size_t most_bytes, const std::string& advice) {
  if (text.size() <= most_bytes) return std::string(text);
  const std::string note_end = " more lines; " + advice + "]";
  const size_t room = most_bytes > note_end.size() + 24 ? most_bytes - note_end.size() - 24 : 0;
  size_t cut = text.rfind('\n', room);
  const bool inside_line = cut == std::string_view::npos;
  const std::string kept = inside_line ? Truncate(text, room) : std::string(text.substr(0, cut));
  if (inside_line) cut = std::min(room, text.size());
  const auto left = std::count(text.begin() + static_cast<ptrdiff_t>(cut), text.end(), '\n');
  return kept + "\n[" + std::to_string(left) + note_end;
}

}  // namespace kernelwright::tools
