// The kernel's body as Python and as a traced function: values returned or stored, branches, loops over rows, reads of
// single elements.
#include <algorithm>
#include <optional>
#include <set>

#include "daemon/diagnose/fix_families.h"
#include "daemon/diagnose/fix_launch.h"
#include "daemon/kernels/literals.h"

namespace kernelwright::diagnose {
namespace {

bool IsStore(const Node& node) {
  return (node.Is("assignment") || node.Is("augmented_assignment")) && !SubscriptedName(node.Field("left")).empty();
}

bool IsReduction(const Node& node) {
  return IsCallOf(node, {"sum", "max", "min", "mean", "prod", "any", "all", "argmax", "argmin", "var", "std", "amax",
                         "amin", "logsumexp", "norm"});
}

// Whether running the statements under pl.when says the same: they only store to refs, call, or bind names that
// nothing behind them reads.
bool CanBeGuarded(const Node& block, const Node& function, const Node& branch) {
  bool fine = true;
  std::set<std::string> bound;
  kernels::Walk(block, [&](const Node& node) {
    for (const std::string_view type : {"return_statement", "break_statement", "continue_statement", "yield",
                                        "nonlocal_statement", "global_statement"}) {
      if (node.Is(type)) fine = false;
    }
    if (node.Is("function_definition") || node.Is("lambda")) return false;
    if (node.Is("assignment") || node.Is("augmented_assignment")) {
      const Node left = node.Field("left");
      for (const Node& target : Elements(left)) {
        if (target.Is("identifier")) bound.emplace(target.text());
      }
      if (left.Is("pattern_list")) fine = false;
      if (node.Is("augmented_assignment") && left.Is("identifier")) fine = false;
    }
    return true;
  });
  if (!fine) return false;
  for (const Node& use : FindAll(function, [](const Node& node) { return node.Is("identifier"); })) {
    if (!Contains(branch, use) && bound.contains(std::string(use.text()))) return false;
  }
  return true;
}

// `a and not b` as an expression on traced values.
std::string TracedCondition(const Node& condition, FixBuilder& builder) {
  const Node node = StripParentheses(condition);
  if (node.Is("boolean_operator")) {
    const std::string name = node.Field("operator").text() == "and" ? ".logical_and(" : ".logical_or(";
    return builder.Jnp() + name + TracedCondition(node.Field("left"), builder) + ", " +
           TracedCondition(node.Field("right"), builder) + ")";
  }
  if (node.Is("not_operator"))
    return builder.Jnp() + ".logical_not(" + TracedCondition(node.Field("argument"), builder) + ")";
  return std::string(node.text());
}

// `name = value` when that is all that the block says.
Node OnlyAssignment(const Node& block) {
  const auto statements = block.NamedChildren();
  if (statements.size() != 1) return {};
  const Node inside =
      statements.front().Is("expression_statement") ? statements.front().NamedChildren().front() : Node();
  return inside.Is("assignment") && inside.Field("left").Is("identifier") ? inside : Node();
}

}  // namespace

Fixes StoreResult(const FixRequest& request) {
  const FixSource& source = request.source;
  const auto launch = LaunchOf(source, source.place());
  Node kernel = launch ? launch->kernel : Node();
  if (!kernel) kernel = source.Function(source.place());
  if (!kernel) return {};
  std::vector<Node> returns;
  kernels::Walk(kernel.Field("body"), [&](const Node& node) {
    if (node.Is("function_definition") || node.Is("lambda")) return false;
    if (node.Is("return_statement") && !node.NamedChildren().empty()) returns.push_back(node);
    return true;
  });
  if (returns.size() != 1) return {};
  const auto parameters = kernel.Field("parameters").NamedChildren();
  const size_t scratch = launch ? launch->scratch.size() : 0;
  if (parameters.size() <= scratch) return {};
  const Node output = parameters[parameters.size() - scratch - 1];
  if (!output.Is("identifier")) return {};
  const bool stored = !FindAll(kernel.Field("body"), [&](const Node& node) {
                         return IsStore(node) && SubscriptedName(node.Field("left")) == output.text();
                       }).empty();
  FixBuilder builder(source);
  if (stored) {
    builder.RemoveStatement(returns.front());
    return {builder.Build("Return nothing: the result is stored to " + std::string(output.text()))};
  }
  const Node value = returns.front().NamedChildren().front();
  if (value.Is("expression_list") || value.Is("tuple")) return {};
  builder.Replace(ByteRange{returns.front().begin(), value.begin()}, std::string(output.text()) + "[...] = ");
  return {builder.Build("Store the result to " + std::string(output.text()))};
}

Fixes GuardStatements(const FixRequest& request) {
  const FixSource& source = request.source;
  FixBuilder builder(source);
  // A conditional expression on the line.
  Node branch = Enclosing(source.place(), {"if_statement"});
  const auto values = source.AtPlace([](const Node& node) { return node.Is("conditional_expression"); });
  if (!values.empty() && (!branch || branch.row() != source.place().row())) {
    const auto parts = values.front().NamedChildren();
    if (parts.size() != 3) return {};
    builder.Replace(values.front(), builder.Jnp() + ".where(" + TracedCondition(parts[1], builder) + ", " +
                                        std::string(parts[0].text()) + ", " + std::string(parts[2].text()) + ")");
    return {builder.Build("Choose the value with jnp.where")};
  }
  if (!branch) {
    const auto near = source.AtPlace([](const Node& node) { return node.Is("if_statement"); });
    if (near.empty()) return {};
    branch = near.front();
  }
  const Node condition = branch.Field("condition");
  const Node then = branch.Field("consequence");
  Node otherwise;
  for (const Node& child : branch.NamedChildren()) {
    if (child.Is("elif_clause")) return {};
    if (child.Is("else_clause")) otherwise = child;
  }
  const Node function = source.Function(branch);
  if (!function) return {};
  const Node first = OnlyAssignment(then);
  const Node second = OnlyAssignment(otherwise.Field("body"));
  if (first && second && first.Field("left").text() == second.Field("left").text()) {
    builder.Replace(branch, std::string(first.Field("left").text()) + " = " + builder.Jnp() + ".where(" +
                                TracedCondition(condition, builder) + ", " + std::string(first.Field("right").text()) +
                                ", " + std::string(second.Field("right").text()) + ")");
    return {builder.Build("Choose the value with jnp.where")};
  }
  if (!CanBeGuarded(then, function, branch) || (otherwise && !CanBeGuarded(otherwise, function, branch))) return {};
  const std::string indent = source.Indent(branch);
  const auto header = [&](const std::string& guard) {
    return "@" + builder.Pl() + ".when(" + guard + ")" + source.Newline() + indent + "def _():";
  };
  const auto head_end = [&](const Node& block, uint32_t begin) {
    uint32_t colon = block.begin();
    while (colon > begin && source.text()[colon - 1] != ':') --colon;
    return colon;
  };
  const std::string guard = TracedCondition(condition, builder);
  const bool same_line = then.row() == branch.row();
  const std::string body_break = same_line ? source.Newline() + indent + "   " : "";
  builder.Replace(ByteRange{branch.begin(), head_end(then, branch.begin())}, header(guard) + body_break);
  if (otherwise) {
    const Node body = otherwise.Field("body");
    builder.Replace(ByteRange{otherwise.begin() - static_cast<uint32_t>(source.Indent(otherwise).size()),
                              head_end(body, otherwise.begin())},
                    source.Newline() + indent + header(builder.Jnp() + ".logical_not(" + guard + ")") +
                        (body.row() == otherwise.row() ? source.Newline() + indent + "   " : ""));
  }
  return {builder.Build("Run it under pl.when")};
}

Fixes CastStored(const FixRequest& request) {
  auto stores = request.source.AtPlace(IsStore);
  if (stores.size() != 1) return {};
  const Node store = stores.front();
  const Node left = store.Field("left");
  const Node right = store.Field("right");
  const std::string dtype = std::string(SubscriptedName(left)) + ".dtype";
  FixBuilder builder(request.source);
  if (store.Is("augmented_assignment")) {
    std::string op(store.Field("operator").text());
    if (op.empty()) return {};
    op.pop_back();
    const bool plain = right.Is("identifier") || right.Is("call") || right.Is("subscript") || op == "+";
    builder.Replace(store, std::string(left.text()) + " = (" + std::string(left.text()) + " " + op + " " +
                               (plain ? std::string(right.text()) : AsPrimary(right)) + ").astype(" + dtype + ")");
  } else if (IsCallOf(right, {"astype"})) {
    // The cast that is there chose another type than the ref's.
    const Node old = Argument(right, 0, "dtype");
    if (!old) return {};
    builder.Replace(old, dtype);
  } else {
    builder.Replace(right, AsPrimary(right) + ".astype(" + dtype + ")");
  }
  return {builder.Build("Cast to the ref's type: .astype(" + dtype + ")")};
}

Fixes KeepDims(const FixRequest& request) {
  const auto stores = request.source.AtPlace(IsStore);
  std::vector<Node> reductions;
  const auto wanted = [](const Node& node) { return IsReduction(node) && !Keyword(node, "keepdims"); };
  if (stores.size() == 1) {
    reductions = FindAll(stores.front().Field("right"), wanted);
    if (reductions.empty() && stores.front().Field("right").Is("identifier")) {
      reductions = FindAll(request.source.Resolve(stores.front().Field("right")), wanted);
    }
  } else {
    reductions = request.source.AtPlace(wanted);
  }
  Fixes fixes;
  for (const Node& reduction : reductions) {
    FixBuilder builder(request.source);
    builder.AddArgument(reduction, "keepdims=True");
    fixes.push_back(builder.Build("Keep the reduced dimension: keepdims=True"));
  }
  return fixes;
}

Fixes LoopOverRows(const FixRequest& request) {
  const FixSource& source = request.source;
  const auto scans = source.AtPlace([](const Node& node) { return IsCallOf(node, {"scan"}); });
  if (scans.size() != 1) return {};
  const Node scan = scans.front();
  const Node assignment = scan.parent();
  const Node statement = Statement(scan);
  const auto arguments = PositionalArguments(scan);
  if (!assignment.Is("assignment") || arguments.size() != 3 || Keyword(scan, "reverse")) return {};
  const auto targets = assignment.Field("left").NamedChildren();
  const Node step = arguments[0];
  const Node rows = arguments[2];
  if (targets.size() != 2 || !IsWholeRead(rows) || !(step.Is("lambda") || step.Is("identifier"))) return {};
  const std::string_view carry = targets[0].text();
  const std::string_view outputs = targets[1].text();
  const Node function = source.Function(scan);
  // The stacked results go to one ref in the next statement, and nowhere else.
  const auto siblings = statement.parent().NamedChildren();
  const auto at = std::find(siblings.begin(), siblings.end(), statement);
  if (at == siblings.end() || at + 1 == siblings.end()) return {};
  const Node next = *(at + 1);
  const auto inside = next.NamedChildren();
  const Node store = next.Is("expression_statement") && !inside.empty() ? inside.front() : Node();
  if (!store.Is("assignment") || !IsWholeRead(store.Field("left")) || store.Field("right").text() != outputs) return {};
  const auto uses = FindAll(function, [&](const Node& n) { return n.Is("identifier") && n.text() == outputs; });
  if (uses.size() != 2 || Mentions(function, "scan_row")) return {};
  FixBuilder builder(source);
  const std::string ref(SubscriptedName(rows));
  const std::string out(SubscriptedName(store.Field("left")));
  const std::string lax = builder.Lax();
  const std::string called = step.Is("lambda") ? "step" : std::string(step.text());
  std::string text;
  if (step.Is("lambda")) text += "step = " + std::string(step.text()) + "\n\n";
  text += "def scan_row(row, carry):\n    carry, value = " + called + "(carry, " + ref + "[row])\n    " + out +
          "[row] = value\n    return carry\n";
  builder.InsertBefore(statement, text);
  const bool kept = carry != "_";
  builder.Replace(statement, (kept ? std::string(carry) + " = " : "") + lax + ".fori_loop(0, " + ref +
                                 ".shape[0], scan_row, " + std::string(arguments[1].text()) + ")");
  builder.RemoveStatement(next);
  return {builder.Build("Loop over the rows of " + ref + " with fori_loop")};
}

Fixes DropPlaceholder(const FixRequest& request) {
  const auto prints = request.source.AtPlace([](const Node& node) { return IsCallOf(node, {"debug_print"}); });
  if (prints.size() != 1) return {};
  const auto arguments = PositionalArguments(prints.front());
  if (arguments.empty() || !arguments.front().Is("string")) return {};
  std::string text(arguments.front().text());
  for (size_t open = text.find('{'); open != std::string::npos; open = text.find('{')) {
    const size_t close = text.find('}', open);
    if (close == std::string::npos) return {};
    const size_t begin = open > 0 && text[open - 1] == ' ' ? open - 1 : open;
    text.erase(begin, close + 1 - begin);
  }
  if (text == arguments.front().text()) return {};
  FixBuilder builder(request.source);
  builder.Replace(arguments.front(), text);
  return {builder.Build("Print the value without a placeholder")};
}

Fixes IndexTheRef(const FixRequest& request) {
  const FixSource& source = request.source;
  Fixes fixes;
  // lax.dynamic_slice(ref[...], starts, sizes): the start is kept inside, as dynamic_slice does.
  const auto slices =
      source.AtPlace([](const Node& node) { return IsCallOf(node, {"dynamic_slice", "dynamic_slice_in_dim"}); });
  for (const Node& slice : slices) {
    const auto arguments = PositionalArguments(slice);
    if (arguments.size() < 3) continue;
    Node read = arguments[0];
    if (read.Is("identifier")) read = source.Resolve(read);
    if (!IsWholeRead(read)) continue;
    const std::string ref(SubscriptedName(read));
    std::vector<std::pair<Node, Node>> dims;
    if (CalleeName(slice) == "dynamic_slice") {
      const auto starts = Elements(arguments[1]);
      const auto sizes = Elements(arguments[2]);
      if (starts.size() != sizes.size()) continue;
      for (size_t d = 0; d < starts.size(); ++d) dims.emplace_back(starts[d], sizes[d]);
    } else {
      const Node axis = Argument(slice, 3, "axis");
      const auto number = axis ? kernels::EvaluateInteger(axis) : std::optional<int64_t>(0);
      if (!number) continue;
      dims.resize(static_cast<size_t>(*number));
      dims.emplace_back(arguments[1], arguments[2]);
    }
    FixBuilder builder(source);
    std::string index;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (d > 0) index += ", ";
      const auto& [start, size] = dims[d];
      if (!start) {
        index += ":";
        continue;
      }
      const bool fixed = kernels::EvaluateInteger(start).has_value();
      const std::string begin = fixed ? std::string(start.text())
                                      : builder.Jnp() + ".clip(" + std::string(start.text()) + ", 0, " + ref +
                                            ".shape[" + std::to_string(d) + "] - " +
                                            (size.Is("integer") ? std::string(size.text()) : AsPrimary(size)) + ")";
      index += builder.Pl() + ".ds(" + begin + ", " + std::string(size.text()) + ")";
    }
    builder.Replace(slice, ref + "[" + index + "]");
    fixes.push_back(builder.Build("Slice the ref with pl.ds"));
  }
  if (!fixes.empty()) return fixes;
  // value[i] with `value = ref[...]`, where nothing stores to the ref.
  const auto reads = source.AtPlace([&](const Node& node) {
    if (!node.Is("subscript") || IsWholeRead(node) || SubscriptedName(node).empty()) return false;
    return IsWholeRead(source.Resolve(node.Field("value")));
  });
  for (const Node& read : reads) {
    const std::string ref(SubscriptedName(source.Resolve(read.Field("value"))));
    const Node outermost = source.OutermostFunction(read);
    const auto stores = FindAll(
        outermost, [&](const Node& node) { return IsStore(node) && SubscriptedName(node.Field("left")) == ref; });
    if (!stores.empty()) continue;
    FixBuilder builder(source);
    builder.Replace(read.Field("value"), ref);
    fixes.push_back(builder.Build("Index " + ref + " instead of its value"));
  }
  return fixes;
}

Fixes DropCheckpoint(const FixRequest& request) {
  const FixSource& source = request.source;
  const auto is_checkpoint = [](const Node& node) {
    if (!node.Is("call")) return false;
    const std::string_view callee = node.Field("function").text();
    return callee.ends_with("checkpoint") || callee.ends_with("remat");
  };
  auto calls = source.AtPlace(is_checkpoint);
  const Node outermost = source.OutermostFunction(source.place());
  const auto decorators = FindAll(outermost, [](const Node& node) {
    return node.Is("decorator") && (node.text().find("checkpoint") != std::string_view::npos ||
                                    node.text().find("remat") != std::string_view::npos);
  });
  FixBuilder builder(source);
  if (calls.empty() && decorators.empty()) calls = FindAll(outermost, is_checkpoint);
  for (const Node& call : calls) {
    const auto arguments = PositionalArguments(call);
    if (arguments.size() != 1 || call.parent().Is("decorator")) continue;
    builder.Replace(call, AsPrimary(arguments.front()));
  }
  if (builder.empty()) {
    for (const Node& decorator : decorators) builder.RemoveStatement(decorator);
  }
  if (builder.empty()) return {};
  return {builder.Build("Remove jax.checkpoint")};
}

}  // namespace kernelwright::diagnose
