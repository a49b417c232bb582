// What has to happen in which grid step (zeroing, the last store, masks of the tail), and waits for copies.
#include <algorithm>
#include <optional>
#include <set>

#include "daemon/diagnose/fix_families.h"
#include "daemon/diagnose/fix_launch.h"
#include "daemon/kernels/index_map.h"
#include "daemon/kernels/literals.h"

namespace kernelwright::diagnose {
namespace {

// `ref[…] += value`, or `ref[…] = ref[…] + value`.
bool IsAccumulation(const Node& node) {
  if (node.Is("augmented_assignment")) {
    return node.Field("operator").text() == "+=" && !SubscriptedName(node.Field("left")).empty();
  }
  if (!node.Is("assignment")) return false;
  const Node left = node.Field("left");
  const Node right = StripParentheses(node.Field("right"));
  if (SubscriptedName(left).empty() || !right.Is("binary_operator") || right.Field("operator").text() != "+")
    return false;
  return right.Field("left").text() == left.text() || right.Field("right").text() == left.text();
}

std::vector<std::string> ParameterNames(const Node& function) {
  std::vector<std::string> names;
  for (const Node& parameter : function.Field("parameters").NamedChildren()) {
    if (parameter.Is("identifier")) names.emplace_back(parameter.text());
  }
  return names;
}

// The statement of the kernel's own body around a node.
Node BodyStatement(const Node& kernel, const Node& node) {
  const Node body = kernel.Field("body");
  Node at = node;
  while (at && !(at.parent() == body)) at = at.parent();
  return at;
}

struct Accumulation {
  Launch launch;
  const PallasCall* call = nullptr;
  Node node;
  std::set<int> axes;  // on which the output's block stays: the reduction
};

std::optional<Accumulation> FindAccumulation(const FixRequest& request) {
  Accumulation found;
  auto launch = LaunchOf(request.source, request.source.place());
  if (!launch || !launch->kernel) return std::nullopt;
  found.launch = std::move(*launch);
  auto sums = request.source.AtPlace(IsAccumulation);
  std::erase_if(sums, [&](const Node& node) { return !Contains(found.launch.kernel, node); });
  if (sums.empty()) sums = FindAll(found.launch.kernel, IsAccumulation);
  if (sums.empty()) return std::nullopt;
  found.node = sums.front();
  found.call = TracedCall(request.source, found.launch, request.context);
  if (found.call == nullptr) return std::nullopt;
  const auto axes = kernels::RevisitingAxes(*found.call);
  if (!axes) return std::nullopt;
  found.axes = *axes;
  return found;
}

}  // namespace

Fixes ZeroAccumulator(const FixRequest& request) {
  const auto sum = FindAccumulation(request);
  if (!sum) return {};
  const std::string ref(SubscriptedName(sum->node.Field("left")));
  const Node statement = BodyStatement(sum->launch.kernel, sum->node);
  if (!statement) return {};
  FixBuilder builder(request.source);
  const std::string zero = ref + "[...] = " + builder.Jnp() + ".zeros_like(" + ref + ")";
  std::string condition;
  for (const int axis : sum->axes) {
    if (sum->call->grid[static_cast<size_t>(axis)] == 1) continue;
    const std::string first = builder.Pl() + ".program_id(" + std::to_string(axis) + ") == 0";
    condition = condition.empty()
                    ? first
                    : (condition.front() == '(' ? condition : "(" + condition + ")") + " & (" + first + ")";
  }
  if (condition.empty()) {
    builder.InsertBefore(statement, zero);
    return {builder.Build("Set " + ref + " to zero first")};
  }
  builder.InsertBefore(statement, "@" + builder.Pl() + ".when(" + condition + ")\ndef _():\n    " + zero + "\n");
  return {builder.Build("Set " + ref + " to zero in the first step of the reduction")};
}

Fixes MaskTail(const FixRequest& request) {
  const auto sum = FindAccumulation(request);
  if (!sum) return {};
  const auto names = ParameterNames(sum->launch.kernel);
  const size_t first = static_cast<size_t>(sum->call->num_scalar_prefetch);
  const Node statement = Statement(sum->node);
  if (!statement || sum->axes.size() != 1) return {};
  const int axis = *sum->axes.begin();
  FixBuilder builder(request.source);
  std::string left;
  for (size_t m = 0; m < sum->call->blocks.size(); ++m) {
    const BlockMapping& mapping = sum->call->blocks[m];
    if (mapping.is_output || !mapping.has_index_map || first + m >= names.size()) continue;
    const auto uses = kernels::AnalyzeBlock(*sum->call, mapping);
    int kernel_dim = 0;  // squeezed dimensions are not seen in the kernel
    for (size_t d = 0; d < mapping.block.size(); ++d) {
      if (mapping.block[d].kind == BlockDim::Kind::kSqueezed) continue;
      const int64_t size = mapping.block[d].size;
      const int64_t extent = mapping.array.dims[d];
      if (uses[d].identity_axis == axis && extent % size != 0) {
        const std::string this_left = std::to_string(extent) + " - " + builder.Pl() + ".program_id(" +
                                      std::to_string(axis) + ") * " + std::to_string(size);
        if (!left.empty() && left != this_left) return {};
        left = this_left;
        const std::string& ref = names[first + m];
        const auto reads =
            FindAll(sum->launch.kernel.Field("body"), [&](const Node& node) { return SubscriptedName(node) == ref; });
        for (const Node& read : reads) {
          if (!IsWholeRead(read)) return {};
          builder.Replace(read, builder.Jnp() + ".where(" + builder.Lax() + ".broadcasted_iota(" + builder.Jnp() +
                                    ".int32, " + ref + ".shape, " + std::to_string(kernel_dim) + ") < left, " +
                                    std::string(read.text()) + ", 0)");
        }
      }
      ++kernel_dim;
    }
  }
  if (left.empty() || Mentions(sum->launch.kernel, "left")) return {};
  const auto body = sum->launch.kernel.Field("body").NamedChildren();
  if (body.empty()) return {};
  Node anchor = body.front();
  if (anchor.Is("expression_statement") && anchor.NamedChildren().size() == 1 &&
      anchor.NamedChildren().front().Is("string") && body.size() > 1) {
    anchor = body[1];
  }
  builder.InsertBefore(anchor, "left = " + left);
  return {builder.Build("Mask what lies past the end, so that it adds nothing")};
}

Fixes StoreAtLastStep(const FixRequest& request) {
  const FixSource& source = request.source;
  const auto launch = LaunchOf(source, source.place());
  if (!launch || !launch->kernel) return {};
  const PallasCall* call = TracedCall(source, *launch, request.context);
  const auto step_axis = [&](const Node& node) -> std::optional<int> {
    Node at = StripParentheses(node);
    if (at.Is("identifier")) at = source.Resolve(at);
    if (!IsCallOf(at, {"program_id"})) return std::nullopt;
    const auto axis = kernels::EvaluateInteger(Argument(at, 0, "axis"));
    if (!axis) return std::nullopt;
    return static_cast<int>(*axis);
  };
  FixBuilder builder(source);
  for (const Node& when : FindAll(launch->kernel, [](const Node& node) { return IsCallOf(node, {"when"}); })) {
    const Node condition = StripParentheses(Argument(when, 0, "condition"));
    if (!condition.Is("comparison_operator")) continue;
    const auto sides = condition.NamedChildren();
    if (sides.size() != 2 || condition.text().find("==") == std::string_view::npos) continue;
    for (const auto& [step, other] : {std::pair(sides[0], sides[1]), std::pair(sides[1], sides[0])}) {
      const auto axis = step_axis(step);
      if (!axis) continue;
      const Node bound = StripParentheses(other);
      const auto number = kernels::EvaluateInteger(bound);
      bool never = IsCallOf(bound, {"num_programs"});
      if (number && call != nullptr && static_cast<size_t>(*axis) < call->grid.size()) {
        never = *number >= call->grid[static_cast<size_t>(*axis)];
      } else if (number && static_cast<size_t>(*axis) < launch->grid.size()) {
        const auto steps = kernels::EvaluateInteger(launch->grid[static_cast<size_t>(*axis)]);
        never = steps && *number >= *steps;
      }
      if (never) {
        builder.Replace(bound, builder.Pl() + ".num_programs(" + std::to_string(*axis) + ") - 1");
        break;
      }
    }
  }
  if (builder.empty()) return {};
  return {builder.Build("Store in the last step that comes: num_programs - 1")};
}

Fixes WaitForCopy(const FixRequest& request) {
  const FixSource& source = request.source;
  const auto is_start = [](const Node& node) {
    if (!node.Is("expression_statement")) return false;
    const auto inside = node.NamedChildren();
    if (inside.size() != 1) return false;
    return IsCallOf(inside.front(), {"start", "async_copy", "semaphore_signal"});
  };
  auto found = source.AtPlace(is_start);
  if (found.empty()) {
    const Node around = Enclosing(source.place(), {"expression_statement"});
    if (around && is_start(around)) found.push_back(around);
  }
  if (found.empty()) {
    if (const auto launch = LaunchOf(source, source.place())) found = FindAll(launch->kernel, is_start);
  }
  if (found.size() != 1) return {};
  const Node statement = found.front();
  const Node call = statement.NamedChildren().front();
  FixBuilder builder(source);
  if (CalleeName(call) == "async_copy") {
    builder.Insert(call.end(), ".wait()");
    return {builder.Build("Wait for the copy")};
  }
  if (CalleeName(call) == "semaphore_signal") {
    const auto arguments = PositionalArguments(call);
    if (arguments.empty() || Keyword(call, "device_id")) return {};
    const std::string_view callee = call.Field("function").text();
    const std::string prefix(callee.substr(0, callee.size() - std::string_view("semaphore_signal").size()));
    const Node count = Argument(call, 1, "inc");
    builder.InsertAfter(statement, prefix + "semaphore_wait(" + std::string(arguments.front().text()) + ", " +
                                       (count ? std::string(count.text()) : "1") + ")");
    return {builder.Build("Wait for what was signalled, so that the count ends at zero")};
  }
  const Node copy = call.Field("function").Field("object");
  std::string name(copy.text());
  Node made = copy;
  if (copy.Is("identifier")) {
    made = source.Resolve(copy);
  } else {
    name = Mentions(source.Function(statement), "copy") ? "started" : "copy";
    if (Mentions(source.Function(statement), name)) return {};
    builder.Replace(copy, name);
    builder.InsertBefore(statement, name + " = " + std::string(copy.text()));
  }
  // Before the first statement that uses what is copied to; at once when none is seen.
  Node anchor;
  const Node target = Argument(made, 1, "dst_ref");
  Node base = target;
  while (base.Is("subscript") || base.Is("attribute") || base.Is("call")) {
    base = base.Is("subscript") ? base.Field("value") : base.Is("call") ? base.Field("function") : base.Field("object");
  }
  bool after = false;
  for (const Node& sibling : statement.parent().NamedChildren()) {
    if (after && base.Is("identifier") && Mentions(sibling, base.text())) {
      anchor = sibling;
      break;
    }
    if (sibling == statement) after = true;
  }
  if (anchor) {
    builder.InsertBefore(anchor, name + ".wait()");
  } else {
    builder.InsertAfter(statement, name + ".wait()");
  }
  return {builder.Build("Wait for the copy before its target is used")};
}

}  // namespace kernelwright::diagnose
