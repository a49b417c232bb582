// Program graphs for tests, from the JSON form of proto/kernelwright/v1/ir.proto, as the worker's converter gives them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "daemon/kernels/program.h"

namespace kernelwright::diagnose {

// 64-bit numbers are texts in the JSON form of protobuf.
inline int64_t NumberOf(const nlohmann::json& value) {
  return value.is_string() ? std::strtoll(value.get<std::string>().c_str(), nullptr, 10) : value.get<int64_t>();
}

inline std::vector<int64_t> NumbersOf(const nlohmann::json& object, const char* field) {
  std::vector<int64_t> numbers;
  if (object.contains(field)) {
    for (const auto& number : object[field]) numbers.push_back(NumberOf(number));
  }
  return numbers;
}

inline TensorType TypeOf(const nlohmann::json& in) {
  TensorType type;
  type.dtype = in.value("dtype", "");
  type.dims = NumbersOf(in, "dims");
  type.memory_space = in.value("memory_space", "");
  type.is_ref = in.value("is_ref", false);
  type.weak_type = in.value("weak_type", false);
  return type;
}

inline GraphValue ValueOf(const nlohmann::json& in) {
  GraphValue value;
  value.id = in.value("id", 0U);
  if (in.contains("type")) value.type = TypeOf(in["type"]);
  value.name = in.value("name", "");
  return value;
}

inline Operand OperandOf(const nlohmann::json& in) {
  Operand operand;
  if (in.contains("value")) operand.value = in["value"].get<uint32_t>();
  if (in.contains("int_literal")) operand.literal = NumberOf(in["int_literal"]);
  if (in.contains("bool_literal")) operand.literal = in["bool_literal"].get<bool>();
  if (in.contains("float_literal")) {
    operand.literal = in["float_literal"].is_number() ? in["float_literal"].get<double>() : 0.0;
  }
  if (in.contains("literal_type")) operand.literal_type = TypeOf(in["literal_type"]);
  return operand;
}

inline std::vector<SourceSpan> SpansOf(const nlohmann::json& in) {
  std::vector<SourceSpan> spans;
  if (!in.contains("spans")) return spans;
  for (const auto& entry : in["spans"]) {
    spans.push_back({entry.value("file", ""), entry.value("line", 0), entry.value("column", 0),
                     entry.value("end_line", 0), entry.value("end_column", 0), entry.value("function", "")});
  }
  return spans;
}

inline PallasCall CallOf(const nlohmann::json& in);
inline Graph GraphOf(const nlohmann::json& in);

inline Operation OperationOf(const nlohmann::json& in) {
  Operation operation;
  operation.name = in.value("name", "");
  for (const auto& entry : in.value("inputs", nlohmann::json::array())) operation.inputs.push_back(OperandOf(entry));
  for (const auto& entry : in.value("outputs", nlohmann::json::array())) operation.outputs.push_back(ValueOf(entry));
  for (const auto& entry : in.value("attributes", nlohmann::json::array())) {
    Attribute& attribute = operation.attributes[entry["name"].get<std::string>()];
    if (entry.contains("int_value")) attribute = NumberOf(entry["int_value"]);
    if (entry.contains("float_value") && entry["float_value"].is_number()) {
      attribute = entry["float_value"].get<double>();
    }
    if (entry.contains("bool_value")) attribute = entry["bool_value"].get<bool>();
    if (entry.contains("text")) attribute = entry["text"].get<std::string>();
    if (entry.contains("ints")) attribute = NumbersOf(entry["ints"], "values");
  }
  for (const auto& entry : in.value("regions", nlohmann::json::array())) operation.regions.push_back(GraphOf(entry));
  operation.region_names = in.value("region_names", std::vector<std::string>());
  operation.effects = in.value("effects", std::vector<std::string>());
  operation.spans = SpansOf(in);
  if (in.contains("pallas")) operation.pallas.push_back(CallOf(in["pallas"]));
  return operation;
}

inline Graph GraphOf(const nlohmann::json& in) {
  Graph graph;
  graph.name = in.value("name", "");
  for (const auto& entry : in.value("inputs", nlohmann::json::array())) graph.inputs.push_back(ValueOf(entry));
  for (const auto& entry : in.value("constants", nlohmann::json::array())) {
    GraphConstant constant;
    constant.value = entry.value("value", 0U);
    if (entry.contains("type")) constant.type = TypeOf(entry["type"]);
    graph.constants.push_back(std::move(constant));
  }
  for (const auto& entry : in.value("operations", nlohmann::json::array())) {
    graph.operations.push_back(OperationOf(entry));
  }
  for (const auto& entry : in.value("outputs", nlohmann::json::array())) graph.outputs.push_back(OperandOf(entry));
  return graph;
}

inline PallasCall CallOf(const nlohmann::json& in) {
  PallasCall call;
  call.name = in.value("name", "");
  call.grid = NumbersOf(in, "grid");
  call.num_scalar_prefetch = in.value("num_scalar_prefetch", 0);
  for (const auto& entry : in.value("blocks", nlohmann::json::array())) {
    BlockMapping block;
    block.origin = entry.value("origin", "");
    block.is_output = entry.value("is_output", false);
    block.array = TypeOf(entry["array"]);
    for (const auto& dim : entry.value("block", nlohmann::json::array())) {
      const std::string kind = dim.value("kind", "BLOCKED");
      BlockDim out;
      out.kind = kind == "SQUEEZED"        ? BlockDim::Kind::kSqueezed
                 : kind == "ELEMENT"       ? BlockDim::Kind::kElement
                 : kind == "BOUNDED_SLICE" ? BlockDim::Kind::kBoundedSlice
                                           : BlockDim::Kind::kBlocked;
      out.size = dim.contains("size") ? NumberOf(dim["size"]) : 0;
      block.block.push_back(out);
    }
    block.memory_space = entry.value("memory_space", "");
    block.buffers = entry.value("buffers", 0);
    block.has_index_map = entry.contains("index_map");
    if (block.has_index_map) block.index_map = GraphOf(entry["index_map"]);
    call.blocks.push_back(std::move(block));
  }
  for (const auto& entry : in.value("scratch", nlohmann::json::array())) call.scratch.push_back(TypeOf(entry));
  for (const auto& entry : in.value("aliases", nlohmann::json::array())) {
    call.aliases.emplace_back(entry.value("operand", 0), entry.value("output", 0));
  }
  call.dimension_semantics = in.value("dimension_semantics", std::vector<std::string>());
  if (in.contains("vmem_limit_bytes")) call.vmem_limit_bytes = NumberOf(in["vmem_limit_bytes"]);
  if (in.contains("kernel")) call.kernel = GraphOf(in["kernel"]);
  call.spans = SpansOf(in);
  if (in.contains("kernel_span")) {
    const auto& span = in["kernel_span"];
    call.kernel_span = {span.value("file", ""), span.value("line", 0), 0, 0, 0, span.value("function", "")};
  }
  return call;
}

}  // namespace kernelwright::diagnose
