// Reads launches off the syntax tree; see fix_launch.h.
#include "daemon/diagnose/fix_launch.h"

#include <algorithm>
#include <map>

#include "daemon/kernels/literals.h"

namespace kernelwright::diagnose {
namespace {

Node Followed(const FixSource& source, const Node& node) {
  Node at = StripParentheses(node);
  for (int hops = 0; hops < 4 && at.Is("identifier"); ++hops) {
    const Node value = source.Resolve(at);
    if (!value) break;
    at = StripParentheses(value);
  }
  return at;
}

// Specs as a list: `[a, b]`, `(a,)`, `[spec] * 2`, a single one.
void ReadSpecs(const FixSource& source, const Node& value, std::vector<Node>& specs) {
  const Node node = Followed(source, value);
  if (!node) return;
  if (node.Is("binary_operator") && node.Field("operator").text() == "*" && IsSequence(node.Field("left"))) {
    const auto times = kernels::EvaluateInteger(node.Field("right"));
    for (int64_t i = 0; times && i < *times && i < 64; ++i) ReadSpecs(source, node.Field("left"), specs);
    return;
  }
  if (IsSequence(node)) {
    for (const Node& element : node.NamedChildren()) {
      const Node spec = Followed(source, element);
      specs.push_back(IsCallOf(spec, {"BlockSpec"}) ? spec : Node());
    }
    return;
  }
  specs.push_back(IsCallOf(node, {"BlockSpec"}) ? node : Node());
}

Launch ReadLaunch(const FixSource& source, const Node& call) {
  Launch launch;
  launch.call = call;
  launch.spec_call = call;
  if (const Node spec = Followed(source, Keyword(call, "grid_spec")); spec.Is("call")) launch.spec_call = spec;
  const auto given = [&](std::string_view name) {
    const Node own = Keyword(launch.spec_call, name);
    return own ? own : Keyword(call, name);
  };
  if (const Node grid = given("grid")) {
    const Node value = Followed(source, grid);
    if (value) launch.grid = Elements(value);
  }
  if (const Node specs = given("in_specs")) ReadSpecs(source, specs, launch.in_specs);
  if (const Node specs = given("out_specs")) ReadSpecs(source, specs, launch.out_specs);
  if (const Node scratch = given("scratch_shapes")) launch.scratch = Elements(Followed(source, scratch));
  if (const Node count = given("num_scalar_prefetch")) {
    launch.num_scalar_prefetch = static_cast<int>(kernels::EvaluateInteger(count).value_or(0));
  }
  launch.out_shape = Argument(call, 1, "out_shape");
  Node kernel = Followed(source, Argument(call, 0, "kernel"));
  if (IsCallOf(kernel, {"partial"})) kernel = Followed(source, Argument(kernel, 0, ""));
  if (kernel.Is("identifier")) launch.kernel = source.ResolveFunction(kernel);
  return launch;
}

bool IsLaunch(const Node& node) {
  if (!node.Is("call")) return false;
  if (CalleeName(node) == "pallas_call") return true;
  const std::string_view name = CalleeName(node);
  if (name.ends_with("GridSpec") || name == "emit_pipeline" || name == "kernel") return false;
  return Keyword(node, "in_specs") || Keyword(node, "out_specs") || Keyword(node, "grid_spec") ||
         (Keyword(node, "grid") && !Keyword(node, "num_scalar_prefetch"));
}

void Collect(const Graph& graph, const std::string& file, int first, int last, std::string_view primitive,
             bool around_matches, std::vector<TensorType>& types);

void CollectOperation(const Graph& graph, const Operation& operation, const std::string& file, int first, int last,
                      std::string_view primitive, bool around_matches, std::vector<TensorType>& types) {
  // Library functions that are themselves traced (jnp.argmax) have no frame of the user inside.
  bool here = false;
  bool any_frame = false;
  for (const SourceSpan& span : operation.spans) {
    if (span.file != file) continue;
    any_frame = true;
    here = span.line >= first && span.line <= last;
    break;  // innermost frame of this file
  }
  if (!any_frame) here = around_matches;
  if (here && operation.name == primitive && !operation.inputs.empty()) {
    const Operand& operand = operation.inputs.front();
    if (!operand.value) {
      types.push_back(operand.literal_type);
    } else {
      const auto find = [&](const std::vector<GraphValue>& values) {
        for (const GraphValue& value : values) {
          if (value.id == *operand.value) types.push_back(value.type);
        }
      };
      find(graph.inputs);
      for (const Operation& other : graph.operations) find(other.outputs);
    }
  }
  for (const Graph& region : operation.regions) Collect(region, file, first, last, primitive, here, types);
}

void Collect(const Graph& graph, const std::string& file, int first, int last, std::string_view primitive,
             bool around_matches, std::vector<TensorType>& types) {
  for (const Operation& operation : graph.operations) {
    CollectOperation(graph, operation, file, first, last, primitive, around_matches, types);
  }
}

}  // namespace

std::vector<Launch> FindLaunches(const FixSource& source) {
  std::vector<Launch> launches;
  for (const Node& call : FindAll(source.root(), IsLaunch)) launches.push_back(ReadLaunch(source, call));
  return launches;
}

std::optional<Launch> LaunchOf(const FixSource& source, const Node& place) {
  if (!place) return std::nullopt;
  auto launches = FindLaunches(source);
  const auto pick = [&](const std::function<bool(const Launch&)>& wanted) -> std::optional<Launch> {
    const auto found = std::find_if(launches.begin(), launches.end(), wanted);
    if (found == launches.end()) return std::nullopt;
    return *found;
  };
  if (auto launch = pick([&](const Launch& l) { return Contains(l.call, place); })) return launch;
  if (auto launch = pick([&](const Launch& l) { return Contains(l.spec_call, place); })) return launch;
  const auto in_specs = [&](const std::vector<Node>& specs) {
    return std::any_of(specs.begin(), specs.end(), [&](const Node& spec) { return Contains(spec, place); });
  };
  if (auto launch = pick([&](const Launch& l) { return in_specs(l.in_specs) || in_specs(l.out_specs); })) return launch;
  if (auto launch = pick([&](const Launch& l) { return Contains(l.kernel, place); })) return launch;
  const Node outermost = source.OutermostFunction(place);
  std::vector<Launch> near;
  for (Launch& launch : launches) {
    if (Contains(outermost, launch.call) || Contains(place, launch.call)) near.push_back(std::move(launch));
  }
  if (near.size() == 1) return near.front();
  return std::nullopt;
}

const PallasCall* TracedCall(const FixSource& source, const Launch& launch, const FixContext& context) {
  const auto only = [&](const std::function<bool(const PallasCall&)>& wanted) -> const PallasCall* {
    const PallasCall* found = nullptr;
    for (const PallasCall& call : context.calls) {
      if (!wanted(call)) continue;
      // A kernel traced twice with the same shapes is one; with other shapes nothing is certain.
      if (found != nullptr && (found->grid != call.grid || found->blocks.size() != call.blocks.size())) return nullptr;
      if (found == nullptr) found = &call;
    }
    return found;
  };
  const std::string& path = source.file().path();
  const auto on_call = [&](const PallasCall& call) {
    return std::any_of(call.spans.begin(), call.spans.end(), [&](const SourceSpan& span) {
      return span.file == path && span.line >= launch.call.row() + 1 && span.line <= launch.call.end_row() + 2;
    });
  };
  if (const PallasCall* call = only(on_call)) return call;
  const auto of_kernel = [&](const PallasCall& call) {
    return launch.kernel && call.kernel_span.file == path && call.kernel_span.line >= launch.kernel.row() &&
           call.kernel_span.line <= launch.kernel.row() + 2;
  };
  if (const PallasCall* call = only(of_kernel)) return call;
  return context.calls.size() == 1 ? &context.calls.front() : nullptr;
}

Node BlockShape(const Node& spec) { return StripParentheses(Argument(spec, 0, "block_shape")); }

Node IndexMap(const FixSource& source, const Node& spec) {
  const Node map = Followed(source, Argument(spec, 1, "index_map"));
  if (map.Is("lambda")) return map;
  return map.Is("identifier") ? source.ResolveFunction(map) : Node();
}

std::vector<TensorType> OperandTypes(const FixSource& source, const Node& node, std::string_view primitive,
                                     const FixContext& context) {
  std::vector<TensorType> types;
  for (const PallasCall& call : context.calls) {
    Collect(call.kernel, source.file().path(), node.row() + 1, node.end_row() + 1, primitive, false, types);
  }
  return types;
}

}  // namespace kernelwright::diagnose
