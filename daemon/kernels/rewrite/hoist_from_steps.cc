// A costly value that depends only on blocks which stay over the last grid axis is the same in all steps of that axis:
// the first one computes it into scratch and the others read it. The axis is then no longer parallel, since its steps
// share the scratch.
#include <algorithm>

#include "daemon/cost/chips.h"
#include "daemon/cost/vmem.h"
#include "daemon/kernels/rewrite/rule.h"

namespace kernelwright::rewrite {
namespace {

// Whether the value is the same in all steps of the axis.
bool StaysOver(const KernelView& view, const Node& value, int axis) {
  const Dependence depends = DependenceOf(view, value);
  if (!depends.known || depends.axes.contains(axis) || depends.refs.empty()) return false;
  return std::all_of(depends.refs.begin(), depends.refs.end(), [&](const std::string& name) {
    const Ref* ref = view.Find(name);
    if (ref->kind != RefKind::kInput) return false;
    const auto accesses = Accesses(view.body(), name);
    if (std::any_of(accesses.begin(), accesses.end(), IsTarget)) return false;
    // An index map that comes from elsewhere may be another one in the next call.
    if (!ref->spec || !diagnose::IndexMap(view.source, ref->spec)) return false;
    const auto axes = AxesOf(view, *ref);
    return axes && !axes->contains(axis) && ref->block->memory_space == "vmem";
  });
}

bool AtTopLevel(const KernelView& view, const Node& node) {
  const Node statement = diagnose::Statement(node);
  return statement.parent() == view.body() && statement.Is("expression_statement");
}

// The largest expressions below `node` that stay and cost something.
void Collect(const KernelView& view, const Node& node, int axis, std::vector<Node>& found) {
  for (const Node& child : node.NamedChildren()) {
    if (child.Is("lambda") || child.Is("function_definition") || child.Is("decorated_definition")) continue;
    const bool expression = child.Is("call") || child.Is("binary_operator") || child.Is("parenthesized_expression");
    if (expression && IsCostly(child) && StaysOver(view, child, axis)) {
      found.push_back(child);
    } else {
      Collect(view, child, axis, found);
    }
  }
}

// "cos" of `jnp.cos(a)`, the name of an assignment's target, else "kept".
std::string NameFor(const Node& value) {
  const Node above = value.parent();
  if (above.Is("assignment") && above.Field("right") == value && above.Field("left").Is("identifier")) {
    return std::string(above.Field("left").text()) + "_ref";
  }
  if (value.Is("call")) return std::string(diagnose::CalleeName(value)) + "_ref";
  return "kept_ref";
}

}  // namespace

void HoistFromSteps(const KernelView& view, Answer& answer) {
  const int axis = view.last_axis();
  if (axis < 0) {
    answer.Refuse("there is no grid");
    return;
  }
  const int64_t steps = view.call.grid[static_cast<size_t>(axis)];
  if (steps >= 0 && steps < 3) {
    answer.Refuse("the last grid axis has " + std::to_string(steps) + " step(s)");
    return;
  }
  std::vector<Node> values;
  for (const Node& statement : Statements(view.body())) {
    if (statement.Is("expression_statement")) Collect(view, statement, axis, values);
  }
  std::erase_if(values, [&](const Node& value) { return !AtTopLevel(view, value); });
  if (values.empty()) return;

  auto semantics = view.call.dimension_semantics;
  const bool was_parallel =
      static_cast<size_t>(axis) < semantics.size() && semantics[static_cast<size_t>(axis)] == "parallel";
  if (was_parallel) {
    semantics[static_cast<size_t>(axis)] = "arbitrary";
    const bool other = std::find(semantics.begin(), semantics.end(), "parallel") != semantics.end();
    if (!other && view.request.chip.megacore) {
      answer.Refuse("the last grid axis is the only one that is split over the two cores");
      return;
    }
  }

  Rewriter builder(view);
  std::vector<NewScratch> scratch;
  std::vector<std::pair<Node, std::string>> kept;  // value, name of its scratch
  std::set<std::string> taken;
  int64_t bytes = 0;
  for (const Node& value : values) {
    const auto type = TypeOf(view, value);
    if (!type || type->dims.size() < 2 || (type->dtype != "float32" && type->dtype != "bfloat16")) {
      answer.Refuse("the shape of a value that stays is not known, or is not one for VMEM", value);
      return;
    }
    const std::string name = FreshName(view, NameFor(value), taken);
    taken.insert(name);
    scratch.push_back(
        {name, BlockShapeText(view, type->dims, DependenceOf(view, value).refs), DtypeText(builder, type->dtype)});
    kept.emplace_back(value, name);
    bytes += cost::PaddedWindowBytes(type->dims, type->dtype == "float32" ? 32 : 16, view.request.chip);
  }
  const auto use = cost::ComputeVmem(view.call, view.request.chip);
  if (use.total + bytes > use.limit) {
    answer.Refuse("scratch of " + Bytes(bytes) + " does not fit beside the " + Bytes(use.total) + " in use");
    return;
  }
  // Statements that bind what only these values use move into the first step with them.
  std::vector<Node> moved;
  const auto statements = Statements(view.body());
  const auto inside_moved = [&](const Node& variable) {
    return std::any_of(kept.begin(), kept.end(),
                       [&](const auto& entry) { return diagnose::Contains(entry.first, variable); }) ||
           std::any_of(moved.begin(), moved.end(),
                       [&](const Node& statement) { return diagnose::Contains(statement, variable); });
  };
  for (size_t at = statements.size(); at-- > 0;) {
    const Node& statement = statements[at];
    const auto parts = statement.NamedChildren();
    if (!statement.Is("expression_statement") || parts.size() != 1 || !parts.front().Is("assignment")) continue;
    const Node target = parts.front().Field("left");
    if (!target.Is("identifier") || !DependenceOf(view, parts.front().Field("right")).axes.empty()) continue;
    if (std::any_of(kept.begin(), kept.end(),
                    [&](const auto& entry) { return diagnose::Contains(statement, entry.first); })) {
      continue;
    }
    int inside = 0;
    int uses = 0;
    for (const Node& variable : Variables(view.body())) {
      if (variable.text() != target.text() || variable == target) continue;
      ++uses;
      inside += inside_moved(variable) ? 1 : 0;
    }
    if (uses > 0 && uses == inside) moved.insert(moved.begin(), statement);
  }
  std::string lines = "@" + builder.Pl() + ".when(" + FirstStepText(view, builder, axis) + ")\ndef _():";
  for (const Node& statement : moved) {
    lines += "\n    " + std::string(statement.text());
    builder.RemoveStatement(statement);
  }
  std::string names;
  for (const auto& [value, name] : kept) {
    lines += "\n    " + name + "[...] = " + std::string(diagnose::StripParentheses(value).text());
    builder.Replace(value, name + "[...]");
    names += (names.empty() ? "" : ", ") + std::string(value.text().substr(0, 40));
  }
  if (lines.find('\r') != std::string::npos || view.source.Indent(statements.front()).find('\t') != std::string::npos) {
    answer.Refuse("lines of the kernel end or are indented in an unusual way");
    return;
  }
  const Node first = diagnose::Statement(kept.front().first);
  BlankLineBefore(view, builder, first);
  builder.InsertBefore(first, lines + "\n");
  if (!AddScratch(view, builder, scratch)) {
    answer.Refuse("scratch_shapes is not a list in the call");
    return;
  }
  auto edits = builder.edits();
  if (was_parallel) {
    auto more = ParamsEdits(view, semantics, std::nullopt);
    if (more.empty()) {
      answer.Refuse("the last grid axis is declared parallel in a way that cannot be edited");
      return;
    }
    edits.insert(edits.end(), more.begin(), more.end());
  }
  answer.Propose(kept.front().first,
                 {"compute once per block, not once per step: " + names,
                  "The blocks that the value is made from stay the same over the last grid axis; every step computes "
                  "it again.",
                  "graph: the value is the same for " + Count(steps) + " steps of grid axis " + std::to_string(axis) +
                      "; scratch of " + Bytes(bytes),
                  1.2, kernels::Exactness::kBitEqual},
                 std::move(edits));
}

}  // namespace kernelwright::rewrite
