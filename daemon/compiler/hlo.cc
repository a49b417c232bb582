// A line parser: the scheduled module is printed one instruction a line, computations in braces, and the tables of file
// names and stack frames stand before them.
#include "daemon/compiler/hlo.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

namespace kernelwright::compiler {
namespace {

std::string_view Trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t' || s.front() == '\r')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

std::optional<int> ParseInt(std::string_view s) {
  int value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (error != std::errc{} || end == s.data()) return std::nullopt;
  return value;
}

std::optional<int> Field(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return ParseInt(line.substr(at + key.size()));
}

// How deep in brackets a text ends that is read piece by piece, quotes respected.
struct BracketState {
  int depth = 0;
  bool quoted = false;

  // Reads from `begin` on. With `until_closed` it stops behind the bracket that closes the first one; npos: the end.
  size_t Read(std::string_view s, size_t begin = 0, bool until_closed = false) {
    for (size_t i = begin; i < s.size(); ++i) {
      const char c = s[i];
      if (quoted) {
        if (c == '\\') {
          ++i;
        } else if (c == '"') {
          quoted = false;
        }
        continue;
      }
      if (c == '"') quoted = true;
      if (c == '(' || c == '[' || c == '{') ++depth;
      if ((c == ')' || c == ']' || c == '}') && --depth == 0 && until_closed) return i + 1;
    }
    return std::string_view::npos;
  }
};

// Position behind the bracket that closes the one at `open`; npos when it stays open.
size_t Balanced(std::string_view s, size_t open) { return BracketState().Read(s, open, true); }

std::vector<std::string_view> Split(std::string_view s) {
  std::vector<std::string_view> out;
  size_t start = 0;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < s.size(); ++i) {
    const char c = s[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c == ',' && depth == 0) {
      out.push_back(Trim(s.substr(start, i - start)));
      start = i + 1;
    }
  }
  if (const auto rest = Trim(s.substr(start)); !rest.empty()) out.push_back(rest);
  return out;
}

struct FileLocation {
  int file = 0;
  int line = 0;
};
struct StackFrame {
  int location = 0;
};

enum class Table { kNone, kFiles, kFunctions, kLocations, kFrames };

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Expected<HloModule> Run() {
    int number = 0;
    while (!text_.empty()) {
      int lines = 0;
      const std::string_view line = Trim(TakeLine(&lines));
      number += lines;
      if (Status status = Line(line, number); !status.ok()) return Fail(std::move(status));
    }
    if (module_.name.empty()) return Fail(Error("no HloModule line: the text is not an HLO dump", number));
    if (open_) return Fail(Error("the dump ends inside a computation", number));
    return std::move(module_);
  }

 private:
  static Status Error(std::string what, int line) {
    return {ErrorKind::kEnvironment, std::move(what), "TLP-hlo line " + std::to_string(line),
            "Compile again; if it stays, this libtpu version writes another format"};
  }

  // The next line. An instruction whose attributes hold a map with a line for each entry is one line.
  std::string_view TakeLine(int* lines) {
    size_t end = text_.find('\n');
    *lines = 1;
    if (open_ && text_.substr(0, end).find(" = ") != std::string_view::npos) {
      BracketState state;
      state.Read(text_.substr(0, end));
      while (end != std::string_view::npos && state.depth > 0) {
        const size_t begin = end;
        end = text_.find('\n', begin + 1);
        state.Read(text_.substr(begin, end == std::string_view::npos ? end : end - begin));
        ++*lines;
      }
      // A bracket that nothing closes belongs to an instruction that is cut off; its own line says so.
      if (state.depth > 0 && *lines > 1) {
        *lines = 1;
        end = text_.find('\n');
      }
    }
    const std::string_view line = text_.substr(0, end);
    text_ = end == std::string_view::npos ? std::string_view{} : text_.substr(end + 1);
    return line;
  }

  Status Line(std::string_view line, int number) {
    if (line.empty()) {
      table_ = Table::kNone;
      return {};
    }
    if (line.starts_with("HloModule ")) {
      const std::string_view rest = line.substr(10);
      module_.name = std::string(rest.substr(0, rest.find_first_of(" ,")));
      return {};
    }
    if (!open_ && TableLine(line)) return {};
    if (!open_) {
      if (line.ends_with("{") && line.find("->") != std::string_view::npos) return OpenComputation(line);
      return {};
    }
    if (line == "}" || line.starts_with("}, ")) {
      open_ = false;
      return {};
    }
    return Instruction(line, number);
  }

  bool TableLine(std::string_view line) {
    if (line == "FileNames")
      table_ = Table::kFiles;
    else if (line == "FunctionNames")
      table_ = Table::kFunctions;
    else if (line == "FileLocations")
      table_ = Table::kLocations;
    else if (line == "StackFrames")
      table_ = Table::kFrames;
    else if (table_ == Table::kNone)
      return false;
    else
      TableRow(line);
    return true;
  }

  void TableRow(std::string_view line) {
    const auto index = ParseInt(line);
    const size_t space = line.find(' ');
    if (!index || space == std::string_view::npos) return;
    const std::string_view rest = line.substr(space + 1);
    if (table_ == Table::kFiles && rest.size() >= 2 && rest.front() == '"') {
      files_[*index] = std::string(rest.substr(1, rest.size() - 2));
    } else if (table_ == Table::kLocations) {
      locations_[*index] = {Field(rest, "file_name_id=").value_or(0), Field(rest, " line=").value_or(0)};
    } else if (table_ == Table::kFrames) {
      frames_[*index] = {Field(rest, "file_location_id=").value_or(0)};
    }
  }

  Status OpenComputation(std::string_view line) {
    HloComputation computation;
    if (line.starts_with("ENTRY ")) {
      computation.is_entry = true;
      line.remove_prefix(6);
    }
    if (line.starts_with('%')) line.remove_prefix(1);
    computation.name = std::string(line.substr(0, line.find_first_of(" (")));
    module_.computations.push_back(std::move(computation));
    open_ = true;
    return {};
  }

  // [ROOT ]%name = type opcode(operands), attributes
  Status Instruction(std::string_view line, int number) {
    HloInstruction instruction;
    if (line.starts_with("ROOT ")) {
      instruction.is_root = true;
      line.remove_prefix(5);
    }
    const size_t equals = line.find(" = ");
    if (equals == std::string_view::npos) return Error("expected ' = ' in an instruction", number);
    std::string_view name = line.substr(0, equals);
    if (name.starts_with('%')) name.remove_prefix(1);
    instruction.name = std::string(name);
    std::string_view rest = line.substr(equals + 3);
    size_t type_end = 0;
    if (rest.starts_with('(')) {
      type_end = Balanced(rest, 0);
    } else {
      // Up to the space before the opcode; layouts hold no spaces.
      type_end = rest.find(' ');
    }
    if (type_end == std::string_view::npos) return Error("an instruction is cut off in its type", number);
    instruction.type = std::string(rest.substr(0, type_end));
    rest = Trim(rest.substr(type_end));
    const size_t open = rest.find('(');
    if (open == std::string_view::npos) return Error("an instruction has no operand list", number);
    instruction.opcode = std::string(rest.substr(0, open));
    const size_t close = Balanced(rest, open);
    if (close == std::string_view::npos) return Error("an instruction is cut off in its operands", number);
    const std::string_view inside = rest.substr(open + 1, close - open - 2);
    for (const std::string_view operand : Split(inside)) {
      const size_t percent = operand.rfind('%');
      if (percent == std::string_view::npos) {
        instruction.literal = std::string(inside);
        break;
      }
      instruction.operands.emplace_back(operand.substr(percent + 1));
    }
    Attributes(rest.substr(close), &instruction);
    module_.computations.back().instructions.push_back(std::move(instruction));
    return {};
  }

  void Attributes(std::string_view attributes, HloInstruction* instruction) {
    for (const std::string_view part : Split(attributes)) {
      const std::string_view key = part.substr(0, part.find('='));
      if (part.empty()) continue;
      if (key == "metadata" && part.size() > key.size()) Metadata(part.substr(key.size() + 1), instruction);
      // Names, provenance and the scheduler's notes do not change what is computed; a kernel's body is in its config.
      if (key == "calls" || key == "body" || key == "to_apply" || key == "metadata" || key == "frontend_attributes" ||
          key == "sharding" || (key == "backend_config" && instruction->opcode != "custom-call")) {
        continue;
      }
      instruction->attributes += part;
      instruction->attributes += ',';
    }
    for (const std::string_view key : {"calls=%", "body=%", "to_apply=%"}) {
      const size_t at = attributes.find(key);
      if (at == std::string_view::npos) continue;
      const std::string_view rest = attributes.substr(at + key.size());
      instruction->calls = std::string(rest.substr(0, rest.find_first_of(" ,")));
      break;
    }
  }

  void Metadata(std::string_view metadata, HloInstruction* instruction) const {
    instruction->op_name = Quoted(metadata, "op_name=\"");
    instruction->file = Quoted(metadata, "source_file=\"");
    instruction->line = Field(metadata, "source_line=").value_or(0);
    if (const auto frame = Field(metadata, "stack_frame_id=")) {
      const auto stack = frames_.find(*frame);
      if (stack == frames_.end()) return;
      const auto location = locations_.find(stack->second.location);
      if (location == locations_.end()) return;
      const auto file = files_.find(location->second.file);
      if (file == files_.end()) return;
      instruction->file = file->second;
      instruction->line = location->second.line;
    }
  }

  static std::string Quoted(std::string_view s, std::string_view key) {
    const size_t at = s.find(key);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = s.substr(at + key.size());
    return std::string(rest.substr(0, rest.find('"')));
  }

  std::string_view text_;
  HloModule module_;
  bool open_ = false;
  Table table_ = Table::kNone;
  std::map<int, std::string> files_;
  std::map<int, FileLocation> locations_;
  std::map<int, StackFrame> frames_;
};

const HloComputation* FindComputation(const HloModule& module, std::string_view name) {
  for (const HloComputation& computation : module.computations) {
    if (computation.name == name) return &computation;
  }
  return nullptr;
}

// Canonical text of a computation: operands by position instead of by name.
void AppendBody(const HloModule& module, std::string_view name, std::set<std::string>* open, std::string* out) {
  const HloComputation* computation = FindComputation(module, name);
  if (computation == nullptr || !open->insert(std::string(name)).second) {
    *out += "?";
    return;
  }
  std::map<std::string, size_t> position;
  *out += "{";
  for (const HloInstruction& instruction : computation->instructions) {
    *out += instruction.type + " " + instruction.opcode + "(";
    for (const std::string& operand : instruction.operands) {
      const auto it = position.find(operand);
      *out += it == position.end() ? "?," : std::to_string(it->second) + ",";
    }
    *out += instruction.literal + ")" + instruction.attributes;
    if (instruction.is_root) *out += "*";
    if (!instruction.calls.empty()) AppendBody(module, instruction.calls, open, out);
    *out += ";";
    position.emplace(instruction.name, position.size());
  }
  *out += "}";
  open->erase(std::string(name));
}

}  // namespace

const HloInstruction* HloModule::Find(std::string_view instruction) const {
  for (const HloComputation& computation : computations) {
    for (const HloInstruction& candidate : computation.instructions) {
      if (candidate.name == instruction) return &candidate;
    }
  }
  return nullptr;
}

std::string HloModule::Signature(std::string_view instruction) const {
  for (const HloComputation& computation : computations) {
    for (const HloInstruction& candidate : computation.instructions) {
      if (candidate.name != instruction) continue;
      std::string out = candidate.opcode + " " + candidate.type + "(";
      for (const std::string& operand : candidate.operands) {
        const auto it = std::find_if(computation.instructions.begin(), computation.instructions.end(),
                                     [&](const HloInstruction& i) { return i.name == operand; });
        out += it == computation.instructions.end() ? "?," : it->type + ",";
      }
      out += ")" + candidate.attributes;
      if (!candidate.calls.empty()) {
        std::set<std::string> open;
        AppendBody(*this, candidate.calls, &open, &out);
      }
      return out;
    }
  }
  return {};
}

Expected<HloModule> ParseHlo(std::string_view text) { return Parser(text).Run(); }

}  // namespace kernelwright::compiler
