// An output that every step of a reduction overwrites keeps only what the last step stores: the others compute an
// epilogue for nothing. The store, and the values that only it needs, go under `pl.when(last step)`.
#include <algorithm>

#include "daemon/kernels/index_map.h"
#include "daemon/kernels/rewrite/rule.h"

namespace kernelwright::rewrite {
namespace {

// `name = …` as a statement of its own: the name; else empty.
std::string_view AssignedName(const Node& statement) {
  if (!statement.Is("expression_statement")) return {};
  const auto parts = statement.NamedChildren();
  if (parts.size() != 1 || !parts.front().Is("assignment")) return {};
  const Node left = parts.front().Field("left");
  return left.Is("identifier") ? left.text() : std::string_view();
}

}  // namespace

void LastStepEpilogue(const KernelView& view, Answer& answer) {
  const auto statements = Statements(view.body());
  for (const Ref* output : view.Of(RefKind::kOutput)) {
    const auto axes = AxesOf(view, *output);
    if (!axes) {
      answer.Refuse("the index map of " + output->name + " is not computable");
      continue;
    }
    const int axis = view.last_axis();
    if (axis < 0 || axes->contains(axis) || view.call.grid[static_cast<size_t>(axis)] < 2) {
      answer.Refuse("each step of the last grid axis stores another block of " + output->name);
      continue;
    }
    const auto accesses = Accesses(view.body(), output->name);
    if (accesses.size() != 1 || !IsTarget(accesses.front()) || !diagnose::IsWholeRead(accesses.front())) {
      answer.Refuse(output->name + " is read, or stored in several places");
      continue;
    }
    size_t store = statements.size();
    for (size_t i = 0; i < statements.size(); ++i) {
      const auto parts = statements[i].NamedChildren();
      if (parts.size() == 1 && parts.front().Is("assignment") && parts.front().Field("left") == accesses.front()) {
        store = i;
      }
    }
    if (store == statements.size()) {
      answer.Refuse(output->name + " is stored under a condition already");
      continue;
    }
    if (DependenceOf(view, statements[store]).axes.contains(axis) ||
        !diagnose::FindAll(statements[store], [](const Node& n) {
           return diagnose::IsCallOf(n, {"program_id"});
         }).empty()) {
      answer.Refuse("what is stored depends on the step number", statements[store]);
      continue;
    }
    // Values that only the store needs come along, as far as they stand right in front of it.
    size_t first = store;
    while (first > 0) {
      const std::string_view name = AssignedName(statements[first - 1]);
      if (name.empty()) break;
      const bool only_here = std::all_of(statements.begin(), statements.end(), [&](const Node& other) {
        const bool moved = other.begin() >= statements[first - 1].begin() && other.end() <= statements[store].end();
        return moved || !Uses(other, name);
      });
      // A step number cannot be asked for inside a condition, and a load of another output may come too late.
      if (!only_here || !DependenceOf(view, statements[first - 1]).axes.empty()) break;
      --first;
    }
    bool costly = false;
    for (size_t i = first; i <= store; ++i) costly = costly || IsCostly(statements[i]);
    Rewriter builder(view);
    Guarded(view, builder, statements[first], statements[store], LastStepText(view, builder, axis));
    const int64_t steps = view.call.grid[static_cast<size_t>(axis)];
    answer.Propose(statements[store],
                   {"store " + output->name + " in the last step only",
                    "Each step of the reduction overwrites " + output->name +
                        ", so that what the steps before the last one compute for it is thrown away.",
                    "graph: the block of " + output->name + " stays for " + Count(steps) + " steps of grid axis " +
                        std::to_string(axis) + " and is stored in each",
                    costly ? 1.1 : 0, kernels::Exactness::kBitEqual},
                   builder.edits());
  }
}

}  // namespace kernelwright::rewrite
