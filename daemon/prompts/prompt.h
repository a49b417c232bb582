// What a sub-agent is told: a file with front matter (settings) and Markdown (a template for the system prompt and one
// for the task). Files ship in agents/prompts; one of the same name in the user's folder replaces ours. Each has a
// version, the hash of its text, which the record of a call keeps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/json.h"
#include "daemon/base/status.h"

namespace kernelwright::prompts {

// How a variable's text is cut when there is no room for all of it.
enum class Keep {
  kStart,  // first lines
  kEnd,    // last lines: of what grows at its end
  kBoth,   // first and last lines: of an error and its trace
  kAll,    // never cut; what cannot be done without
};

struct Variable {
  std::string name;    // [a-z_]+
  int importance = 0;  // larger: kept longer
  Keep keep = Keep::kStart;
};

struct Prompt {
  std::string name;                 // "planner"
  std::string description;          // one line
  std::vector<std::string> tools;   // that it may call; empty: none
  std::vector<Variable> variables;  // of the templates
  Json output_schema;               // null: free text
  int64_t max_output_tokens = 0;    // 0: the model's default
  std::string effort = "default";   // default, low, medium, high
  std::string system;               // template
  std::string task;                 // template
  std::string version;              // first 12 digits of the SHA-256 of file and schema
  std::string origin;               // "built-in" or the path of the user's file

  const Variable* Find(std::string_view name) const;
};

// Parses one file. `schema` is the text of the schema that its `output` names, empty when it names none. An error names
// the line. Templates: {{name}} puts a variable in; lines between {{#name}} and {{/name}}, each alone on its line, stay
// only when the variable is not empty.
Expected<Prompt> ParsePrompt(const std::string& name, std::string_view text, std::string_view schema,
                             const std::string& origin);

// Text of a template. A variable that is missing in `values` is empty.
std::string Render(std::string_view text, const std::map<std::string, std::string>& values);

class PromptLibrary {
 public:
  // All NAME.md of `built_in`, and those of `own` (need not exist) in place of the ones of the same name. Schemas are
  // NAME.schema.json beside them. A user's prompt that cannot be used is an error, not ignored.
  static Expected<PromptLibrary> Load(const std::filesystem::path& built_in, const std::filesystem::path& own);

  // kNotFound with the known names.
  Expected<const Prompt*> Get(std::string_view name) const;
  const std::map<std::string, Prompt>& prompts() const { return prompts_; }

 private:
  std::map<std::string, Prompt> prompts_;
};

}  // namespace kernelwright::prompts
