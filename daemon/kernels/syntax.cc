// Reads functions, comments, imports, constants and errors off the syntax tree; see syntax.h.
#include "daemon/kernels/syntax.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "daemon/kernels/tree.h"

namespace kernelwright::kernels {
namespace {

std::string_view Trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n\f");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n\f") - first + 1);
}

bool IsIdentifierByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80) != 0;
}

std::string FirstLine(std::string_view text) {
  std::string line(Trim(text.substr(0, text.find('\n'))));
  if (line.size() > 60) line = line.substr(0, 57) + "…";
  return line;
}

// ---- comments ----

// A comment line that goes on with the inputs of the line above: `w=f32[8,8]`, not prose.
bool LooksLikeInput(std::string_view text) {
  size_t i = 0;
  while (i < text.size() && (IsIdentifierByte(text[i]) || text[i] == '.')) ++i;
  if (i == 0) return false;
  while (i < text.size() && text[i] == '[') {
    const size_t close = text.find(']', i);
    if (close == std::string_view::npos) return false;
    i = close + 1;
    while (i < text.size() && (IsIdentifierByte(text[i]) || text[i] == '.')) ++i;
  }
  while (i < text.size() && text[i] == ' ') ++i;
  return i < text.size() && text[i] == '=';
}

bool IsOpenEnded(std::string_view text) {
  int depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '(' || c == '{') ++depth;
    if (c == ']' || c == ')' || c == '}') --depth;
  }
  text = Trim(text);
  return depth > 0 || (!text.empty() && text.back() == ',');
}

constexpr std::string_view kMarker = "kernelwright:";

// Comment lines that end on the line before `offset` (the first byte of a line), read upwards while there are any.
std::optional<InputsComment> InputsAbove(const std::string& text, uint32_t offset) {
  struct Line {
    std::string_view body;  // after "#", trimmed
    uint32_t offset = 0;
  };
  std::vector<Line> lines;
  size_t line_start = text.rfind('\n', offset == 0 ? 0 : offset - 1);
  line_start = offset == 0 ? 0 : (line_start == std::string::npos ? 0 : line_start + 1);
  while (line_start > 0) {
    const size_t end = line_start - 1;
    const size_t previous = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
    const size_t start = previous == std::string::npos ? 0 : previous + 1;
    const std::string_view line = std::string_view(text).substr(start, end - start);
    const std::string_view trimmed = Trim(line);
    if (trimmed.empty() || trimmed.front() != '#') break;
    const std::string_view body = Trim(trimmed.substr(1));
    lines.push_back({body, static_cast<uint32_t>(body.empty() ? start : body.data() - text.data())});
    line_start = start;
  }
  std::reverse(lines.begin(), lines.end());
  std::optional<InputsComment> comment;
  for (Line line : lines) {
    if (line.body.starts_with(kMarker)) {
      const std::string_view rest = Trim(line.body.substr(kMarker.size()));
      if (!comment) comment.emplace();
      line = {rest, static_cast<uint32_t>(rest.empty() ? line.offset : rest.data() - text.data())};
    } else if (!comment || !(comment->text.empty() || IsOpenEnded(comment->text) || LooksLikeInput(line.body))) {
      if (comment) break;
      continue;
    }
    if (!comment->text.empty()) comment->text += ' ';
    comment->pieces.push_back({static_cast<uint32_t>(comment->text.size()), line.offset});
    comment->text += line.body;
  }
  return comment;
}

// ---- functions ----

std::vector<FunctionParameter> ReadParameters(const Node& parameters) {
  std::vector<FunctionParameter> result;
  bool keyword_only = false;
  for (const Node& child : parameters.Children()) {
    FunctionParameter parameter;
    parameter.keyword_only = keyword_only;
    if (child.Is("keyword_separator") || child.Is("*")) {
      keyword_only = true;
      continue;
    }
    if (child.Is("identifier")) {
      parameter.name = child.text();
    } else if (child.Is("default_parameter") || child.Is("typed_default_parameter")) {
      parameter.name = child.Field("name").text();
      const Node value = child.Field("value");
      parameter.default_text = value.text();
      parameter.default_range = {value.begin(), value.end()};
    } else if (child.Is("typed_parameter") || child.Is("list_splat_pattern") || child.Is("dictionary_splat_pattern")) {
      Node inner = child;
      while (inner && !inner.Is("identifier")) {
        if (inner.Is("list_splat_pattern")) keyword_only = true;
        parameter.variadic =
            parameter.variadic || inner.Is("list_splat_pattern") || inner.Is("dictionary_splat_pattern");
        const auto children = inner.NamedChildren();
        if (children.empty()) break;
        inner = children.front();
      }
      parameter.name = inner.text();
    } else {
      continue;
    }
    result.push_back(std::move(parameter));
  }
  return result;
}

void CollectFunctions(const Node& node, const std::string& prefix, bool top_level, bool in_class,
                      const SourceFile& file, std::vector<FunctionInfo>& functions) {
  for (const Node& child : node.Children()) {
    Node definition = child;
    std::vector<std::string> decorators;
    if (child.Is("decorated_definition")) {
      definition = child.Field("definition");
      for (const Node& decorator : child.Children()) {
        if (decorator.Is("decorator")) decorators.emplace_back(Trim(decorator.text().substr(1)));
      }
    }
    if (definition.Is("class_definition")) {
      const std::string name(definition.Field("name").text());
      CollectFunctions(definition.Field("body"), prefix + name + ".", false, true, file, functions);
    } else if (definition.Is("function_definition")) {
      FunctionInfo function;
      const Node name = definition.Field("name");
      const Node body = definition.Field("body");
      function.name = name.text();
      function.qualified_name = prefix + function.name;
      function.range = {definition.begin(), definition.end()};
      function.range_with_decorators = {child.begin(), child.end()};
      function.body = {body.begin(), body.end()};
      function.position = file.Position(name.begin());
      function.parameters = ReadParameters(definition.Field("parameters"));
      function.decorators = std::move(decorators);
      function.top_level = top_level;
      function.in_class = in_class;
      function.inputs = InputsAbove(file.text(), child.begin());
      if (!function.inputs && child.begin() != definition.begin()) {
        function.inputs = InputsAbove(file.text(), definition.begin());
      }
      const std::string inner = function.qualified_name + ".";
      functions.push_back(std::move(function));
      CollectFunctions(body, inner, false, false, file, functions);
    } else {
      // if, try, with, for, … keep the scope.
      CollectFunctions(child, prefix, top_level, in_class, file, functions);
    }
  }
}

// ---- imports and constants ----

void CollectImports(const Node& root, std::vector<Import>& imports) {
  Walk(root, [&](const Node& node) {
    const bool plain = node.Is("import_statement");
    if (!plain && !node.Is("import_from_statement") && !node.Is("future_import_statement")) return true;
    const bool top_level = node.parent().Is("module");
    const Node module = node.Field("module_name");
    for (const Node& child : node.NamedChildren()) {
      if (child == module) continue;
      Import entry;
      entry.range = {node.begin(), node.end()};
      entry.top_level = top_level;
      const bool aliased = child.Is("aliased_import");
      const std::string name(aliased ? child.Field("name").text() : child.text());
      if (plain) {
        entry.module = name;
        entry.alias = aliased ? std::string(child.Field("alias").text()) : name.substr(0, name.find('.'));
      } else {
        entry.module = node.Is("future_import_statement") ? "__future__" : std::string(module.text());
        entry.name = child.Is("wildcard_import") ? "*" : name;
        entry.alias = aliased ? std::string(child.Field("alias").text()) : entry.name;
      }
      imports.push_back(std::move(entry));
    }
    return false;
  });
}

bool IsSequence(const Node& node) {
  return node.Is("expression_list") || node.Is("tuple") || node.Is("list") || node.Is("pattern_list") ||
         node.Is("tuple_pattern") || node.Is("list_pattern");
}

void BindConstant(const Node& target, const Node& value, const std::string& prefix,
                  std::vector<ModuleConstant>& constants) {
  if (!target || !value) return;
  if (target.Is("identifier")) {
    constants.push_back({prefix + std::string(target.text()), std::string(value.text()), {value.begin(), value.end()}});
  } else if (IsSequence(target) && IsSequence(value)) {
    const auto targets = target.NamedChildren();
    const auto values = value.NamedChildren();
    if (targets.size() != values.size()) return;
    for (size_t i = 0; i < targets.size(); ++i) BindConstant(targets[i], values[i], prefix, constants);
  }
}

void CollectConstants(const Node& body, const std::string& prefix, std::vector<ModuleConstant>& constants) {
  for (Node statement : body.NamedChildren()) {
    if (statement.Is("decorated_definition")) statement = statement.Field("definition");
    if (statement.Is("class_definition")) {
      CollectConstants(statement.Field("body"), prefix + std::string(statement.Field("name").text()) + ".", constants);
    }
    if (!statement.Is("expression_statement")) continue;
    for (const Node& assignment : statement.NamedChildren()) {
      // a = b = 128 nests to the right; every target is bound to the last value.
      std::vector<Node> targets;
      Node value = assignment;
      while (value.Is("assignment")) {
        targets.push_back(value.Field("left"));
        value = value.Field("right");
      }
      for (const Node& target : targets) BindConstant(target, value, prefix, constants);
    }
  }
}

// ---- errors ----

void CollectErrors(const Node& root, const SourceFile& file, std::vector<SyntaxError>& errors) {
  const auto opening = [](const Node& node) { return node.Is("(") || node.Is("[") || node.Is("{"); };
  Walk(root, [&](const Node& node) {
    if (node.missing()) {
      errors.push_back({file.Position(node.begin()), "'" + std::string(node.type()) + "' is missing here"});
      return false;
    }
    if (node.Is("print_statement") && !node.has_error()) {
      errors.push_back({file.Position(node.begin()), "`print` is a function in Python 3: write print(…)"});
      return false;
    }
    if (node.Is("ERROR")) {
      // An unclosed bracket swallows what follows it; the bracket is what the user has to look at.
      std::vector<Node> open;
      for (const Node& child : node.Children()) {
        if (opening(child)) open.push_back(child);
        if ((child.Is(")") || child.Is("]") || child.Is("}")) && !open.empty()) open.pop_back();
      }
      if (!open.empty()) {
        errors.push_back(
            {file.Position(open.back().begin()), "'" + std::string(open.back().text()) + "' was never closed"});
      } else {
        const std::string near = FirstLine(node.text());
        errors.push_back({file.Position(node.begin()),
                          near.empty() ? std::string("invalid syntax") : "invalid syntax near `" + near + "`"});
      }
      return false;
    }
    return true;
  });
  std::stable_sort(errors.begin(), errors.end(), [](const SyntaxError& a, const SyntaxError& b) {
    return std::pair(a.position.line, a.position.byte_column) < std::pair(b.position.line, b.position.byte_column);
  });
}

bool MentionsPallasCall(const ReferencedNames& names) {
  return names.names.contains("pallas_call") ||
         std::any_of(names.attributes.begin(), names.attributes.end(), [](const std::string& text) {
           return text.ends_with(".pallas_call") || text.find(".pallas_call.") != std::string::npos;
         });
}

// Names of the file's functions that `names` may call: plain names, and the last part of attributes (methods).
bool Calls(const ReferencedNames& names, const FunctionInfo& callee) {
  if (names.names.contains(callee.name)) return true;
  return std::any_of(names.attributes.begin(), names.attributes.end(), [&](const std::string& text) {
    const size_t dot = text.rfind('.');
    return text.substr(dot + 1) == callee.name;
  });
}

std::string JoinNames(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) {
    if (!joined.empty()) joined += ", ";
    joined += name;
  }
  return joined;
}

}  // namespace

uint32_t InputsComment::FileOffset(uint32_t text_offset) const {
  uint32_t result = 0;
  for (const Piece& piece : pieces) {
    if (piece.text_offset <= text_offset) result = piece.file_offset + (text_offset - piece.text_offset);
  }
  return result;
}

SourceFile::SourceFile(std::string path, std::string text)
    : path_(std::move(path)), tree_(std::make_unique<Tree>(std::move(text))) {
  const std::string& source = tree_->text();
  line_starts_.push_back(0);
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\n') line_starts_.push_back(static_cast<uint32_t>(i + 1));
  }
  CollectErrors(tree_->root(), *this, errors_);
  CollectFunctions(tree_->root(), "", true, false, *this, functions_);
  CollectImports(tree_->root(), imports_);
  CollectConstants(tree_->root(), "", constants_);
}

SourceFile::~SourceFile() = default;
SourceFile::SourceFile(SourceFile&&) noexcept = default;
SourceFile& SourceFile::operator=(SourceFile&&) noexcept = default;

const std::string& SourceFile::text() const { return tree_->text(); }

Status SourceFile::CheckSyntax() const {
  if (errors_.empty()) return {};
  const SyntaxError& error = errors_.front();
  return {ErrorKind::kUserCode, error.message,
          path_ + ":" + std::to_string(error.position.line) + ":" + std::to_string(error.position.column),
          "Correct the syntax and run again"};
}

SourcePosition SourceFile::Position(uint32_t byte_offset) const {
  const auto line = std::upper_bound(line_starts_.begin(), line_starts_.end(), byte_offset) - 1;
  const std::string_view before = std::string_view(text()).substr(*line, byte_offset - *line);
  const auto characters = std::count_if(before.begin(), before.end(), [](char c) { return (c & 0xc0) != 0x80; });
  return {static_cast<int>(line - line_starts_.begin()) + 1, static_cast<int>(characters) + 1,
          static_cast<int>(byte_offset - *line) + 1};
}

uint32_t SourceFile::Offset(int line, int byte_column) const {
  if (line < 1) return 0;
  if (static_cast<size_t>(line) > line_starts_.size()) return static_cast<uint32_t>(text().size());
  const uint32_t start = line_starts_[line - 1];
  const uint32_t end =
      static_cast<size_t>(line) < line_starts_.size() ? line_starts_[line] - 1 : static_cast<uint32_t>(text().size());
  return std::min(end, start + static_cast<uint32_t>(std::max(byte_column, 1) - 1));
}

Expected<FunctionInfo> SourceFile::FindFunction(std::string_view qualified_name) const {
  std::string wanted(qualified_name);
  for (size_t at = wanted.find(".<locals>"); at != std::string::npos; at = wanted.find(".<locals>")) {
    wanted.erase(at, std::string_view(".<locals>").size());
  }
  for (auto it = functions_.rbegin(); it != functions_.rend(); ++it) {
    if (it->qualified_name == wanted) return *it;
  }
  std::vector<std::string> all;
  std::vector<std::string> shown;
  for (const FunctionInfo& function : functions_) {
    all.push_back(function.qualified_name);
    if ((function.top_level || function.in_class) &&
        std::find(shown.begin(), shown.end(), function.qualified_name) == shown.end()) {
      shown.push_back(function.qualified_name);
    }
  }
  const std::string message =
      "there is no function `" + wanted + "`" +
      (shown.empty() ? "; the file defines no functions" : "; functions here: " + JoinNames(shown));
  const auto closest = ClosestName(wanted, all);
  return Fail(ErrorKind::kNotFound, message, path_,
              closest ? "Did you mean " + path_ + "::" + *closest + "?" : "Name one of them after `::`");
}

ReferencedNames SourceFile::References(const FunctionInfo& function) const {
  return References(function.range_with_decorators);
}

ReferencedNames SourceFile::References(ByteRange range) const {
  ReferencedNames result;
  Walk(tree_->root(), [&](const Node& node) {
    if (node.end() <= range.begin || node.begin() >= range.end) return false;
    if (node.begin() < range.begin || node.end() > range.end) return true;
    const Node parent = node.parent();
    if (node.Is("attribute")) {
      std::string dotted;
      for (const char c : node.text()) {
        if (!std::isspace(static_cast<unsigned char>(c)) && c != '\\') dotted += c;
      }
      result.attributes.insert(std::move(dotted));
    } else if (node.Is("identifier")) {
      const bool binds = (parent.Is("function_definition") && parent.Field("name") == node) ||
                         (parent.Is("keyword_argument") && parent.Field("name") == node) ||
                         (parent.Is("attribute") && parent.Field("attribute") == node);
      if (!binds) result.names.insert(std::string(node.text()));
    }
    return true;
  });
  return result;
}

bool SourceFile::ReachesPallasCall(const FunctionInfo& function) const {
  std::vector<bool> seen(functions_.size(), false);
  std::vector<const FunctionInfo*> pending = {&function};
  while (!pending.empty()) {
    const FunctionInfo* current = pending.back();
    pending.pop_back();
    const ReferencedNames names = References(*current);
    if (MentionsPallasCall(names)) return true;
    for (size_t i = 0; i < functions_.size(); ++i) {
      if (seen[i] || !Calls(names, functions_[i])) continue;
      seen[i] = true;
      pending.push_back(&functions_[i]);
    }
  }
  return false;
}

Expected<FunctionInfo> SourceFile::DefaultFunction() const {
  std::vector<const FunctionInfo*> all;
  for (const FunctionInfo& function : functions_) {
    if (!function.top_level || function.name.starts_with("_")) continue;
    // A redefinition hides the earlier one.
    std::erase_if(all, [&](const FunctionInfo* other) { return other->name == function.name; });
    all.push_back(&function);
  }
  std::vector<const FunctionInfo*> reaching;
  for (const FunctionInfo* function : all) {
    if (ReachesPallasCall(*function)) reaching.push_back(function);
  }
  std::vector<const FunctionInfo*> choice = reaching.empty() ? all : reaching;
  const auto narrow = [&](const auto& keep) {
    if (choice.size() <= 1) return;
    std::vector<const FunctionInfo*> kept;
    std::copy_if(choice.begin(), choice.end(), std::back_inserter(kept), keep);
    if (kept.size() == 1) choice = kept;
  };
  narrow([](const FunctionInfo* function) { return function->inputs.has_value(); });
  narrow([&](const FunctionInfo* function) {
    return std::none_of(choice.begin(), choice.end(), [&](const FunctionInfo* other) {
      return other != function && Calls(References(*other), *function);
    });
  });
  if (choice.size() == 1) return *choice.front();
  std::vector<std::string> names;
  names.reserve(choice.size());
  for (const FunctionInfo* function : choice) names.push_back(function->name);
  if (names.empty()) {
    return Fail(ErrorKind::kUsage, "the file defines no public function", path_,
                "Name the function: " + path_ + "::function");
  }
  return Fail(ErrorKind::kUsage,
              (reaching.empty() ? "no function reaches a pallas_call here, and there are several: "
                                : "several functions reach a pallas_call: ") +
                  JoinNames(names),
              path_, "Name one: " + path_ + "::" + names.front());
}

const FunctionInfo* SourceFile::EnclosingFunction(uint32_t offset) const {
  const FunctionInfo* innermost = nullptr;
  for (const FunctionInfo& function : functions_) {
    if (function.range.begin <= offset && offset < function.range.end &&
        (innermost == nullptr || function.range.begin >= innermost->range.begin)) {
      innermost = &function;
    }
  }
  return innermost;
}

std::optional<std::string> ClosestName(std::string_view name, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    std::vector<size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 1; i <= name.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        const size_t substituted = diagonal + (name[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace kernelwright::kernels
