// Steps that a condition skips (the blocks above the diagonal of causal attention) still copy their blocks. When the
// index map stays at the last block that is used, the block index repeats and the copy is left out.
#include <algorithm>

#include "daemon/cost/dtype.h"
#include "daemon/kernels/index_map.h"
#include "daemon/kernels/rewrite/rule.h"

namespace kernelwright::rewrite {
namespace {

std::string Placeholder(int axis) { return "grid_axis_" + std::to_string(axis) + "_"; }

// The expression with the kernel's own names replaced by what they stand for, and step numbers by placeholders.
std::string Expanded(const KernelView& view, const Node& node, int depth) {
  if (const auto axis = StepAxis(view, node)) return Placeholder(*axis);
  if (node.Is("identifier") && depth > 0) {
    const Node value = view.source.Resolve(node);
    if (value && diagnose::Contains(view.kernel(), value)) return "(" + Expanded(view, value, depth - 1) + ")";
  }
  const auto children = node.Children();
  if (children.empty()) return std::string(node.text());
  std::string text;
  uint32_t at = node.begin();
  const std::string& source = view.source.text();
  for (const Node& child : children) {
    text += source.substr(at, child.begin() - at);
    const bool attribute = node.Is("attribute") && child == node.Field("attribute");
    const bool keyword = node.Is("keyword_argument") && child == node.Field("name");
    text += attribute || keyword ? std::string(child.text()) : Expanded(view, child, depth);
    at = child.end();
  }
  return text;
}

// `a < b` and `a & b`, `jnp.logical_and(a, b)`: the comparisons that must all hold.
void Conjuncts(Node node, std::vector<Node>& found) {
  node = diagnose::StripParentheses(node);
  if (node.Is("comparison_operator")) {
    found.push_back(node);
  } else if (diagnose::IsCallOf(node, {"logical_and"})) {
    for (const Node& argument : diagnose::PositionalArguments(node)) Conjuncts(argument, found);
  } else if (node.Is("binary_operator") && node.Field("operator").text() == "&") {
    Conjuncts(node.Field("left"), found);
    Conjuncts(node.Field("right"), found);
  }
}

// The last block that a comparison lets through: floor((value - less) / step).
struct Bound {
  std::string value;
  std::string step;  // empty: 1
  bool strict = false;
};

// The factor of the axis in `axis`, `axis * B`, `B * axis`; nothing for anything else.
std::optional<std::string> StepFactor(Node node, const std::string& axis) {
  node = diagnose::StripParentheses(node);
  if (node.text() == axis) return "";
  if (!node.Is("binary_operator") || node.Field("operator").text() != "*") return std::nullopt;
  const Node left = diagnose::StripParentheses(node.Field("left"));
  const Node right = diagnose::StripParentheses(node.Field("right"));
  if (left.text() == axis && !diagnose::Mentions(right, axis)) return diagnose::AsPrimary(right);
  if (right.text() == axis && !diagnose::Mentions(left, axis)) return diagnose::AsPrimary(left);
  return std::nullopt;
}

std::optional<Bound> BoundOf(const Node& comparison, const std::string& axis) {
  const auto sides = comparison.NamedChildren();
  if (sides.size() != 2) return std::nullopt;
  const std::string_view all = comparison.text();
  const std::string sign(diagnose::StripParentheses(comparison)
                             .text()
                             .substr(sides[0].end() - comparison.begin(), sides[1].begin() - sides[0].end()));
  const bool less = sign.find('<') != std::string::npos;
  const bool greater = sign.find('>') != std::string::npos;
  if (less == greater || all.empty()) return std::nullopt;
  const Node& small = less ? sides[0] : sides[1];
  const Node& large = less ? sides[1] : sides[0];
  const auto step = StepFactor(small, axis);
  if (!step || diagnose::Mentions(large, axis)) return std::nullopt;
  return Bound{std::string(diagnose::StripParentheses(large).text()), *step, sign.find('=') == std::string::npos};
}

// For each position of the outer axes, how many of the last axis's steps are taken; nothing unless these are the first
// ones, at least one, and everything can be computed.
struct Live {
  int64_t taken = 0;
  int64_t all = 0;
};

std::optional<Live> LiveSteps(const KernelView& view, const Guard& guard) {
  const Graph& kernel = view.call.kernel;
  const Operation* branch = nullptr;
  BlockMapping predicate;
  Graph& graph = predicate.index_map;
  const uint32_t first_id = 1U << 30;
  for (size_t axis = 0; axis < view.call.grid.size(); ++axis) {
    graph.inputs.push_back({first_id + static_cast<uint32_t>(axis), {"int32", {}, "", false, false}, ""});
  }
  for (const Operation& operation : kernel.operations) {
    const SourceSpan* span = nullptr;
    for (const SourceSpan& candidate : operation.spans) {
      if (candidate.file == view.source.file().path()) {
        span = &candidate;
        break;
      }
    }
    if (operation.name == "cond" && span != nullptr && span->line >= guard.statement.row() + 1 &&
        span->line <= guard.body.row() + 1) {
      branch = &operation;
      break;
    }
    if (operation.name == "program_id" && operation.outputs.size() == 1) {
      const auto axis = operation.attributes.find("axis");
      const int64_t* number = axis == operation.attributes.end() ? nullptr : std::get_if<int64_t>(&axis->second);
      if (number == nullptr || *number < 0 || *number >= static_cast<int64_t>(view.call.grid.size())) continue;
      Operation copy;
      copy.name = "copy";
      copy.inputs.emplace_back();
      copy.inputs.back().value = first_id + static_cast<uint32_t>(*number);
      copy.outputs = operation.outputs;
      graph.operations.push_back(std::move(copy));
    } else if (operation.effects.empty()) {
      graph.operations.push_back(operation);
    }
  }
  if (branch == nullptr || branch->inputs.empty()) return std::nullopt;
  graph.outputs.push_back(branch->inputs.front());
  predicate.block.push_back({});
  predicate.array.dims.push_back(1);
  int64_t positions = 1;
  for (const int64_t steps : view.call.grid) {
    if (steps < 1 || positions > (1 << 17)) return std::nullopt;
    positions *= steps;
  }
  // On large grids the condition is looked at along the last two axes alone.
  const int axes = static_cast<int>(view.call.grid.size());
  const int from = positions > (1 << 14) ? std::max(0, axes - 2) : 0;
  std::vector<int64_t> at(view.call.grid.size(), 0);
  Live live;
  bool open = true;
  for (bool more = true; more;) {
    const auto value = kernels::EvaluateIndexMap(predicate, at);
    if (value.size() != 1 || !value.front()) return std::nullopt;
    const bool taken = *value.front() != 0;
    if (at.back() == 0) {
      open = true;
      if (!taken) return std::nullopt;  // a row without any step: there is no block to stay at
    }
    if (taken && !open) return std::nullopt;
    open = taken;
    ++live.all;
    live.taken += taken ? 1 : 0;
    more = false;
    for (int axis = axes - 1; axis >= from && !more; --axis) {
      if (++at[static_cast<size_t>(axis)] < view.call.grid[static_cast<size_t>(axis)]) {
        more = true;
      } else {
        at[static_cast<size_t>(axis)] = 0;
      }
    }
  }
  return live;
}

// Texts for the names of the bound where the index map stands, or nothing when one is not visible there.
std::optional<std::string> ForIndexMap(const KernelView& view, const std::string& bound, const Node& map) {
  std::vector<std::string> parameters;
  for (const Node& parameter : map.Field("parameters").NamedChildren()) {
    if (!parameter.Is("identifier")) return std::nullopt;
    parameters.emplace_back(parameter.text());
  }
  if (parameters.size() < view.call.grid.size()) return std::nullopt;
  const kernels::Tree tree(bound);
  Node kernel_argument = diagnose::Argument(view.launch.call, 0, "kernel");
  if (kernel_argument.Is("identifier")) {
    const Node value = view.source.Resolve(kernel_argument);
    if (value) kernel_argument = value;
  }
  const Node partial = diagnose::IsCallOf(kernel_argument, {"partial"}) ? kernel_argument : Node();
  std::string text;
  uint32_t at = 0;
  for (const Node& name : Variables(tree.root())) {
    const std::string word(name.text());
    std::string replacement = word;
    bool known = false;
    for (size_t axis = 0; axis < view.call.grid.size(); ++axis) {
      if (word == Placeholder(static_cast<int>(axis))) {
        replacement = parameters[axis];
        known = true;
      }
    }
    if (!known && view.Find(word) != nullptr) return std::nullopt;
    const bool shadowed = std::find(parameters.begin(), parameters.end(), word) != parameters.end();
    if (!known && diagnose::Mentions(view.kernel().Field("parameters"), word)) {
      const Node given = partial ? diagnose::Keyword(partial, word) : Node();
      if (!given) return std::nullopt;
      replacement = diagnose::AsPrimary(given);
      if (given.Is("integer")) replacement = std::string(given.text());
    } else if (!known) {
      // Bound outside of the kernel: by the module, or by the function in which both kernel and index map stand.
      const Node around = view.source.Function(view.kernel().parent());
      const bool together = around && diagnose::Contains(around, map);
      const auto& constants = view.source.file().constants();
      const bool module = std::any_of(constants.begin(), constants.end(),
                                      [&](const kernels::ModuleConstant& entry) { return entry.name == word; });
      const auto& imports = view.source.file().imports();
      const bool imported = std::any_of(imports.begin(), imports.end(),
                                        [&](const kernels::Import& entry) { return entry.alias == word; });
      if (!together && !module && !imported) return std::nullopt;
      if (shadowed) return std::nullopt;
    }
    text += bound.substr(at, name.begin() - at) + replacement;
    at = name.end();
  }
  return text + bound.substr(at);
}

// Puts the arguments of a call that stands on one line on a line of their own when the line would become too long.
void BreakLongLine(const KernelView& view, Rewriter& builder, const Node& call, size_t grows) {
  constexpr size_t kColumns = 100;
  const std::string& text = view.source.text();
  const Node arguments = call.Field("arguments");
  if (call.row() != call.end_row() || !arguments) return;
  const size_t before = text.rfind('\n', call.begin());
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  const size_t end = std::min(text.find('\n', call.end()), text.size());
  if (end - begin + grows <= kColumns) return;
  const std::string indent = view.source.Newline() + view.source.Indent(call);
  builder.Insert(arguments.begin() + 1, indent + "    ");
  builder.Insert(arguments.end() - 1, indent);
}

}  // namespace

void ClampedIndexMap(const KernelView& view, Answer& answer) {
  const int axis = view.last_axis();
  if (axis < 1) return;
  for (const Guard& guard : GuardsIn(view.body())) {
    if (!(guard.statement.parent() == view.body())) continue;
    if (IsFirstStep(view, guard.condition, axis) || IsLastStep(view, guard.condition, axis)) continue;
    const std::string condition = Expanded(view, guard.condition, 6);
    const kernels::Tree tree("(" + condition + ")");
    if (!diagnose::Mentions(tree.root(), Placeholder(axis))) continue;
    std::vector<Node> comparisons;
    const auto top = tree.root().NamedChildren();
    if (top.size() == 1 && top.front().NamedChildren().size() == 1) {
      Conjuncts(top.front().NamedChildren().front(), comparisons);
    }
    std::optional<Bound> bound;
    for (const Node& comparison : comparisons) {
      if (!bound) bound = BoundOf(comparison, Placeholder(axis));
    }
    if (!bound || comparisons.size() != 1) {
      answer.Refuse("the condition is not one comparison that bounds the step of the last grid axis from above",
                    guard.statement);
      continue;
    }
    const auto live = LiveSteps(view, guard);
    if (!live) {
      answer.Refuse("which steps are skipped cannot be computed, or they are not the last ones of each row",
                    guard.statement);
      continue;
    }
    if (live->taken == live->all) {
      answer.Refuse("no step is skipped on this grid", guard.statement);
      continue;
    }
    Rewriter builder(view);
    std::string names;
    int64_t bytes = 0;
    std::vector<Node> done;
    std::string why = "no block is used under the condition alone";
    for (const Ref* ref : view.Of(RefKind::kInput)) {
      const auto accesses = Accesses(view.body(), ref->name);
      const bool inside = !accesses.empty() && std::all_of(accesses.begin(), accesses.end(), [&](const Node& access) {
        return diagnose::Contains(guard.body, access);
      });
      if (!inside || !ref->spec || !ref->block->has_index_map) continue;
      const Node map = diagnose::IndexMap(view.source, ref->spec);
      if (!map.Is("lambda")) {
        why = "the index map of " + ref->name + " is not a lambda in this file";
        continue;
      }
      const auto uses = kernels::AnalyzeBlock(view.call, *ref->block);
      std::vector<size_t> dims;
      for (size_t d = 0; d < uses.size(); ++d) {
        if (!uses[d].known || uses[d].axes.contains(axis)) dims.push_back(d);
      }
      if (dims.size() != 1 || uses[dims.front()].identity_axis != axis) continue;
      // A spec that another operand has too must suit that one as well.
      const bool shared = std::any_of(view.refs.begin(), view.refs.end(), [&](const Ref& other) {
        if (!other.spec || other.name == ref->name || !(diagnose::IndexMap(view.source, other.spec) == map))
          return false;
        const auto theirs = Accesses(view.body(), other.name);
        return other.kind != RefKind::kInput || !std::all_of(theirs.begin(), theirs.end(), [&](const Node& access) {
                 return diagnose::Contains(guard.body, access);
               });
      });
      if (shared) {
        why = "the index map of " + ref->name + " belongs to an operand that every step uses too";
        continue;
      }
      const auto value = ForIndexMap(view, bound->value, map);
      const auto step = ForIndexMap(view, bound->step, map);
      const auto elements = diagnose::Elements(map.Field("body"));
      if (!value || !step || dims.front() >= elements.size() || !elements[dims.front()].Is("identifier")) {
        why = "the condition uses names that the index map of " + ref->name + " cannot see";
        continue;
      }
      int64_t block = cost::DtypeBits(ref->block->array.dtype).value_or(32) / 8;
      for (const BlockDim& dim : ref->block->block) block *= dim.size;
      bytes += block;
      names += (names.empty() ? "" : ", ") + ref->name;
      if (std::find(done.begin(), done.end(), map) != done.end()) continue;
      done.push_back(map);
      const Node element = elements[dims.front()];
      std::string last = *value;
      if (bound->strict) last += " - 1";
      if (!step->empty())
        last = (bound->strict || last.find(' ') != std::string::npos ? "(" + last + ")" : last) + " // " + *step;
      const std::string clamped = builder.Jnp() + ".minimum(" + std::string(element.text()) + ", " + last + ")";
      builder.Replace(element, clamped);
      BreakLongLine(view, builder, ref->spec, clamped.size() - element.text().size());
    }
    if (done.empty()) {
      answer.Refuse(why, guard.statement);
      continue;
    }
    const double dead = 1.0 - static_cast<double>(live->taken) / static_cast<double>(live->all);
    answer.Propose(guard.statement,
                   {"do not copy blocks that are skipped: " + names,
                    "A step that the condition skips still copies its blocks; when the index map stays at the last "
                    "block in use, the index repeats and the copy is left out.",
                    "graph: " + Share(dead) + " of the steps are skipped, and each copies " + Bytes(bytes), 1.2,
                    kernels::Exactness::kBitEqual},
                   builder.edits());
  }
}

}  // namespace kernelwright::rewrite
