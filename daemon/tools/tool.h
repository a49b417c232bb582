// What a language model may do: tools with a JSON schema for their arguments and a text as their result. A tool box
// holds those of one agent; whatever the model writes (a name that does not exist, arguments that are no JSON or do not
// fit) is answered with a message that it can act on. There is no shell tool.
#pragma once

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/json.h"
#include "daemon/base/status.h"
#include "daemon/models/message.h"

namespace kernelwright::tools {

struct ToolOutput {
  std::string text;       // for the model
  bool is_error = false;  // the call did not do what was asked; the text says why and what to do
  Json data;              // for events and the store; null when there is nothing to add to the text
  // For the detectors of loops (models/loop_detectors.h): something new was learned or made.
  bool progress = false;
};

ToolOutput ToolError(std::string text);
// "what happened. remedy", with the place in front when there is one.
ToolOutput ToolError(const Status& status);

class Tool {
 public:
  virtual ~Tool() = default;
  virtual const models::ToolSpec& spec() const = 0;
  // `arguments` fit the schema. A Status is for what ends the agent (cancelled, a limit, our own fault); what the model
  // can do better is a ToolOutput with is_error.
  virtual Expected<ToolOutput> Run(const Json& arguments, const std::stop_token& stop) = 0;
};

class ToolBox {
 public:
  // kInternal when the name is taken or the schema is not one that CheckSchema accepts.
  Status Add(std::unique_ptr<Tool> tool);
  // For a request, in the order of adding. With names only these; kNotFound for one that is not here.
  std::vector<models::ToolSpec> Specs() const;
  Expected<std::vector<models::ToolSpec>> Specs(const std::vector<std::string>& names) const;
  std::vector<std::string> Names() const;

  // Checks and runs one call. `allowed`: the tools that this agent may use; empty: all. The text is cut to
  // `most_bytes`, secrets that the process knows are taken out.
  Expected<ToolOutput> Run(const models::ToolCall& call, const std::vector<std::string>& allowed,
                           const std::stop_token& stop, size_t most_bytes = kMostOutputBytes) const;

  static constexpr size_t kMostOutputBytes = size_t{16} << 10;

 private:
  std::vector<std::unique_ptr<Tool>> tools_;
};

// The answer to a call, as part of the next message.
models::ToolResult ToResult(const models::ToolCall& call, const ToolOutput& output);

// `text` within the limit: whole lines from its start, then how much is missing and what to do about it.
std::string CutLines(std::string_view text, size_t most_bytes, const std::string& advice);

}  // namespace kernelwright::tools
