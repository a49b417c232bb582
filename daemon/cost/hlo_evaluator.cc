// A recursive walk with a memory per computation. Loops and data from the vector unit end it.
#include "daemon/cost/hlo_evaluator.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "daemon/cost/elementwise.h"

namespace kernelwright::cost {
namespace {

using compiler::HloInstruction;
using Result = std::optional<IntArray>;

constexpr int kMaxDepth = 400;

const compiler::HloComputation* FindComputation(const compiler::HloModule& module, std::string_view name) {
  for (const auto& computation : module.computations) {
    if (computation.name == name) return &computation;
  }
  return nullptr;
}

const HloInstruction* FindIn(const compiler::HloComputation& computation, std::string_view name) {
  for (const HloInstruction& instruction : computation.instructions) {
    if (instruction.name == name) return &instruction;
  }
  return nullptr;
}

std::optional<int64_t> Number(std::string_view s) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (error != std::errc{} || end == s.data()) return std::nullopt;
  return value;
}

// The text of "key=…" in attributes, up to the comma outside of braces.
std::string_view Attribute(std::string_view attributes, std::string_view key) {
  size_t at = 0;
  while ((at = attributes.find(key, at)) != std::string_view::npos) {
    const bool whole = (at == 0 || attributes[at - 1] == ',') && attributes.substr(at + key.size()).starts_with('=');
    at += key.size();
    if (!whole) continue;
    const std::string_view rest = attributes.substr(at + 1);
    int depth = 0;
    for (size_t i = 0; i < rest.size(); ++i) {
      if (rest[i] == '{' || rest[i] == '[') ++depth;
      if (rest[i] == '}' || rest[i] == ']') --depth;
      if (rest[i] == ',' && depth == 0) return rest.substr(0, i);
    }
    return rest;
  }
  return {};
}

// "{1,0}" -> 1, 0.
std::vector<size_t> Dimensions(std::string_view list) {
  std::vector<size_t> out;
  size_t at = 0;
  while ((at = list.find_first_of("0123456789", at)) != std::string_view::npos) {
    const auto value = Number(list.substr(at));
    out.push_back(value && *value >= 0 ? static_cast<size_t>(*value) : std::numeric_limits<size_t>::max());
    at = list.find_first_not_of("0123456789", at);
    if (at == std::string_view::npos) break;
  }
  return out;
}

// "{ { 0, 1 }, { true, -3 } }"; nothing when it is elided or does not fit the type.
Result Literal(const ArrayType& type, std::string_view text) {
  if (text.find("...") != std::string_view::npos) return std::nullopt;
  IntArray out;
  out.type = type;
  const auto count = static_cast<size_t>(type.elements());
  size_t at = 0;
  while ((at = text.find_first_not_of(" {},\t", at)) != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(" {},\t", at), text.size());
    const std::string_view token = text.substr(at, end - at);
    at = end;
    std::optional<int64_t> value;
    if (token == "true" || token == "false") {
      value = token == "true" ? 1 : 0;
    } else if (token.find_first_not_of("-0123456789") == std::string_view::npos) {
      value = Number(token);
    }
    if (!value || out.values.size() == count) return std::nullopt;
    out.values.push_back(WrapTo(type.dtype, *value));
  }
  if (out.values.size() != count) return std::nullopt;
  return out;
}

Result Iota(const ArrayType& type, std::string_view attributes) {
  const auto dims = Dimensions(Attribute(attributes, "iota_dimension"));
  if (dims.size() != 1 || dims[0] >= type.dims.size()) return std::nullopt;
  IntArray out;
  out.type = type;
  int64_t inner = 1;
  for (size_t i = dims[0] + 1; i < type.dims.size(); ++i) inner *= type.dims[i];
  const int64_t extent = type.dims[dims[0]];
  out.values.reserve(static_cast<size_t>(type.elements()));
  for (int64_t i = 0; i < type.elements(); ++i) out.values.push_back(WrapTo(type.dtype, i / inner % extent));
  return out;
}

// Element of `from` for each element of the result: dimension d of `from` is dimension map[d] of the result.
Result Rearranged(const ArrayType& type, const IntArray& from, const std::vector<size_t>& map) {
  const size_t rank = from.type.dims.size();
  if (map.size() != rank || from.type.dtype != type.dtype) return std::nullopt;
  std::vector<int64_t> stride(type.dims.size(), 0);
  int64_t step = 1;
  for (size_t d = rank; d-- > 0;) {
    if (map[d] >= type.dims.size() || stride[map[d]] != 0) return std::nullopt;
    if (from.type.dims[d] != type.dims[map[d]]) return std::nullopt;
    stride[map[d]] = step;
    step *= from.type.dims[d];
  }
  IntArray out;
  out.type = type;
  out.values.reserve(static_cast<size_t>(type.elements()));
  std::vector<int64_t> index(type.dims.size(), 0);
  for (int64_t i = 0; i < type.elements(); ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * stride[d];
    out.values.push_back(from.values[static_cast<size_t>(at)]);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < type.dims[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

std::vector<int64_t> WithoutOnes(std::vector<int64_t> dims) {
  std::erase(dims, 1);
  return dims;
}

// The same elements in the same order under another type.
Result Renamed(const ArrayType& type, Result value) {
  if (!value || value->type.dtype != type.dtype || value->type.elements() != type.elements()) return std::nullopt;
  value->type = type;
  return value;
}

}  // namespace

std::optional<IntArray> HloEvaluator::Operand(std::string_view instruction, size_t index) {
  for (const auto& computation : module_.computations) {
    const HloInstruction* found = FindIn(computation, instruction);
    if (found == nullptr) continue;
    if (index >= found->operands.size()) return std::nullopt;
    Scope scope;
    scope.computation = &computation;
    scope.is_entry = computation.is_entry;
    return Evaluate(&scope, found->operands[index]);
  }
  return std::nullopt;
}

HloEvaluator::Result HloEvaluator::Evaluate(Scope* scope, std::string_view name) {
  if (const auto it = scope->known.find(name); it != scope->known.end()) return it->second;
  const HloInstruction* instruction = FindIn(*scope->computation, name);
  if (instruction == nullptr || scope->depth >= kMaxDepth) return std::nullopt;
  scope->known.emplace(std::string(name), std::nullopt);  // a text that refers to itself is unknown
  ++scope->depth;
  Result result = Compute(scope, *instruction);
  --scope->depth;
  if (result) budget_ -= static_cast<int64_t>(result->values.size());
  if (budget_ < 0) result.reset();
  scope->known.insert_or_assign(std::string(name), result);
  return result;
}

HloEvaluator::Result HloEvaluator::Compute(Scope* scope, const HloInstruction& instruction) {
  const std::string& opcode = instruction.opcode;
  // Asynchronous copies have a tuple as type; what they bring is their operand.
  if (opcode == "copy-start" && instruction.operands.size() == 1) return Evaluate(scope, instruction.operands[0]);
  const auto type = ParseArrayType(instruction.type);
  if (!type || IntegerBits(type->dtype) == 0 || budget_ < type->elements()) return std::nullopt;
  if (opcode == "constant") return Literal(*type, instruction.literal);
  if (opcode == "iota") return Iota(*type, instruction.attributes);
  if (opcode == "fusion" || opcode == "call") return Renamed(*type, Call(scope, instruction));
  if (opcode == "parameter") {
    const auto number = Number(instruction.literal);
    if (!number || *number < 0) return std::nullopt;
    const auto index = static_cast<size_t>(*number);
    if (scope->is_entry) return parameter_ ? parameter_(index, *type) : std::nullopt;
    return index < scope->arguments.size() ? Renamed(*type, scope->arguments[index]) : std::nullopt;
  }
  std::vector<IntArray> operands;
  for (const std::string& operand : instruction.operands) {
    Result value = Evaluate(scope, operand);
    if (!value) return std::nullopt;
    operands.push_back(*std::move(value));
  }
  if (operands.size() == 1) {
    if (opcode == "copy" || opcode == "copy-done" || opcode == "reshape") return Renamed(*type, operands[0]);
    // A bitcast keeps the bytes; the elements keep their order when only extents of one come or go.
    if (opcode == "bitcast" && WithoutOnes(operands[0].type.dims) == WithoutOnes(type->dims)) {
      return Renamed(*type, operands[0]);
    }
    if (opcode == "broadcast") {
      return Rearranged(*type, operands[0], Dimensions(Attribute(instruction.attributes, "dimensions")));
    }
    if (opcode == "transpose") {
      // Dimension i of the result is dimension permutation[i] of the operand.
      const auto permutation = Dimensions(Attribute(instruction.attributes, "dimensions"));
      std::vector<size_t> map(permutation.size(), permutation.size());
      for (size_t i = 0; i < permutation.size(); ++i) {
        if (permutation[i] < map.size()) map[permutation[i]] = i;
      }
      return Rearranged(*type, operands[0], map);
    }
  }
  return Elementwise(*type, opcode, Attribute(instruction.attributes, "direction"), operands);
}

HloEvaluator::Result HloEvaluator::Call(Scope* scope, const HloInstruction& instruction) {
  const compiler::HloComputation* callee = FindComputation(module_, instruction.calls);
  if (callee == nullptr) return std::nullopt;
  Scope inner;
  inner.computation = callee;
  inner.depth = scope->depth + 1;
  for (const std::string& operand : instruction.operands) inner.arguments.push_back(Evaluate(scope, operand));
  for (const HloInstruction& candidate : callee->instructions) {
    if (candidate.is_root) return Evaluate(&inner, candidate.name);
  }
  return std::nullopt;
}

}  // namespace kernelwright::cost
