// See elementwise.h.
#include "daemon/cost/elementwise.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kernelwright::cost {
namespace {

using Binary = int64_t (*)(int64_t a, int64_t b, int bits);
using Unary = int64_t (*)(int64_t a);

uint64_t Pattern(int64_t value, int bits) { return static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1); }
bool OutOfRange(int64_t shift, int bits) { return shift < 0 || shift >= bits; }

// Division by zero gives all ones and the remainder its dividend, as HLO says.
int64_t Divide(int64_t a, int64_t b, int) { return b == 0 ? -1 : a / b; }
int64_t Remainder(int64_t a, int64_t b, int) { return b == 0 ? a : a % b; }
int64_t ShiftLeft(int64_t a, int64_t b, int bits) {
  return OutOfRange(b, bits) ? 0 : static_cast<int64_t>(Pattern(a, bits) << b);
}
int64_t ShiftRight(int64_t a, int64_t b, int bits) {
  return OutOfRange(b, bits) ? 0 : static_cast<int64_t>(Pattern(a, bits) >> b);
}
int64_t ShiftRightSigned(int64_t a, int64_t b, int bits) { return a >> (OutOfRange(b, bits) ? bits - 1 : b); }

constexpr std::array kBinary = {
    std::pair<std::string_view, Binary>{"add", [](int64_t a, int64_t b, int) { return a + b; }},
    std::pair<std::string_view, Binary>{"subtract", [](int64_t a, int64_t b, int) { return a - b; }},
    std::pair<std::string_view, Binary>{"multiply", [](int64_t a, int64_t b, int) { return a * b; }},
    std::pair<std::string_view, Binary>{"divide", Divide},
    std::pair<std::string_view, Binary>{"remainder", Remainder},
    std::pair<std::string_view, Binary>{"maximum", [](int64_t a, int64_t b, int) { return std::max(a, b); }},
    std::pair<std::string_view, Binary>{"minimum", [](int64_t a, int64_t b, int) { return std::min(a, b); }},
    std::pair<std::string_view, Binary>{"and", [](int64_t a, int64_t b, int) { return a & b; }},
    std::pair<std::string_view, Binary>{"or", [](int64_t a, int64_t b, int) { return a | b; }},
    std::pair<std::string_view, Binary>{"xor", [](int64_t a, int64_t b, int) { return a ^ b; }},
    std::pair<std::string_view, Binary>{"shift-left", ShiftLeft},
    std::pair<std::string_view, Binary>{"shift-right-logical", ShiftRight},
    std::pair<std::string_view, Binary>{"shift-right-arithmetic", ShiftRightSigned},
};

constexpr std::array kCompare = {
    std::pair<std::string_view, Binary>{"EQ", [](int64_t a, int64_t b, int) -> int64_t { return a == b; }},
    std::pair<std::string_view, Binary>{"NE", [](int64_t a, int64_t b, int) -> int64_t { return a != b; }},
    std::pair<std::string_view, Binary>{"LT", [](int64_t a, int64_t b, int) -> int64_t { return a < b; }},
    std::pair<std::string_view, Binary>{"LE", [](int64_t a, int64_t b, int) -> int64_t { return a <= b; }},
    std::pair<std::string_view, Binary>{"GT", [](int64_t a, int64_t b, int) -> int64_t { return a > b; }},
    std::pair<std::string_view, Binary>{"GE", [](int64_t a, int64_t b, int) -> int64_t { return a >= b; }},
};

constexpr std::array kUnary = {
    std::pair<std::string_view, Unary>{"negate", [](int64_t a) { return -a; }},
    std::pair<std::string_view, Unary>{"abs", [](int64_t a) { return a < 0 ? -a : a; }},
    std::pair<std::string_view, Unary>{"not", [](int64_t a) { return ~a; }},
    std::pair<std::string_view, Unary>{"sign", [](int64_t a) -> int64_t { return a > 0   ? 1
                                                                                 : a < 0 ? -1
                                                                                         : 0; }},
    std::pair<std::string_view, Unary>{"convert", [](int64_t a) { return a; }},
};

template <typename Table>
auto Find(const Table& table, std::string_view name) -> decltype(table[0].second) {
  for (const auto& [known, function] : table) {
    if (known == name) return function;
  }
  return nullptr;
}

}  // namespace

std::optional<IntArray> Elementwise(const ArrayType& type, std::string_view opcode, std::string_view direction,
                                    const std::vector<IntArray>& operands) {
  for (const IntArray& operand : operands) {
    if (operand.type.dims != type.dims) return std::nullopt;
  }
  IntArray out;
  out.type = type;
  const auto count = static_cast<size_t>(type.elements());
  out.values.reserve(count);
  if (operands.size() == 1) {
    const Unary unary = Find(kUnary, opcode);
    if (unary == nullptr) return std::nullopt;
    const bool logical = opcode == "not" && type.dtype == "pred";
    for (const int64_t a : operands[0].values) out.values.push_back(logical ? 1 - a : WrapTo(type.dtype, unary(a)));
    return out;
  }
  if (operands.size() == 2) {
    const Binary binary = opcode == "compare" ? Find(kCompare, direction) : Find(kBinary, opcode);
    if (binary == nullptr || operands[0].type.dtype != operands[1].type.dtype) return std::nullopt;
    const int bits = IntegerBits(operands[0].type.dtype);
    for (size_t i = 0; i < count; ++i) {
      out.values.push_back(WrapTo(type.dtype, binary(operands[0].values[i], operands[1].values[i], bits)));
    }
    return out;
  }
  if (operands.size() != 3) return std::nullopt;
  if (opcode == "select" && operands[0].type.dtype == "pred") {
    for (size_t i = 0; i < count; ++i) out.values.push_back(operands[operands[0].values[i] != 0 ? 1 : 2].values[i]);
    return out;
  }
  if (opcode == "clamp") {
    for (size_t i = 0; i < count; ++i) {
      out.values.push_back(std::min(std::max(operands[1].values[i], operands[0].values[i]), operands[2].values[i]));
    }
    return out;
  }
  return std::nullopt;
}

}  // namespace kernelwright::cost
