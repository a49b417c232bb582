// Look-ups on the syntax tree and edits of it; see fix_source.h.
#include "daemon/diagnose/fix_source.h"

#include <algorithm>

#include "daemon/base/hash.h"

namespace kernelwright::diagnose {
namespace {

bool IsDefinition(const Node& node) { return node.Is("function_definition"); }

// A statement that holds other statements: searching all of it would find too much.
bool IsCompound(const Node& node) {
  return IsDefinition(node) || node.Is("decorated_definition") || node.Is("class_definition") ||
         node.Is("if_statement") || node.Is("for_statement") || node.Is("while_statement") ||
         node.Is("with_statement") || node.Is("try_statement") || node.Is("block") || node.Is("module");
}

uint32_t ByteOfColumn(const std::string& text, uint32_t line_start, int column) {
  uint32_t at = line_start;
  for (int c = 1; c < column && at < text.size() && text[at] != '\n'; ++c) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
  }
  return at;
}

}  // namespace

std::string_view CalleeName(const Node& call) {
  if (!call.Is("call")) return {};
  const std::string_view text = call.Field("function").text();
  const size_t dot = text.rfind('.');
  return dot == std::string_view::npos ? text : text.substr(dot + 1);
}

bool IsCallOf(const Node& node, std::initializer_list<std::string_view> names) {
  const std::string_view name = CalleeName(node);
  return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<Node> PositionalArguments(const Node& call) {
  std::vector<Node> result;
  for (const Node& child : call.Field("arguments").NamedChildren()) {
    if (child.Is("list_splat")) return {};
    if (child.Is("keyword_argument") || child.Is("dictionary_splat")) continue;
    result.push_back(child);
  }
  return result;
}

Node KeywordArgument(const Node& call, std::string_view name) {
  for (const Node& child : call.Field("arguments").NamedChildren()) {
    if (child.Is("keyword_argument") && child.Field("name").text() == name) return child;
  }
  return {};
}

Node Keyword(const Node& call, std::string_view name) { return KeywordArgument(call, name).Field("value"); }

Node Argument(const Node& call, size_t position, std::string_view name) {
  if (const Node given = Keyword(call, name)) return given;
  const auto arguments = PositionalArguments(call);
  return position < arguments.size() ? arguments[position] : Node();
}

Node StripParentheses(Node node) {
  while (node.Is("parenthesized_expression")) {
    const auto children = node.NamedChildren();
    if (children.size() != 1) return node;
    node = children.front();
  }
  return node;
}

bool IsSequence(const Node& node) { return node.Is("tuple") || node.Is("list") || node.Is("expression_list"); }

std::vector<Node> Elements(const Node& node) {
  const Node inner = StripParentheses(node);
  if (!inner) return {};
  if (IsSequence(inner)) return inner.NamedChildren();
  return {inner};
}

Node Enclosing(const Node& node, std::initializer_list<std::string_view> types) {
  for (Node at = node; at; at = at.parent()) {
    if (std::find(types.begin(), types.end(), at.type()) != types.end()) return at;
  }
  return {};
}

Node Statement(const Node& node) {
  Node at = node;
  while (at) {
    const Node above = at.parent();
    if (above.Is("block") || above.Is("module")) return at;
    at = above;
  }
  return {};
}

bool Contains(const Node& outer, const Node& inner) {
  return outer && inner && outer.begin() <= inner.begin() && inner.end() <= outer.end();
}

std::vector<Node> FindAll(const Node& below, const std::function<bool(const Node&)>& wanted) {
  std::vector<Node> found;
  kernels::Walk(below, [&](const Node& node) {
    if (wanted(node)) found.push_back(node);
    return true;
  });
  return found;
}

bool Mentions(const Node& below, std::string_view name) {
  return !FindAll(below, [&](const Node& node) { return node.Is("identifier") && node.text() == name; }).empty();
}

std::string_view SubscriptedName(const Node& node) {
  if (!node.Is("subscript")) return {};
  const Node value = node.Field("value");
  return value.Is("identifier") ? value.text() : std::string_view();
}

bool IsWholeRead(const Node& node) {
  if (SubscriptedName(node).empty()) return false;
  const auto children = node.NamedChildren();
  return children.size() > 1 && std::all_of(children.begin() + 1, children.end(), [](const Node& index) {
           return index.Is("ellipsis") || index.text() == ":" || index.text() == "...";
         });
}

std::string AsPrimary(const Node& node) {
  for (const std::string_view type : {"identifier", "call", "attribute", "subscript", "parenthesized_expression"}) {
    if (node.Is(type)) return std::string(node.text());
  }
  return "(" + std::string(node.text()) + ")";
}

FixSource::FixSource(const std::string& path, const std::string& text, const Place& place) : file_(path, text) {
  if (place.line < 1) return;
  const std::string& source = file_.text();
  const uint32_t first = file_.Offset(place.line, 1);
  uint32_t begin = ByteOfColumn(source, first, place.column);
  uint32_t end = begin;
  if (place.end_line >= place.line) {
    end = ByteOfColumn(source, file_.Offset(place.end_line, 1), place.end_column);
  }
  if (place.end_line < place.line || end <= begin) {
    begin = first;
    end = first;
    while (end < source.size() && source[end] != '\n') ++end;
  }
  while (begin < end && (source[begin] == ' ' || source[begin] == '\t')) ++begin;
  while (end > begin && (source[end - 1] == ' ' || source[end - 1] == '\t' || source[end - 1] == '\r')) --end;
  place_ = root();
  for (bool deeper = true; deeper;) {
    deeper = false;
    for (const Node& child : place_.Children()) {
      if (child.begin() <= begin && end <= child.end() && child.begin() < child.end()) {
        place_ = child;
        deeper = true;
        break;
      }
    }
  }
  // A line that opens a compound statement, or part of a longer one: the first statement that begins on it.
  if (IsCompound(place_) || place_.begin() < begin) {
    const auto starts = FindAll(place_, [&](const Node& node) {
      return node.named() && node.begin() >= begin && node.begin() < end && !IsCompound(node);
    });
    if (IsCompound(place_) && place_.begin() != begin && !starts.empty()) place_ = starts.front();
  }
}

Node FixSource::Function(const Node& node) const { return Enclosing(node, {"function_definition"}); }

Node FixSource::OutermostFunction(const Node& node) const {
  Node outermost;
  for (Node at = node; at; at = at.parent()) {
    if (at.Is("function_definition") || at.Is("decorated_definition")) outermost = at;
  }
  return outermost;
}

std::vector<Node> FixSource::AtPlace(const std::function<bool(const Node&)>& wanted) const {
  if (!place_ || place_.Is("module")) return {};
  auto found = FindAll(place_, wanted);
  if (!found.empty()) return found;
  for (Node at = place_.parent(); at && !IsCompound(at); at = at.parent()) {
    if (wanted(at)) return {at};
  }
  const Node statement = Statement(place_);
  if (statement && !IsCompound(statement)) found = FindAll(statement, wanted);
  if (!found.empty()) return found;
  return FindAll(Function(place_), [&](const Node& node) { return node.row() == place_.row() && wanted(node); });
}

Node FixSource::Resolve(const Node& use) const {
  const std::string_view name = use.text();
  if (!use.Is("identifier")) return {};
  for (Node scope = use.parent(); scope; scope = scope.parent()) {
    if (!scope.Is("function_definition") && !scope.Is("module")) continue;
    if (scope.Is("function_definition") && Mentions(scope.Field("parameters"), name)) return {};
    std::vector<Node> values;
    kernels::Walk(scope.Is("module") ? scope : scope.Field("body"), [&](const Node& node) {
      if (IsDefinition(node) || node.Is("class_definition") || node.Is("lambda")) return false;
      if (node.Is("augmented_assignment") && node.Field("left").text() == name) values.assign(2, node);
      if (node.Is("assignment")) {
        const Node left = node.Field("left");
        if (left.text() == name) {
          values.push_back(node.Field("right"));
        } else if (left.Is("pattern_list") || left.Is("tuple_pattern")) {
          const auto targets = left.NamedChildren();
          const auto parts = Elements(node.Field("right"));
          for (size_t i = 0; i < targets.size(); ++i) {
            if (targets[i].text() != name) continue;
            values.push_back(parts.size() == targets.size() ? parts[i] : Node());
          }
        }
      }
      return true;
    });
    if (values.size() == 1) return values.front();
    if (!values.empty()) return {};
  }
  return {};
}

Node FixSource::ResolveFunction(const Node& use) const {
  for (Node scope = use.parent(); scope; scope = scope.parent()) {
    if (!scope.Is("function_definition") && !scope.Is("module")) continue;
    Node found;
    kernels::Walk(scope.Is("module") ? scope : scope.Field("body"), [&](const Node& node) {
      if (!IsDefinition(node)) return !node.Is("class_definition");
      if (node.Field("name").text() == use.text()) found = node;
      return false;
    });
    if (found) return found;
  }
  return {};
}

std::string FixSource::Indent(const Node& node) const {
  const size_t newline = node.begin() == 0 ? std::string::npos : text().rfind('\n', node.begin() - 1);
  const size_t start = newline == std::string::npos ? 0 : newline + 1;
  size_t end = start;
  while (end < text().size() && (text()[end] == ' ' || text()[end] == '\t')) ++end;
  return text().substr(start, end - start);
}

std::string FixSource::Newline() const { return text().find("\r\n") == std::string::npos ? "\n" : "\r\n"; }

bool FixSource::Defines(std::string_view name) const {
  return std::any_of(file_.functions().begin(), file_.functions().end(),
                     [&](const kernels::FunctionInfo& function) { return function.name == name; });
}

FixBuilder::FixBuilder(const FixSource& source) : source_(source), hash_(Sha256Hex(source.text())) {}

void FixBuilder::Replace(ByteRange range, std::string text) {
  edits_.push_back({source_.file().path(), range, std::move(text), hash_});
}

void FixBuilder::Replace(const Node& node, std::string text) { Replace({node.begin(), node.end()}, std::move(text)); }

void FixBuilder::Insert(uint32_t at, std::string text) { Replace({at, at}, std::move(text)); }

void FixBuilder::RemoveStatement(const Node& statement) {
  const Node above = statement.parent();
  if (above.Is("block") && above.NamedChildren().size() == 1) {
    Replace(statement, "pass");
    return;
  }
  const std::string& text = source_.text();
  uint32_t begin = statement.begin();
  uint32_t end = statement.end();
  while (begin > 0 && (text[begin - 1] == ' ' || text[begin - 1] == '\t')) --begin;
  const bool own_line = begin == 0 || text[begin - 1] == '\n';
  while (end < text.size() && (text[end] == ' ' || text[end] == '\t' || text[end] == '\r')) ++end;
  if (own_line && end < text.size() && text[end] == '\n') {
    ++end;
  } else if (own_line && end == text.size() && begin > 0) {
    --begin;
  }
  if (!own_line) {
    Replace(statement, "pass");
    return;
  }
  Replace({begin, end}, "");
}

void FixBuilder::RemoveArgument(const Node& argument) {
  const std::string& text = source_.text();
  uint32_t begin = argument.begin();
  uint32_t end = argument.end();
  const auto blank = [&](uint32_t at) {
    return text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r';
  };
  uint32_t before = begin;
  while (before > 0 && blank(before - 1)) --before;
  if (before > 0 && text[before - 1] == ',') {
    begin = before - 1;
  } else {
    while (end < text.size() && blank(end)) ++end;
    if (end < text.size() && text[end] == ',') ++end;
    while (end < text.size() && (text[end] == ' ' || text[end] == '\t')) ++end;
  }
  Replace(ByteRange{begin, end}, "");
}

void FixBuilder::AddArgument(const Node& call, const std::string& argument) {
  const Node arguments = call.Field("arguments");
  Node last;
  for (const Node& child : arguments.NamedChildren()) last = child;
  if (!last) {
    Insert(arguments.begin() + 1, argument);
    return;
  }
  const std::string& text = source_.text();
  const size_t newline = text.rfind('\n', last.begin());
  const size_t line = newline == std::string::npos ? 0 : newline + 1;
  const std::string before = text.substr(line, last.begin() - line);
  const bool own_line = before.find_first_not_of(" \t") == std::string::npos && arguments.NamedChildren().size() > 1;
  Insert(last.end(), (own_line ? "," + source_.Newline() + before : ", ") + argument);
}

std::string FixBuilder::Shift(const std::string& lines, const std::string& indent) const {
  std::string result;
  size_t start = 0;
  while (start <= lines.size()) {
    const size_t end = std::min(lines.find('\n', start), lines.size());
    if (start > 0) result += source_.Newline();
    if (end > start) result += indent + lines.substr(start, end - start);
    start = end + 1;
  }
  return result;
}

void FixBuilder::InsertBefore(const Node& statement, const std::string& lines) {
  const std::string indent = source_.Indent(statement);
  std::string text = Shift(lines, indent);
  // The first line takes over the indentation that stands in front of the statement.
  text.erase(0, std::min(indent.size(), text.size()));
  Insert(statement.begin(), text + source_.Newline() + indent);
}

void FixBuilder::InsertAfter(const Node& statement, const std::string& lines) {
  Insert(statement.end(), source_.Newline() + Shift(lines, source_.Indent(statement)));
}

void FixBuilder::AddHelper(const Node& use, const std::string& name, const std::string& definition) {
  if (source_.Defines(name) || std::find(added_.begin(), added_.end(), name) != added_.end()) return;
  added_.push_back(name);
  const Node outermost = source_.OutermostFunction(use);
  const Node anchor = outermost ? outermost : Statement(use);
  const std::string& text = source_.text();
  // Comments that belong to the function stay with it.
  uint32_t at = anchor.begin();
  while (at > 0 && text[at - 1] != '\n') --at;
  while (at > 1) {
    const size_t newline = text.rfind('\n', at - 2);
    const uint32_t start = newline == std::string::npos ? 0 : static_cast<uint32_t>(newline + 1);
    const size_t word = text.find_first_not_of(" \t", start);
    if (word == std::string::npos || text[word] != '#') break;
    at = start;
    if (at == 0) break;
  }
  const std::string newline = source_.Newline();
  Insert(at, Shift(definition, source_.Indent(anchor)) + newline + newline + newline);
}

std::string FixBuilder::Module(std::string_view module, std::string_view alias, std::string_view statement) {
  const size_t dot = module.rfind('.');
  const std::string_view parent = module.substr(0, dot);
  const std::string_view leaf = module.substr(dot + 1);
  const kernels::Import* anchor = nullptr;
  std::string under_jax;
  for (const kernels::Import& entry : source_.file().imports()) {
    if (!entry.top_level) continue;
    if (entry.name == leaf && entry.module == parent) return entry.alias;
    if (entry.name.empty() && entry.module == module && entry.alias != "jax") return entry.alias;
    if (entry.name.empty() && entry.module == "jax" && parent == "jax")
      under_jax = entry.alias + "." + std::string(leaf);
    if (entry.module != "__future__" && (anchor == nullptr || entry.module.starts_with("jax"))) anchor = &entry;
  }
  if (!under_jax.empty()) return under_jax;
  if (std::find(added_.begin(), added_.end(), alias) == added_.end()) {
    added_.emplace_back(alias);
    if (anchor != nullptr) {
      Insert(anchor->range.end, source_.Newline() + std::string(statement));
    } else {
      Insert(0, std::string(statement) + source_.Newline());
    }
  }
  return std::string(alias);
}

}  // namespace kernelwright::diagnose
