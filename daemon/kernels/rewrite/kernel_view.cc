// Views of kernels and the questions about them; see kernel_view.h.
#include "daemon/kernels/rewrite/kernel_view.h"

#include <algorithm>
#include <cstdio>

#include "daemon/kernels/index_map.h"
#include "daemon/kernels/literals.h"
#include "daemon/profile/report.h"

namespace kernelwright::rewrite {
namespace {

// Parameters that are given by position; those with a default or behind `*` are static arguments.
std::vector<std::string> PositionalParameters(const Node& function) {
  std::vector<std::string> names;
  for (const Node& parameter : function.Field("parameters").NamedChildren()) {
    if (parameter.Is("identifier")) {
      names.emplace_back(parameter.text());
    } else if (parameter.Is("typed_parameter")) {
      const auto children = parameter.NamedChildren();
      if (children.empty() || !children.front().Is("identifier")) return {};
      names.emplace_back(children.front().text());
    } else if (parameter.Is("keyword_separator") || parameter.Is("default_parameter") ||
               parameter.Is("typed_default_parameter")) {
      break;
    } else {
      return {};
    }
  }
  return names;
}

const profile::KernelProfile* ProfileOf(const kernels::ProposalContext& request, const Launch& launch) {
  if (request.profile == nullptr || request.profile->static_counts) return nullptr;
  const profile::KernelProfile* only = nullptr;
  int count = 0;
  for (const profile::KernelProfile& kernel : request.profile->kernels) {
    if (!kernel.is_pallas) continue;
    if (kernel.line >= launch.call.row() + 1 && kernel.line <= launch.call.end_row() + 2) return &kernel;
    only = &kernel;
    ++count;
  }
  return count == 1 ? only : nullptr;
}

bool InSpan(const FixSource& source, const SourceSpan& span, const Node& node) {
  if (span.file != source.file().path() || span.line < 1) return false;
  const uint32_t at = source.file().Offset(span.line, span.column);
  return at >= node.begin() && at < node.end();
}

// The innermost frame of the user's file.
const SourceSpan* Innermost(const FixSource& source, const Operation& operation) {
  for (const SourceSpan& span : operation.spans) {
    if (span.file == source.file().path()) return &span;
  }
  return nullptr;
}

void CollectTypes(const Graph& graph, std::map<uint32_t, TensorType>& types) {
  for (const GraphValue& value : graph.inputs) types[value.id] = value.type;
  for (const GraphConstant& constant : graph.constants) types[constant.value] = constant.type;
  for (const Operation& operation : graph.operations) {
    for (const GraphValue& value : operation.outputs) types[value.id] = value.type;
    for (const Graph& region : operation.regions) CollectTypes(region, types);
  }
}

void Walk(const Graph& graph, int depth, const std::function<void(const Operation&, int)>& visit) {
  for (const Operation& operation : graph.operations) {
    visit(operation, depth);
    for (const Graph& region : operation.regions) Walk(region, depth + 1, visit);
  }
}

bool IsModuleName(const FixSource& source, std::string_view name) {
  for (const kernels::Import& entry : source.file().imports()) {
    if (entry.alias == name) return true;
  }
  return false;
}

void Add(const KernelView& view, const Node& expression, int hops, Dependence& found) {
  for (const Node& name : Variables(expression)) {
    const std::string_view text = name.text();
    if (const Ref* ref = view.Find(text)) {
      // `x_ref.shape` and `x_ref.dtype` say nothing about its content.
      const Node above = name.parent();
      if (above.Is("attribute")) {
        const std::string_view attribute = above.Field("attribute").text();
        if (attribute == "shape" || attribute == "dtype" || attribute == "ndim" || attribute == "size") continue;
      }
      found.refs.insert(ref->name);
      continue;
    }
    if (IsModuleName(view.source, text)) continue;
    const Node value = view.source.Resolve(name);
    if (value) {
      if (!diagnose::Contains(view.kernel(), value)) continue;  // fixed while the kernel is traced
      if (hops <= 0) {
        found.known = false;
      } else {
        Add(view, value, hops - 1, found);
      }
      continue;
    }
    // Bound inside the kernel in another way (a loop, a parameter of an inner function, twice), or outside of it.
    bool inside = false;
    for (Node scope = name.parent(); scope && !inside && !(scope == view.kernel()); scope = scope.parent()) {
      if (scope.Is("lambda") || scope.Is("function_definition")) {
        inside = diagnose::Mentions(scope.Field("parameters"), text);
      }
    }
    const auto bound = diagnose::FindAll(view.body(), [&](const Node& node) {
      const bool target = node.Is("assignment") || node.Is("augmented_assignment") || node.Is("for_statement") ||
                          node.Is("named_expression");
      const Node left = node.Is("named_expression") ? node.Field("name") : node.Field("left");
      if (target && Uses(left, text)) return true;
      return node.Is("function_definition") && node.Field("name").text() == text;
    });
    if (inside || !bound.empty()) found.known = false;
  }
  for (const Node& call : diagnose::FindAll(expression, [](const Node& node) { return node.Is("call"); })) {
    const std::string_view callee = diagnose::CalleeName(call);
    if (callee == "program_id") {
      const auto axis = kernels::EvaluateInteger(diagnose::Argument(call, 0, "axis"));
      if (axis) {
        found.axes.insert(static_cast<int>(*axis));
      } else {
        found.known = false;
      }
    }
    // A function of the user's may read or write anything.
    if (call.Field("function").Is("identifier") && !IsModuleName(view.source, callee)) {
      static const std::set<std::string_view> kHarmless = {"len", "int", "float", "tuple",
                                                           "min", "max", "abs",   "range"};
      if (!kHarmless.contains(callee)) found.known = false;
    }
    if (callee == "prng_random_bits" || callee == "prng_seed" || callee == "debug_print") found.known = false;
  }
}

bool Alike(const PallasCall& a, const PallasCall& b) {
  if (a.grid != b.grid || a.blocks.size() != b.blocks.size() || a.scratch.size() != b.scratch.size()) return false;
  for (size_t i = 0; i < a.blocks.size(); ++i) {
    if (a.blocks[i].array.dtype != b.blocks[i].array.dtype || a.blocks[i].array.dims != b.blocks[i].array.dims) {
      return false;
    }
  }
  return true;
}

// The traced calls that were made where the launch stands.
std::vector<const PallasCall*> TracedAt(const FixSource& source, const Launch& launch,
                                        const std::vector<PallasCall>& calls) {
  std::vector<const PallasCall*> found;
  for (const PallasCall& call : calls) {
    const bool here = std::any_of(call.spans.begin(), call.spans.end(), [&](const SourceSpan& span) {
      return span.file == source.file().path() && span.line >= launch.call.row() + 1 &&
             span.line <= launch.call.end_row() + 1;
    });
    if (here) found.push_back(&call);
  }
  return found;
}

// The function that a traced kernel was made from, when it stands in this file.
Node FunctionOf(const FixSource& source, const PallasCall& call) {
  if (call.kernel_span.file != source.file().path()) return {};
  for (const Node& function :
       diagnose::FindAll(source.root(), [](const Node& node) { return node.Is("function_definition"); })) {
    const Node above = function.parent();
    const int first = above.Is("decorated_definition") ? above.row() + 1 : function.row() + 1;
    if (call.kernel_span.line >= first && call.kernel_span.line <= function.row() + 1) return function;
  }
  return {};
}

bool IsStep(const KernelView& view, const Node& expression, int axis) { return StepAxis(view, expression) == axis; }

}  // namespace

const Ref* KernelView::Find(std::string_view name) const {
  const auto found = std::find_if(refs.begin(), refs.end(), [&](const Ref& ref) { return ref.name == name; });
  return found == refs.end() ? nullptr : &*found;
}

std::vector<const Ref*> KernelView::Of(RefKind kind) const {
  std::vector<const Ref*> found;
  for (const Ref& ref : refs) {
    if (ref.kind == kind) found.push_back(&ref);
  }
  return found;
}

std::vector<KernelView> ViewsOf(const kernels::ProposalContext& request, const FixSource& source,
                                const std::vector<PallasCall>& calls) {
  std::vector<KernelView> views;
  auto launches = diagnose::FindLaunches(source);
  for (const Launch& found : launches) {
    Launch launch = found;
    const auto traced = TracedAt(source, launch, calls);
    if (traced.empty()) continue;
    const PallasCall* call = traced.front();
    if (!std::all_of(traced.begin(), traced.end(), [&](const PallasCall* other) { return Alike(*call, *other); })) {
      continue;
    }
    const bool given = !launch.kernel;
    if (given) launch.kernel = FunctionOf(source, *call);
    if (!launch.kernel) continue;
    const Node function = launch.kernel;
    const auto names = PositionalParameters(launch.kernel);
    const size_t prefetch = static_cast<size_t>(call->num_scalar_prefetch);
    if (names.size() != prefetch + call->blocks.size() + call->scratch.size()) continue;
    KernelView view{request, source, std::move(launch), *call};
    view.profile = ProfileOf(request, view.launch);
    view.traced = static_cast<int>(traced.size());
    view.shared_call = given;
    view.shared_kernel = std::any_of(launches.begin(), launches.end(), [&](const Launch& other) {
      return !(other.call == found.call) && other.kernel && other.kernel == function;
    });
    size_t inputs = 0;
    size_t outputs = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      Ref ref;
      ref.name = names[i];
      if (i < call->kernel.inputs.size()) ref.type = call->kernel.inputs[i].type;
      if (i < prefetch) {
        ref.kind = RefKind::kPrefetch;
      } else if (i < prefetch + call->blocks.size()) {
        ref.block = &call->blocks[i - prefetch];
        ref.kind = ref.block->is_output ? RefKind::kOutput : RefKind::kInput;
        const auto& specs = ref.block->is_output ? view.launch.out_specs : view.launch.in_specs;
        size_t& number = ref.block->is_output ? outputs : inputs;
        if (number < specs.size()) ref.spec = specs[number];
        ++number;
      } else {
        ref.kind = RefKind::kScratch;
      }
      view.refs.push_back(std::move(ref));
    }
    views.push_back(std::move(view));
  }
  return views;
}

Dependence DependenceOf(const KernelView& view, const Node& expression) {
  Dependence found;
  Add(view, expression, 12, found);
  return found;
}

std::optional<std::set<int>> AxesOf(const KernelView& view, const Ref& ref) {
  std::set<int> axes;
  if (ref.block == nullptr || !ref.block->has_index_map) return axes;
  for (const kernels::DimUse& use : kernels::AnalyzeBlock(view.call, *ref.block)) {
    if (!use.known) return std::nullopt;
    axes.insert(use.axes.begin(), use.axes.end());
  }
  return axes;
}

std::vector<Node> Statements(const Node& block) {
  std::vector<Node> found;
  for (const Node& node : block.NamedChildren()) {
    if (!node.Is("comment")) found.push_back(node);
  }
  return found;
}

std::vector<Node> Variables(const Node& below) {
  return diagnose::FindAll(below, [](const Node& node) {
    if (!node.Is("identifier")) return false;
    const Node above = node.parent();
    if (above.Is("attribute") && above.Field("attribute") == node) return false;
    return !(above.Is("keyword_argument") && above.Field("name") == node);
  });
}

bool Uses(const Node& below, std::string_view name) {
  const auto names = Variables(below);
  return std::any_of(names.begin(), names.end(), [&](const Node& node) { return node.text() == name; });
}

std::vector<Node> Accesses(const Node& below, std::string_view ref) {
  return diagnose::FindAll(below, [&](const Node& node) { return diagnose::SubscriptedName(node) == ref; });
}

bool IsTarget(const Node& subscript) {
  const Node above = subscript.parent();
  return (above.Is("assignment") || above.Is("augmented_assignment")) && above.Field("left") == subscript;
}

std::optional<int> StepAxis(const KernelView& view, const Node& expression) {
  Node at = diagnose::StripParentheses(expression);
  if (at.Is("identifier")) at = view.source.Resolve(at);
  if (!diagnose::IsCallOf(at, {"program_id"})) return std::nullopt;
  const auto axis = kernels::EvaluateInteger(diagnose::Argument(at, 0, "axis"));
  if (!axis || *axis < 0 || *axis >= static_cast<int64_t>(view.call.grid.size())) return std::nullopt;
  return static_cast<int>(*axis);
}

std::vector<Guard> GuardsIn(const Node& below) {
  std::vector<Guard> guards;
  for (const Node& node : diagnose::FindAll(below, [](const Node& n) { return n.Is("decorated_definition"); })) {
    for (const Node& child : node.NamedChildren()) {
      if (!child.Is("decorator")) continue;
      const auto parts = child.NamedChildren();
      if (parts.size() != 1 || !diagnose::IsCallOf(parts.front(), {"when"})) continue;
      guards.push_back({node, diagnose::StripParentheses(diagnose::Argument(parts.front(), 0, "condition")),
                        node.Field("definition").Field("body")});
    }
  }
  return guards;
}

bool IsFirstStep(const KernelView& view, const Node& condition, int axis) {
  if (!condition.Is("comparison_operator") || condition.text().find("==") == std::string_view::npos) return false;
  const auto sides = condition.NamedChildren();
  if (sides.size() != 2) return false;
  const auto zero = [](const Node& node) { return kernels::EvaluateInteger(diagnose::StripParentheses(node)) == 0; };
  return (IsStep(view, sides[0], axis) && zero(sides[1])) || (IsStep(view, sides[1], axis) && zero(sides[0]));
}

bool IsLastStep(const KernelView& view, const Node& condition, int axis) {
  if (!condition.Is("comparison_operator") || condition.text().find("==") == std::string_view::npos) return false;
  const auto sides = condition.NamedChildren();
  if (sides.size() != 2 || axis < 0 || axis > view.last_axis()) return false;
  const int64_t steps = view.call.grid[static_cast<size_t>(axis)];
  const auto last = [&](Node node) {
    node = diagnose::StripParentheses(node);
    if (node.Is("identifier")) node = diagnose::StripParentheses(view.source.Resolve(node));
    if (const auto number = kernels::EvaluateInteger(node)) return *number == steps - 1;
    if (!node.Is("binary_operator") || node.Field("operator").text() != "-") return false;
    if (kernels::EvaluateInteger(node.Field("right")) != 1) return false;
    Node count = diagnose::StripParentheses(node.Field("left"));
    if (count.Is("identifier")) count = view.source.Resolve(count);
    return diagnose::IsCallOf(count, {"num_programs"}) &&
           kernels::EvaluateInteger(diagnose::Argument(count, 0, "axis")) == axis;
  };
  return (IsStep(view, sides[0], axis) && last(sides[1])) || (IsStep(view, sides[1], axis) && last(sides[0]));
}

std::optional<TensorType> TypeOf(const KernelView& view, const Node& expression) {
  const Operation* best = nullptr;
  int best_depth = 0;
  Walk(view.call.kernel, 0, [&](const Operation& operation, int depth) {
    const SourceSpan* span = Innermost(view.source, operation);
    if (span == nullptr || operation.outputs.size() != 1 || !InSpan(view.source, *span, expression)) return;
    if (best == nullptr || depth <= best_depth) {
      best = &operation;
      best_depth = depth;
    }
  });
  if (best == nullptr) return std::nullopt;
  return best->outputs.front().type;
}

std::vector<TracedOperation> OperationsAt(const KernelView& view, const Node& expression, std::string_view primitive) {
  std::map<uint32_t, TensorType> types;
  CollectTypes(view.call.kernel, types);
  std::vector<TracedOperation> found;
  Walk(view.call.kernel, 0, [&](const Operation& operation, int) {
    if (operation.name != primitive) return;
    const SourceSpan* span = Innermost(view.source, operation);
    if (span == nullptr || span->file != view.source.file().path()) return;
    if (view.source.file().Offset(span->line, span->column) != expression.begin()) return;
    TracedOperation entry{&operation, {}};
    for (const Operand& operand : operation.inputs) {
      entry.operands.push_back(operand.value ? types[*operand.value] : operand.literal_type);
    }
    found.push_back(std::move(entry));
  });
  return found;
}

bool IsConstantNumber(const KernelView& view, const Node& expression) {
  Node at = diagnose::StripParentheses(expression);
  for (int hops = 0; hops < 4; ++hops) {
    if (at.Is("integer") || at.Is("float")) return true;
    if (at.Is("unary_operator")) {
      at = diagnose::StripParentheses(at.Field("argument"));
    } else if (at.Is("binary_operator")) {
      return IsConstantNumber(view, at.Field("left")) && IsConstantNumber(view, at.Field("right"));
    } else if (at.Is("identifier")) {
      at = diagnose::StripParentheses(view.source.Resolve(at));
    } else {
      return false;
    }
  }
  return false;
}

bool IsCostly(const Node& expression) {
  static const std::set<std::string_view> kCostly = {
      "exp",     "exp2",  "log",  "log1p",    "tanh",  "sin",    "cos",      "sigmoid", "logistic",
      "silu",    "swish", "gelu", "softplus", "rsqrt", "sqrt",   "erf",      "power",   "reciprocal",
      "softmax", "mean",  "sum",  "max",      "dot",   "matmul", "transpose"};
  return !diagnose::FindAll(expression, [](const Node& node) {
            if (node.Is("call")) return kCostly.contains(diagnose::CalleeName(node));
            return node.Is("binary_operator") && node.Field("operator").text() == "/";
          }).empty();
}

std::string Count(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string Bytes(int64_t bytes) {
  char text[40];
  if (bytes >= (int64_t{1} << 20)) {
    std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  } else {
    std::snprintf(text, sizeof text, "%.1f KiB", static_cast<double>(bytes) / (1 << 10));
  }
  return text;
}

std::string Share(double share) {
  char text[20];
  std::snprintf(text, sizeof text, "%.0f %%", share * 100);
  return text;
}

}  // namespace kernelwright::rewrite
