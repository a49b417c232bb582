// Builds kernel descriptions as the front end delivers them, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon/kernels/program.h"

namespace kernelwright::cost {

inline TensorType TypeOf(std::string dtype, std::vector<int64_t> dims, std::string space = "") {
  TensorType type;
  type.dtype = std::move(dtype);
  type.dims = std::move(dims);
  type.memory_space = std::move(space);
  return type;
}

inline Operand ValueOperand(uint32_t id) {
  Operand operand;
  operand.value = id;
  return operand;
}

inline Operand IntOperand(int64_t value) {
  Operand operand;
  operand.literal_type = TypeOf("int32", {});
  operand.literal = value;
  return operand;
}

inline Operation Op(std::string name, std::vector<Operand> inputs, uint32_t output, TensorType type) {
  Operation op;
  op.name = std::move(name);
  op.inputs = std::move(inputs);
  op.outputs.push_back({output, std::move(type), ""});
  return op;
}

inline Operation IntOp(std::string name, std::vector<Operand> inputs, uint32_t output, std::string dtype = "int32") {
  return Op(std::move(name), std::move(inputs), output, TypeOf(std::move(dtype), {}));
}

// Index map with `rank` grid ids (values 0 … rank - 1) and these outputs; -1 stands for the literal 0.
inline Graph PickMap(size_t rank, const std::vector<int>& outputs) {
  Graph map;
  for (size_t i = 0; i < rank; ++i) map.inputs.push_back({static_cast<uint32_t>(i), TypeOf("int32", {}), ""});
  for (const int o : outputs) map.outputs.push_back(o < 0 ? IntOperand(0) : ValueOperand(static_cast<uint32_t>(o)));
  return map;
}

inline BlockMapping Blocked(std::string origin, TensorType array, const std::vector<int64_t>& block, Graph map,
                            bool is_output = false) {
  BlockMapping mapping;
  mapping.origin = std::move(origin);
  mapping.is_output = is_output;
  mapping.array = std::move(array);
  for (const int64_t size : block) mapping.block.push_back({BlockDim::Kind::kBlocked, size});
  mapping.memory_space = "vmem";
  mapping.index_map = std::move(map);
  return mapping;
}

// [m, k] x [k, n] in blocks, accumulated in scratch over the last axis: the body is always that of 128-blocks, as when
// the sizes of a traced kernel are changed without tracing again.
inline PallasCall MatmulCall(int64_t m, int64_t n, int64_t k, int64_t bm, int64_t bn, int64_t bk) {
  PallasCall call;
  call.name = "mm";
  call.grid = {(m + bm - 1) / bm, (n + bn - 1) / bn, (k + bk - 1) / bk};
  call.dimension_semantics = {"parallel", "parallel", "arbitrary"};
  call.blocks = {Blocked("x_ref", TypeOf("bfloat16", {m, k}), {bm, bk}, PickMap(3, {0, 2})),
                 Blocked("y_ref", TypeOf("bfloat16", {k, n}), {bk, bn}, PickMap(3, {2, 1})),
                 Blocked("o_ref", TypeOf("bfloat16", {m, n}), {bm, bn}, PickMap(3, {0, 1}), true)};
  call.scratch = {TypeOf("float32", {bm, bn}, "vmem")};
  const auto ref = [](uint32_t id, const char* dtype) {
    TensorType type = TypeOf(dtype, {128, 128}, "vmem");
    type.is_ref = true;
    return GraphValue{id, type, ""};
  };
  Graph& body = call.kernel;
  body.inputs = {ref(0, "bfloat16"), ref(1, "bfloat16"), ref(2, "bfloat16"), ref(3, "float32")};
  const TensorType acc = TypeOf("float32", {128, 128});
  const TensorType half = TypeOf("bfloat16", {128, 128});
  const TensorType flag = TypeOf("bool", {});
  const auto when = [&](int64_t position, uint32_t first, std::vector<Operation> operations) {
    Operation eq = Op("eq", {ValueOperand(first), IntOperand(position)}, first + 1, flag);
    Operation index = IntOp("convert_element_type", {ValueOperand(first + 1)}, first + 2);
    Operation cond;
    cond.name = "cond";
    cond.inputs = {ValueOperand(first + 2), ValueOperand(3), ValueOperand(2)};
    Graph no;
    no.inputs = {{first + 3, body.inputs[3].type, ""}, {first + 4, body.inputs[2].type, ""}};
    Graph yes;
    yes.inputs = {{first + 5, body.inputs[3].type, ""}, {first + 6, body.inputs[2].type, ""}};
    yes.operations = std::move(operations);
    cond.regions = {no, yes};
    cond.region_names = {"branches[0]", "branches[1]"};
    Operation id = IntOp("program_id", {}, first);
    id.attributes["axis"] = int64_t{2};
    body.operations.push_back(id);
    body.operations.push_back(eq);
    body.operations.push_back(index);
    body.operations.push_back(cond);
  };
  when(0, 10,
       {Op("broadcast_in_dim", {IntOperand(0)}, 18, acc), Op("swap", {ValueOperand(15), ValueOperand(18)}, 19, acc)});
  body.operations.push_back(Op("get", {ValueOperand(3)}, 30, acc));
  body.operations.push_back(Op("get", {ValueOperand(0)}, 31, half));
  body.operations.push_back(Op("get", {ValueOperand(1)}, 32, half));
  Operation dot = Op("dot_general", {ValueOperand(31), ValueOperand(32)}, 33, acc);
  dot.attributes["dimension_numbers.structure"] = std::string("(((1),(0)),((),()))");
  body.operations.push_back(dot);
  body.operations.push_back(Op("add", {ValueOperand(30), ValueOperand(33)}, 34, acc));
  body.operations.push_back(Op("swap", {ValueOperand(3), ValueOperand(34)}, 35, acc));
  when(call.grid[2] - 1, 40,
       {Op("get", {ValueOperand(45)}, 48, acc), Op("convert_element_type", {ValueOperand(48)}, 49, half),
        Op("swap", {ValueOperand(46), ValueOperand(49)}, 50, half)});
  return call;
}

}  // namespace kernelwright::cost
