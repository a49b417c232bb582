// Program graph to JSON; see program_json.h.
#include "daemon/kernels/program_json.h"

#include <nlohmann/json.hpp>
#include <type_traits>

namespace kernelwright::kernels {
namespace {

using nlohmann::json;

// "bfloat16[8,128]", references as "Ref{vmem}bfloat16[8,128]".
std::string TypeText(const TensorType& type) {
  std::string text;
  if (type.is_ref) text += "Ref{" + type.memory_space + "}";
  text += type.dtype + "[";
  for (size_t i = 0; i < type.dims.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(type.dims[i]);
  text += "]";
  if (type.weak_type) text += "*";
  return text;
}

json LiteralJson(const std::variant<std::monostate, int64_t, double, bool>& literal) {
  return std::visit(
      [](const auto& value) -> json {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>)
          return nullptr;
        else
          return value;
      },
      literal);
}

json AttributeJson(const Attribute& attribute) {
  return std::visit(
      [](const auto& value) -> json {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>)
          return nullptr;
        else
          return value;
      },
      attribute);
}

json OperandJson(const Operand& operand) {
  if (operand.value) return "%" + std::to_string(*operand.value);
  return json{{"literal", LiteralJson(operand.literal)}, {"type", TypeText(operand.literal_type)}};
}

json ValueJson(const GraphValue& value) {
  json out = {{"id", "%" + std::to_string(value.id)}, {"type", TypeText(value.type)}};
  if (!value.name.empty()) out["name"] = value.name;
  return out;
}

template <typename T, typename F>
json List(const std::vector<T>& values, F&& convert) {
  json out = json::array();
  for (const T& value : values) out.push_back(convert(value));
  return out;
}

json GraphJson(const Graph& graph);

json BlockJson(const BlockMapping& block) {
  json out = {{"origin", block.origin}, {"array", TypeText(block.array)}, {"memory_space", block.memory_space}};
  if (block.is_output) out["output"] = true;
  if (block.buffers != 2) out["buffers"] = block.buffers;
  out["block"] = List(block.block, [](const BlockDim& dim) -> json {
    switch (dim.kind) {
      case BlockDim::Kind::kSqueezed:
        return "squeezed";
      case BlockDim::Kind::kElement:
        return "element:" + std::to_string(dim.size);
      case BlockDim::Kind::kBoundedSlice:
        return "bounded:" + std::to_string(dim.size);
      case BlockDim::Kind::kBlocked:
        break;
    }
    return dim.size;
  });
  if (block.has_index_map) out["index_map"] = GraphJson(block.index_map);
  return out;
}

json CallJson(const PallasCall& call) {
  json out = {{"name", call.name}, {"grid", call.grid}, {"blocks", List(call.blocks, BlockJson)}};
  if (call.num_scalar_prefetch != 0) out["num_scalar_prefetch"] = call.num_scalar_prefetch;
  if (!call.scratch.empty()) out["scratch"] = List(call.scratch, TypeText);
  for (const auto& [operand, output] : call.aliases) out["aliases"].push_back({operand, output});
  if (!call.dimension_semantics.empty()) out["dimension_semantics"] = call.dimension_semantics;
  if (call.vmem_limit_bytes) out["vmem_limit_bytes"] = *call.vmem_limit_bytes;
  if (!call.kernel.operations.empty() || !call.kernel.inputs.empty()) out["kernel"] = GraphJson(call.kernel);
  return out;
}

json OperationJson(const Operation& operation) {
  json out = {
      {"op", operation.name}, {"in", List(operation.inputs, OperandJson)}, {"out", List(operation.outputs, ValueJson)}};
  for (const auto& [name, value] : operation.attributes) out["attributes"][name] = AttributeJson(value);
  for (size_t i = 0; i < operation.regions.size(); ++i) {
    const std::string name =
        i < operation.region_names.size() ? operation.region_names[i] : "region" + std::to_string(i);
    out["regions"][name] = GraphJson(operation.regions[i]);
  }
  for (const SourceSpan& span : operation.spans) {
    out["spans"].push_back(span.file + ":" + std::to_string(span.line) + ":" + std::to_string(span.column) + " " +
                           span.function);
  }
  if (!operation.effects.empty()) out["effects"] = operation.effects;
  for (const PallasCall& call : operation.pallas) out["pallas"].push_back(CallJson(call));
  return out;
}

json GraphJson(const Graph& graph) {
  json out = {{"in", List(graph.inputs, ValueJson)},
              {"out", List(graph.outputs, OperandJson)},
              {"operations", List(graph.operations, OperationJson)}};
  if (!graph.name.empty()) out["name"] = graph.name;
  for (const GraphConstant& constant : graph.constants) {
    out["constants"].push_back({{"id", "%" + std::to_string(constant.value)},
                                {"type", TypeText(constant.type)},
                                {"bytes", constant.size_bytes},
                                {"sha256", constant.sha256}});
  }
  return out;
}

// Names in a program come from the user's files and need not be UTF-8.
std::string Print(const json& value) { return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string ProgramJson(const Program& program) {
  json out = {{"front_end", program.front_end}, {"versions", program.versions}, {"main", GraphJson(program.main)}};
  return Print(out);
}

std::string PallasCallJson(const PallasCall& call) { return Print(CallJson(call)); }

}  // namespace kernelwright::kernels
