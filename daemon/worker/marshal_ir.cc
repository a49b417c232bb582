// Field by field conversion of the program graph. Graphs nest, so the functions call each other; the depth is bounded
// by the parser's recursion limit (ParseMessage in marshal_jobs.h).
#include "daemon/worker/marshal_ir.h"

#include <algorithm>
#include <type_traits>

namespace kernelwright::worker {
namespace {

v1::Graph GraphToProto(const Graph& graph);
Graph GraphFromProto(const v1::Graph& proto);

uint32_t Unsigned(int value) { return static_cast<uint32_t>(std::max(value, 0)); }

v1::GraphValue ValueToProto(const GraphValue& value) {
  v1::GraphValue proto;
  proto.set_id(value.id);
  *proto.mutable_type() = ToProto(value.type);
  proto.set_name(value.name);
  return proto;
}

GraphValue ValueFromProto(const v1::GraphValue& proto) {
  return {.id = proto.id(), .type = FromProto(proto.type()), .name = proto.name()};
}

v1::Operand OperandToProto(const Operand& operand) {
  v1::Operand proto;
  if (operand.value) {
    proto.set_value(*operand.value);
    return proto;
  }
  *proto.mutable_literal_type() = ToProto(operand.literal_type);
  std::visit(
      [&proto](const auto& literal) {
        using T = std::decay_t<decltype(literal)>;
        if constexpr (std::is_same_v<T, std::monostate>) proto.set_dropped(true);
        if constexpr (std::is_same_v<T, int64_t>) proto.set_int_literal(literal);
        if constexpr (std::is_same_v<T, double>) proto.set_float_literal(literal);
        if constexpr (std::is_same_v<T, bool>) proto.set_bool_literal(literal);
      },
      operand.literal);
  return proto;
}

Operand OperandFromProto(const v1::Operand& proto) {
  Operand operand;
  if (proto.kind_case() == v1::Operand::kValue) {
    operand.value = proto.value();
    return operand;
  }
  operand.literal_type = FromProto(proto.literal_type());
  if (proto.kind_case() == v1::Operand::kIntLiteral) operand.literal = int64_t{proto.int_literal()};
  if (proto.kind_case() == v1::Operand::kFloatLiteral) operand.literal = proto.float_literal();
  if (proto.kind_case() == v1::Operand::kBoolLiteral) operand.literal = proto.bool_literal();
  return operand;
}

v1::Attribute AttributeToProto(const std::string& name, const Attribute& attribute) {
  v1::Attribute proto;
  proto.set_name(name);
  std::visit(
      [&proto](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, int64_t>) proto.set_int_value(value);
        if constexpr (std::is_same_v<T, double>) proto.set_float_value(value);
        if constexpr (std::is_same_v<T, bool>) proto.set_bool_value(value);
        if constexpr (std::is_same_v<T, std::string>) proto.set_text(value);
        if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          proto.mutable_ints()->mutable_values()->Assign(value.begin(), value.end());
        }
      },
      attribute);
  return proto;
}

Attribute AttributeFromProto(const v1::Attribute& proto) {
  switch (proto.kind_case()) {
    case v1::Attribute::kIntValue:
      return int64_t{proto.int_value()};
    case v1::Attribute::kFloatValue:
      return proto.float_value();
    case v1::Attribute::kBoolValue:
      return proto.bool_value();
    case v1::Attribute::kText:
      return proto.text();
    case v1::Attribute::kInts:
      return std::vector<int64_t>(proto.ints().values().begin(), proto.ints().values().end());
    case v1::Attribute::KIND_NOT_SET:
      break;
  }
  return std::monostate();
}

v1::Operation OperationToProto(const Operation& operation) {
  v1::Operation proto;
  proto.set_name(operation.name);
  for (const Operand& input : operation.inputs) *proto.add_inputs() = OperandToProto(input);
  for (const GraphValue& output : operation.outputs) *proto.add_outputs() = ValueToProto(output);
  for (const auto& [name, value] : operation.attributes) *proto.add_attributes() = AttributeToProto(name, value);
  for (const Graph& region : operation.regions) *proto.add_regions() = GraphToProto(region);
  for (const std::string& name : operation.region_names) proto.add_region_names(name);
  for (const SourceSpan& span : operation.spans) *proto.add_spans() = ToProto(span);
  for (const std::string& effect : operation.effects) proto.add_effects(effect);
  if (!operation.pallas.empty()) *proto.mutable_pallas() = ToProto(operation.pallas.front());
  return proto;
}

Operation OperationFromProto(const v1::Operation& proto) {
  Operation operation;
  operation.name = proto.name();
  for (const v1::Operand& input : proto.inputs()) operation.inputs.push_back(OperandFromProto(input));
  for (const v1::GraphValue& output : proto.outputs()) operation.outputs.push_back(ValueFromProto(output));
  for (const v1::Attribute& attribute : proto.attributes()) {
    operation.attributes[attribute.name()] = AttributeFromProto(attribute);
  }
  for (const v1::Graph& region : proto.regions()) operation.regions.push_back(GraphFromProto(region));
  operation.region_names.assign(proto.region_names().begin(), proto.region_names().end());
  operation.region_names.resize(operation.regions.size());  // one name per region, whatever was sent
  for (const v1::SourceSpan& span : proto.spans()) operation.spans.push_back(FromProto(span));
  operation.effects.assign(proto.effects().begin(), proto.effects().end());
  if (proto.has_pallas()) operation.pallas.push_back(FromProto(proto.pallas()));
  return operation;
}

v1::Graph GraphToProto(const Graph& graph) {
  v1::Graph proto;
  proto.set_name(graph.name);
  for (const GraphValue& input : graph.inputs) *proto.add_inputs() = ValueToProto(input);
  for (const GraphConstant& constant : graph.constants) {
    v1::GraphConstant& to = *proto.add_constants();
    to.set_value(constant.value);
    *to.mutable_type() = ToProto(constant.type);
    to.set_size_bytes(constant.size_bytes);
    to.set_sha256(constant.sha256);
    to.set_data(constant.data);
  }
  for (const Operation& operation : graph.operations) *proto.add_operations() = OperationToProto(operation);
  for (const Operand& output : graph.outputs) *proto.add_outputs() = OperandToProto(output);
  return proto;
}

Graph GraphFromProto(const v1::Graph& proto) {
  Graph graph;
  graph.name = proto.name();
  for (const v1::GraphValue& input : proto.inputs()) graph.inputs.push_back(ValueFromProto(input));
  for (const v1::GraphConstant& from : proto.constants()) {
    graph.constants.push_back({.value = from.value(),
                               .type = FromProto(from.type()),
                               .size_bytes = from.size_bytes(),
                               .sha256 = from.sha256(),
                               .data = from.data()});
  }
  graph.operations.reserve(static_cast<size_t>(proto.operations_size()));
  for (const v1::Operation& operation : proto.operations()) {
    graph.operations.push_back(OperationFromProto(operation));
  }
  for (const v1::Operand& output : proto.outputs()) graph.outputs.push_back(OperandFromProto(output));
  return graph;
}

v1::BlockDim::Kind KindToProto(BlockDim::Kind kind) {
  switch (kind) {
    case BlockDim::Kind::kBlocked:
      return v1::BlockDim::BLOCKED;
    case BlockDim::Kind::kSqueezed:
      return v1::BlockDim::SQUEEZED;
    case BlockDim::Kind::kElement:
      return v1::BlockDim::ELEMENT;
    case BlockDim::Kind::kBoundedSlice:
      return v1::BlockDim::BOUNDED_SLICE;
  }
  return v1::BlockDim::BLOCKED;
}

BlockDim::Kind KindFromProto(v1::BlockDim::Kind kind) {
  switch (kind) {
    case v1::BlockDim::SQUEEZED:
      return BlockDim::Kind::kSqueezed;
    case v1::BlockDim::ELEMENT:
      return BlockDim::Kind::kElement;
    case v1::BlockDim::BOUNDED_SLICE:
      return BlockDim::Kind::kBoundedSlice;
    default:
      return BlockDim::Kind::kBlocked;
  }
}

v1::BlockMapping MappingToProto(const BlockMapping& mapping) {
  v1::BlockMapping proto;
  proto.set_origin(mapping.origin);
  proto.set_is_output(mapping.is_output);
  *proto.mutable_array() = ToProto(mapping.array);
  for (const BlockDim& dim : mapping.block) {
    v1::BlockDim& to = *proto.add_block();
    to.set_kind(KindToProto(dim.kind));
    to.set_size(dim.size);
  }
  proto.set_memory_space(mapping.memory_space);
  proto.set_buffers(Unsigned(mapping.buffers));
  if (mapping.has_index_map) *proto.mutable_index_map() = GraphToProto(mapping.index_map);
  return proto;
}

BlockMapping MappingFromProto(const v1::BlockMapping& proto) {
  BlockMapping mapping;
  mapping.origin = proto.origin();
  mapping.is_output = proto.is_output();
  mapping.array = FromProto(proto.array());
  for (const v1::BlockDim& dim : proto.block()) {
    mapping.block.push_back({.kind = KindFromProto(dim.kind()), .size = dim.size()});
  }
  mapping.memory_space = proto.memory_space();
  mapping.buffers = static_cast<int>(proto.buffers());
  mapping.has_index_map = proto.has_index_map();
  if (mapping.has_index_map) mapping.index_map = GraphFromProto(proto.index_map());
  return mapping;
}

}  // namespace

v1::SourceSpan ToProto(const SourceSpan& span) {
  v1::SourceSpan proto;
  proto.set_file(span.file);
  proto.set_line(Unsigned(span.line));
  proto.set_column(Unsigned(span.column));
  proto.set_end_line(Unsigned(span.end_line));
  proto.set_end_column(Unsigned(span.end_column));
  proto.set_function(span.function);
  return proto;
}

SourceSpan FromProto(const v1::SourceSpan& proto) {
  return {.file = proto.file(),
          .line = static_cast<int>(proto.line()),
          .column = static_cast<int>(proto.column()),
          .end_line = static_cast<int>(proto.end_line()),
          .end_column = static_cast<int>(proto.end_column()),
          .function = proto.function()};
}

v1::TensorType ToProto(const TensorType& type) {
  v1::TensorType proto;
  proto.set_dtype(type.dtype);
  proto.mutable_dims()->Assign(type.dims.begin(), type.dims.end());
  proto.set_memory_space(type.memory_space);
  proto.set_is_ref(type.is_ref);
  proto.set_weak_type(type.weak_type);
  return proto;
}

TensorType FromProto(const v1::TensorType& proto) {
  return {.dtype = proto.dtype(),
          .dims = {proto.dims().begin(), proto.dims().end()},
          .memory_space = proto.memory_space(),
          .is_ref = proto.is_ref(),
          .weak_type = proto.weak_type()};
}

v1::PallasCall ToProto(const PallasCall& call) {
  v1::PallasCall proto;
  proto.set_name(call.name);
  proto.mutable_grid()->Assign(call.grid.begin(), call.grid.end());
  proto.set_num_scalar_prefetch(Unsigned(call.num_scalar_prefetch));
  for (const BlockMapping& block : call.blocks) *proto.add_blocks() = MappingToProto(block);
  for (const TensorType& scratch : call.scratch) *proto.add_scratch() = ToProto(scratch);
  for (const auto& [operand, output] : call.aliases) {
    v1::Alias& alias = *proto.add_aliases();
    alias.set_operand(Unsigned(operand));
    alias.set_output(Unsigned(output));
  }
  for (const std::string& semantics : call.dimension_semantics) proto.add_dimension_semantics(semantics);
  if (call.vmem_limit_bytes) proto.set_vmem_limit_bytes(*call.vmem_limit_bytes);
  *proto.mutable_kernel() = GraphToProto(call.kernel);
  for (const SourceSpan& span : call.spans) *proto.add_spans() = ToProto(span);
  *proto.mutable_kernel_span() = ToProto(call.kernel_span);
  return proto;
}

PallasCall FromProto(const v1::PallasCall& proto) {
  PallasCall call;
  call.name = proto.name();
  call.grid.assign(proto.grid().begin(), proto.grid().end());
  call.num_scalar_prefetch = static_cast<int>(proto.num_scalar_prefetch());
  for (const v1::BlockMapping& block : proto.blocks()) call.blocks.push_back(MappingFromProto(block));
  for (const v1::TensorType& scratch : proto.scratch()) call.scratch.push_back(FromProto(scratch));
  for (const v1::Alias& alias : proto.aliases()) {
    call.aliases.emplace_back(static_cast<int>(alias.operand()), static_cast<int>(alias.output()));
  }
  call.dimension_semantics.assign(proto.dimension_semantics().begin(), proto.dimension_semantics().end());
  if (proto.has_vmem_limit_bytes()) call.vmem_limit_bytes = proto.vmem_limit_bytes();
  call.kernel = GraphFromProto(proto.kernel());
  for (const v1::SourceSpan& span : proto.spans()) call.spans.push_back(FromProto(span));
  call.kernel_span = FromProto(proto.kernel_span());
  return call;
}

v1::Program ToProto(const Program& program) {
  v1::Program proto;
  proto.set_front_end(program.front_end);
  proto.mutable_versions()->insert(program.versions.begin(), program.versions.end());
  *proto.mutable_main() = GraphToProto(program.main);
  return proto;
}

Program FromProto(const v1::Program& proto) {
  Program program;
  program.front_end = proto.front_end();
  program.versions.insert(proto.versions().begin(), proto.versions().end());
  program.main = GraphFromProto(proto.main());
  return program;
}

}  // namespace kernelwright::worker
