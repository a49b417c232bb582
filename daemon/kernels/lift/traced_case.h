// For tests: reads a traced program that testdata/trace.py wrote.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/kernels/program.h"

namespace kernelwright::kernels::lift {

inline int64_t IntegerOf(const nlohmann::json& value) {
  return value.is_string() ? std::stoll(value.get<std::string>()) : value.get<int64_t>();
}

inline TensorType TypeOf(const nlohmann::json& value) {
  TensorType type;
  type.dtype = value.value("dtype", "");
  for (const auto& dim : value.value("dims", nlohmann::json::array())) type.dims.push_back(IntegerOf(dim));
  type.weak_type = value.value("weak_type", false);
  return type;
}

inline GraphValue ValueOf(const nlohmann::json& value) {
  return {value.value("id", uint32_t{0}), TypeOf(value.at("type")), value.value("name", "")};
}

inline Operand OperandOf(const nlohmann::json& value) {
  Operand operand;
  if (value.contains("value")) operand.value = value.at("value").get<uint32_t>();
  if (value.contains("literal_type")) operand.literal_type = TypeOf(value.at("literal_type"));
  if (value.contains("int_literal")) operand.literal = IntegerOf(value.at("int_literal"));
  if (value.contains("bool_literal")) operand.literal = value.at("bool_literal").get<bool>();
  if (value.contains("float_literal")) {
    const auto& number = value.at("float_literal");
    const std::string word = number.is_string() ? number.get<std::string>() : "";
    operand.literal = word == "-Infinity"  ? -HUGE_VAL
                      : word == "Infinity" ? HUGE_VAL
                      : word == "NaN"      ? std::nan("")
                                           : number.get<double>();
  }
  return operand;
}

inline Graph GraphOf(const nlohmann::json& value) {
  const nlohmann::json none = nlohmann::json::array();
  Graph graph;
  for (const auto& input : value.value("inputs", none)) graph.inputs.push_back(ValueOf(input));
  for (const auto& output : value.value("outputs", none)) graph.outputs.push_back(OperandOf(output));
  for (const auto& entry : value.value("constants", none)) {
    graph.constants.push_back({entry.at("value"), TypeOf(entry.at("type")), 0, "", ""});
  }
  for (const auto& entry : value.value("operations", none)) {
    Operation operation;
    operation.name = entry.at("name");
    for (const auto& input : entry.value("inputs", none)) operation.inputs.push_back(OperandOf(input));
    for (const auto& output : entry.value("outputs", none)) operation.outputs.push_back(ValueOf(output));
    for (const auto& region : entry.value("regions", none)) operation.regions.push_back(GraphOf(region));
    for (const auto& span : entry.value("spans", none)) {
      operation.spans.push_back({span.value("file", ""), span.value("line", 0), span.value("column", 0),
                                 span.value("end_line", 0), span.value("end_column", 0), span.value("function", "")});
    }
    for (const auto& attribute : entry.value("attributes", none)) {
      Attribute& found = operation.attributes[attribute.at("name")];
      if (attribute.contains("int_value")) found = IntegerOf(attribute.at("int_value"));
      if (attribute.contains("bool_value")) found = attribute.at("bool_value").get<bool>();
      if (attribute.contains("text")) found = attribute.at("text").get<std::string>();
      if (attribute.contains("ints")) {
        std::vector<int64_t> list;
        for (const auto& each : attribute.at("ints").value("values", none)) list.push_back(IntegerOf(each));
        found = list;
      }
    }
    graph.operations.push_back(std::move(operation));
  }
  return graph;
}

inline Program ProgramOf(const nlohmann::json& value) {
  Program program;
  program.front_end = "jax";
  program.main = GraphOf(value.at("main"));
  return program;
}

}  // namespace kernelwright::kernels::lift
