// A value that an inner loop computes from the same data in every round is computed once in front of it. Only values
// that cost more than reading them back: the registers that a plain load or cast of a whole block would hold over the
// loop are worth more than the load.
#include <algorithm>

#include "daemon/kernels/rewrite/rule.h"

namespace kernelwright::rewrite {
namespace {

struct Loop {
  Node statement;  // the definition of the loop's body, decorator included
  Node body;
};

// Bodies of lax.fori_loop and pl.loop in the kernel.
std::vector<Loop> LoopsIn(const KernelView& view) {
  std::vector<Loop> loops;
  for (const Node& call :
       diagnose::FindAll(view.body(), [](const Node& n) { return diagnose::IsCallOf(n, {"fori_loop"}); })) {
    const Node name = diagnose::Argument(call, 2, "body_fun");
    const Node function = name.Is("identifier") ? view.source.ResolveFunction(name) : Node();
    if (!function || !diagnose::Contains(view.kernel(), function)) continue;
    loops.push_back({function, function.Field("body")});
  }
  for (const Node& node : diagnose::FindAll(view.body(), [](const Node& n) { return n.Is("decorated_definition"); })) {
    for (const Node& child : node.NamedChildren()) {
      const auto parts = child.NamedChildren();
      if (child.Is("decorator") && parts.size() == 1 && diagnose::IsCallOf(parts.front(), {"loop"})) {
        loops.push_back({node, node.Field("definition").Field("body")});
      }
    }
  }
  return loops;
}

// Continuation lines of a statement move with it.
std::string Dedented(const std::string& text, size_t by) {
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    result += text[at];
    if (text[at] != '\n') continue;
    size_t spaces = 0;
    while (spaces < by && at + 1 < text.size() && text[at + 1] == ' ') ++spaces, ++at;
  }
  return result;
}

}  // namespace

void HoistFromLoop(const KernelView& view, Answer& answer) {
  for (const Loop& loop : LoopsIn(view)) {
    Rewriter builder(view);
    std::string moved;
    std::string names;
    Node place;
    std::set<std::string> hoisted;
    for (const Node& statement : Statements(loop.body)) {
      const auto parts = statement.NamedChildren();
      if (!statement.Is("expression_statement") || parts.size() != 1 || !parts.front().Is("assignment")) continue;
      const Node target = parts.front().Field("left");
      const Node value = parts.front().Field("right");
      if (!target.Is("identifier")) continue;
      const Dependence depends = DependenceOf(view, value);
      if (!depends.known || depends.refs.empty()) continue;
      // Names of the loop's own body must have been moved before.
      const auto variables = Variables(value);
      const bool own = std::any_of(variables.begin(), variables.end(), [&](const Node& variable) {
        const Node bound = view.source.Resolve(variable);
        return bound && diagnose::Contains(loop.body, bound) && !hoisted.contains(std::string(variable.text()));
      });
      if (own) continue;
      const bool written = std::any_of(depends.refs.begin(), depends.refs.end(), [&](const std::string& ref) {
        const auto accesses = Accesses(view.body(), ref);
        return std::any_of(accesses.begin(), accesses.end(), IsTarget) || view.Find(ref)->kind == RefKind::kScratch;
      });
      if (written) {
        answer.Refuse(std::string(target.text()) + " is read from a reference that the kernel writes", statement);
        continue;
      }
      if (!IsCostly(value)) {
        answer.Refuse(
            std::string(target.text()) + " is only loaded and cast: kept over the loop it would take registers instead",
            statement);
        continue;
      }
      const auto outside = Variables(view.body());
      const bool taken = std::any_of(outside.begin(), outside.end(), [&](const Node& variable) {
        return variable.text() == target.text() && !diagnose::Contains(loop.body, variable);
      });
      if (taken) {
        answer.Refuse(std::string(target.text()) + " means something else outside of the loop", statement);
        continue;
      }
      const size_t deeper = view.source.Indent(statement).size() - view.source.Indent(loop.statement).size();
      moved += (moved.empty() ? "" : "\n") + Dedented(std::string(statement.text()), deeper);
      names += (names.empty() ? "" : ", ") + std::string(target.text());
      hoisted.insert(std::string(target.text()));
      builder.RemoveStatement(statement);
      if (!place) place = statement;
    }
    if (hoisted.empty()) continue;
    builder.InsertBefore(loop.statement, moved + "\n");
    answer.Propose(
        place,
        {"compute " + names + " in front of the loop", "The loop computes the same " + names + " in every round.",
         "graph: " + names + " depends on no loop variable and on no reference that the kernel writes", 1.1,
         kernels::Exactness::kBitEqual},
        builder.edits());
  }
}

}  // namespace kernelwright::rewrite
