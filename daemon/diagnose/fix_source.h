// The syntax around a diagnostic's place, and a builder of edits in that file. Shared by the families of fixes
// and the rewrite rules (kernels/rewrite).
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/diagnose/diagnostic.h"
#include "daemon/kernels/edits.h"
#include "daemon/kernels/syntax.h"
#include "daemon/kernels/tree.h"

namespace kernelwright::diagnose {

using kernels::ByteRange;
using kernels::Node;

// ---- look-ups on nodes ----

// "cumsum" for `jnp.cumsum(x)`; empty when the node is no call.
std::string_view CalleeName(const Node& call);
bool IsCallOf(const Node& node, std::initializer_list<std::string_view> names);
// Arguments without keywords, in order; none when a starred one is among them.
std::vector<Node> PositionalArguments(const Node& call);
Node Keyword(const Node& call, std::string_view name);          // its value
Node KeywordArgument(const Node& call, std::string_view name);  // `name=value`
// The argument given by position or by name.
Node Argument(const Node& call, size_t position, std::string_view name);
Node StripParentheses(Node node);
// Elements of a tuple or list, parentheses or none; the node itself when it is neither.
std::vector<Node> Elements(const Node& node);
bool IsSequence(const Node& node);
Node Enclosing(const Node& node, std::initializer_list<std::string_view> types);  // the node itself counts
Node Statement(const Node& node);  // the statement around it: a child of a block or of the module
bool Contains(const Node& outer, const Node& inner);
std::vector<Node> FindAll(const Node& below, const std::function<bool(const Node&)>& wanted);
// Whether the identifier is used anywhere below.
bool Mentions(const Node& below, std::string_view name);
// "o_ref" for `o_ref[...]`, `o_ref[:, 0:8]`; empty for anything else.
std::string_view SubscriptedName(const Node& node);
// `x[...]` or `x[:]`, `x[:, :]`: all of it.
bool IsWholeRead(const Node& node);
// The node's text so that `.astype(…)` or an operator may follow it: in parentheses unless it is a primary.
std::string AsPrimary(const Node& node);

// ---- the file ----

class FixSource {
 public:
  FixSource(const std::string& path, const std::string& text, const Place& place);

  const kernels::SourceFile& file() const { return file_; }
  const std::string& text() const { return file_.text(); }
  Node root() const { return file_.tree().root(); }
  // The smallest node that covers the diagnostic's range; with a line alone, what stands on that line.
  Node place() const { return place_; }
  // The innermost function (def) around a node, and the outermost one (decorators included).
  Node Function(const Node& node) const;
  Node OutermostFunction(const Node& node) const;
  // Matches at the place: below it, else in its statement, else on its line. The whole body of a compound statement
  // counts only when the place itself covers it.
  std::vector<Node> AtPlace(const std::function<bool(const Node&)>& wanted) const;
  // What a name is bound to where `use` stands: the last assignment above it in the functions around, else in the
  // module. Null for parameters and for names bound more than once in their scope.
  Node Resolve(const Node& use) const;
  // `def` of that name that is visible from `use`.
  Node ResolveFunction(const Node& use) const;
  std::string Indent(const Node& node) const;  // white space in front of the node's line
  std::string Newline() const;
  bool Defines(std::string_view name) const;  // anywhere in the file

 private:
  kernels::SourceFile file_;
  Node place_;
};

class FixBuilder {
 public:
  explicit FixBuilder(const FixSource& source);

  void Replace(const Node& node, std::string text);
  void Replace(ByteRange range, std::string text);
  void Insert(uint32_t at, std::string text);
  // Takes the statement out with its line; `pass` stays where the block would be empty.
  void RemoveStatement(const Node& statement);
  // Takes an argument out with its comma.
  void RemoveArgument(const Node& argument);
  // Adds `name=value` at the end of a call's arguments.
  void AddArgument(const Node& call, const std::string& argument);
  // A line in front of the statement, at its indentation. More than one line: separated by "\n", relative.
  void InsertBefore(const Node& statement, const std::string& lines);
  void InsertAfter(const Node& statement, const std::string& lines);
  // Defines a function in front of the outermost function around `use`, unless the file has it already.
  void AddHelper(const Node& use, const std::string& name, const std::string& definition);

  // How this file names the module; the import is added when it has none.
  std::string Jnp() { return Module("jax.numpy", "jnp", "import jax.numpy as jnp"); }
  std::string Lax() { return Module("jax.lax", "lax", "from jax import lax"); }
  std::string Pl() { return Module("jax.experimental.pallas", "pl", "from jax.experimental import pallas as pl"); }
  std::string Pltpu() {
    return Module("jax.experimental.pallas.tpu", "pltpu", "from jax.experimental.pallas import tpu as pltpu");
  }
  std::string Jax() { return Module("jax", "jax", "import jax"); }

  bool empty() const { return edits_.empty(); }
  Fix Build(std::string title) const { return {std::move(title), edits_, {}}; }

 private:
  std::string Module(std::string_view module, std::string_view alias, std::string_view statement);
  std::string Shift(const std::string& lines, const std::string& indent) const;

  const FixSource& source_;
  std::string hash_;
  std::vector<kernels::TextEdit> edits_;
  std::vector<std::string> added_;  // modules and helpers
};

}  // namespace kernelwright::diagnose
