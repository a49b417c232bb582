// See prompt.h.
#include "daemon/prompts/prompt.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>

#include "daemon/base/files.h"
#include "daemon/base/hash.h"
#include "daemon/base/text.h"
#include "daemon/models/json_schema.h"

namespace kernelwright::prompts {
namespace {

namespace fs = std::filesystem;

bool IsName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::islower(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string& part : Split(text, ',')) {
    if (const std::string_view word = Trim(part); !word.empty()) words.emplace_back(word);
  }
  return words;
}

// "error 9 both": name, importance, what to keep.
std::optional<Variable> ParseVariable(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string& word : Split(Trim(text), ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  if (words.size() < 2 || words.size() > 3 || !IsName(words[0])) return std::nullopt;
  Variable variable{.name = words[0]};
  const char* end = words[1].data() + words[1].size();
  if (std::from_chars(words[1].data(), end, variable.importance).ptr != end) return std::nullopt;
  if (words.size() == 3) {
    if (words[2] == "start") {
      variable.keep = Keep::kStart;
    } else if (words[2] == "end") {
      variable.keep = Keep::kEnd;
    } else if (words[2] == "both") {
      variable.keep = Keep::kBoth;
    } else if (words[2] == "all") {
      variable.keep = Keep::kAll;
    } else {
      return std::nullopt;
    }
  }
  return variable;
}

// Names in {{name}}, {{#name}} and {{/name}}.
std::set<std::string> UsedNames(std::string_view text) {
  std::set<std::string> names;
  size_t at = 0;
  while ((at = text.find("{{", at)) != std::string_view::npos) {
    const size_t end = text.find("}}", at);
    if (end == std::string_view::npos) break;
    std::string_view name = text.substr(at + 2, end - at - 2);
    if (name.starts_with('#') || name.starts_with('/')) name.remove_prefix(1);
    if (IsName(name)) names.emplace(name);
    at = end + 2;
  }
  return names;
}

// The name in a line that opens or closes a part, else empty.
std::string_view PartName(std::string_view line, char mark) {
  line = Trim(line);
  if (!line.starts_with("{{") || !line.ends_with("}}") || line.size() < 6 || line[2] != mark) return {};
  const std::string_view name = line.substr(3, line.size() - 5);
  return IsName(name) ? name : std::string_view();
}

Status CheckParts(std::string_view text, const std::string& where) {
  std::string open;
  for (std::string_view line : SplitLines(text)) {
    if (const std::string_view name = PartName(line, '#'); !name.empty()) {
      if (!open.empty()) {
        return Status(ErrorKind::kUsage, "{{#" + std::string(name) + "}} stands inside {{#" + open + "}}", where);
      }
      open = name;
    }
    if (const std::string_view name = PartName(line, '/'); !name.empty()) {
      if (name != open) return Status(ErrorKind::kUsage, "{{/" + std::string(name) + "}} closes nothing", where);
      open.clear();
    }
  }
  if (!open.empty()) return Status(ErrorKind::kUsage, "{{#" + open + "}} is not closed", where);
  return {};
}

Status SetField(Prompt* prompt, const std::string& key, const std::string& value, const std::string& where) {
  if (key == "description") {
    prompt->description = value;
  } else if (key == "tools") {
    prompt->tools = Words(value);
  } else if (key == "effort") {
    prompt->effort = value;
    if (value != "default" && value != "low" && value != "medium" && value != "high") {
      return Status(ErrorKind::kUsage, "`effort` is default, low, medium or high", where);
    }
  } else if (key == "max_output_tokens") {
    const char* end = value.data() + value.size();
    if (std::from_chars(value.data(), end, prompt->max_output_tokens).ptr != end || prompt->max_output_tokens <= 0) {
      return Status(ErrorKind::kUsage, "`max_output_tokens` is a positive number", where);
    }
  } else if (key == "variables") {
    for (const std::string& text : Words(value)) {
      std::optional<Variable> variable = ParseVariable(text);
      if (!variable || prompt->Find(variable->name) != nullptr) {
        return Status(ErrorKind::kUsage, "'" + text + "' is no variable", where,
                      "Write NAME IMPORTANCE [start|end|both|all], separated by commas.");
      }
      prompt->variables.push_back(*std::move(variable));
    }
  } else if (key != "output") {
    return Status(ErrorKind::kUsage, "there is no setting `" + key + "`", where,
                  "The settings are description, tools, variables, output, max_output_tokens, effort.");
  }
  return {};
}

// The value of `output` in the front matter, for finding the schema before the file is parsed.
std::string OutputName(std::string_view text) {
  int rules = 0;
  for (std::string_view line : SplitLines(text)) {
    if (line == "---" && ++rules == 2) break;
    if (line.starts_with("output:")) return std::string(Trim(line.substr(7)));
  }
  return {};
}

}  // namespace

const Variable* Prompt::Find(std::string_view wanted) const {
  const auto found =
      std::find_if(variables.begin(), variables.end(), [&](const Variable& known) { return known.name == wanted; });
  return found == variables.end() ? nullptr : &*found;
}

Expected<Prompt> ParsePrompt(const std::string& name, std::string_view text, std::string_view schema,
                             const std::string& origin) {
  Prompt prompt;
  prompt.name = name;
  prompt.origin = origin;
  prompt.version = Sha256().Field(text).Field(schema).Hex().substr(0, 12);
  if (!IsValidUtf8(text)) return Fail(ErrorKind::kUsage, "the prompt is not UTF-8", origin);
  int number = 0;
  int rules = 0;
  std::string* part = nullptr;
  for (std::string_view line : SplitLines(text)) {
    ++number;
    const std::string where = origin + ":" + std::to_string(number);
    if (rules < 2) {
      if (line == "---") {
        ++rules;
        continue;
      }
      if (rules == 0) return Fail(ErrorKind::kUsage, "a prompt starts with a line of three dashes", where);
      if (Trim(line).empty() || line.starts_with('#')) continue;
      const size_t colon = line.find(':');
      if (colon == std::string_view::npos) return Fail(ErrorKind::kUsage, "a setting is `name: value`", where);
      if (Status set = SetField(&prompt, std::string(Trim(line.substr(0, colon))),
                                std::string(Trim(line.substr(colon + 1))), where);
          !set.ok()) {
        return Fail(set);
      }
      continue;
    }
    if (line == "# System") {
      part = &prompt.system;
    } else if (line == "# Task") {
      part = &prompt.task;
    } else if (part != nullptr) {
      *part += std::string(line) + "\n";
    } else if (!Trim(line).empty()) {
      return Fail(ErrorKind::kUsage, "text before the heading `# System` or `# Task`", where);
    }
  }
  prompt.system = Trim(prompt.system);
  prompt.task = Trim(prompt.task);
  if (prompt.system.empty() || prompt.task.empty()) {
    return Fail(ErrorKind::kUsage, "a prompt has two parts, `# System` and `# Task`", origin);
  }
  for (const std::string* part_text : {&prompt.system, &prompt.task}) {
    if (Status closed = CheckParts(*part_text, origin); !closed.ok()) return Fail(closed);
    for (const std::string& used : UsedNames(*part_text)) {
      if (prompt.Find(used) == nullptr) {
        return Fail(ErrorKind::kUsage, "{{" + used + "}} is not in `variables`", origin);
      }
    }
  }
  if (!schema.empty()) {
    Expected<Json> parsed = ParseJson(schema, origin + ": schema");
    if (!parsed) return Fail(parsed.error());
    if (const Status good = models::CheckSchema(*parsed); !good.ok()) {
      return Fail(ErrorKind::kUsage, good.message(), origin + ": schema " + good.where());
    }
    prompt.output_schema = *std::move(parsed);
  }
  return prompt;
}

std::string Render(std::string_view text, const std::map<std::string, std::string>& values) {
  const auto value = [&](std::string_view name) -> const std::string& {
    static const std::string empty;
    const auto found = values.find(std::string(name));
    return found == values.end() ? empty : found->second;
  };
  std::string result;
  bool shown = true;
  for (std::string_view line : SplitLines(text)) {
    if (const std::string_view name = PartName(line, '#'); !name.empty()) {
      shown = !Trim(value(name)).empty();
      continue;
    }
    if (!PartName(line, '/').empty()) {
      shown = true;
      continue;
    }
    if (!shown) continue;
    // What was put in is not looked at again: a user's text may hold braces.
    size_t at = 0;
    while (true) {
      const size_t open = line.find("{{", at);
      const size_t close = open == std::string_view::npos ? open : line.find("}}", open);
      if (close == std::string_view::npos) break;
      const std::string_view name = line.substr(open + 2, close - open - 2);
      result += line.substr(at, open - at);
      result += IsName(name) ? value(name) : std::string(line.substr(open, close + 2 - open));
      at = close + 2;
    }
    result += std::string(line.substr(at)) + "\n";
  }
  while (result.ends_with('\n')) result.pop_back();
  return result;
}

Expected<PromptLibrary> PromptLibrary::Load(const fs::path& built_in, const fs::path& own) {
  PromptLibrary library;
  for (const fs::path& folder : {built_in, own}) {
    std::error_code error;
    if (folder.empty() || !fs::is_directory(folder, error)) continue;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      const fs::path& file = at->path();
      if (file.extension() != ".md") continue;
      const Expected<std::string> text = ReadFile(file, size_t{1} << 20);
      if (!text) return Fail(text.error());
      std::string schema;
      if (const std::string output = OutputName(*text); !output.empty()) {
        if (output.find('/') != std::string::npos) {
          return Fail(ErrorKind::kUsage, "`output` names a file beside the prompt", file.string());
        }
        fs::path schema_file = folder / output;
        // A user's prompt may use our schema.
        if (!fs::exists(schema_file, error)) schema_file = built_in / output;
        Expected<std::string> schema_text = ReadFile(schema_file, size_t{1} << 20);
        if (!schema_text) return Fail(schema_text.error());
        schema = *std::move(schema_text);
      }
      const std::string name = file.stem().string();
      Expected<Prompt> prompt = ParsePrompt(name, *text, schema, folder == built_in ? "built-in" : file.string());
      if (!prompt) {
        const Status& status = prompt.error();
        return Fail(status.kind(), status.message(), file.string() + " (" + status.where() + ")", status.remedy());
      }
      library.prompts_[name] = *std::move(prompt);
    }
  }
  if (library.prompts_.empty()) return Fail(ErrorKind::kEnvironment, "there are no prompts", built_in.string());
  return library;
}

Expected<const Prompt*> PromptLibrary::Get(std::string_view name) const {
  const auto found = prompts_.find(std::string(name));
  if (found != prompts_.end()) return &found->second;
  std::vector<std::string> names;
  for (const auto& [known, prompt] : prompts_) names.push_back(known);
  return Fail(ErrorKind::kNotFound, "there is no prompt '" + std::string(name) + "'", {},
              "The prompts are " + Join(names, ", ") + ".");
}

}  // namespace kernelwright::prompts
