// Arrays of integers as the program around the kernels knows them, and how they lie in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelwright::cost {

// Type of an array in HLO text: "s8[8,8]{1,0:T(8,128)(4,1)S(1)}".
struct ArrayType {
  std::string dtype;  // "pred", "s8", "u32", …
  std::vector<int64_t> dims;
  std::vector<size_t> minor_to_major;       // dimensions, the fastest varying first
  std::vector<std::vector<int64_t>> tiles;  // applied one after another to the last dimensions
  int64_t elements() const;
  bool SameShape(const ArrayType& other) const { return dtype == other.dtype && dims == other.dims; }
};

// Nothing for tuples, for tiles of another form, and for sizes above kMaxElements.
std::optional<ArrayType> ParseArrayType(std::string_view text);
inline constexpr int64_t kMaxElements = int64_t{1} << 20;

// Bits of an element of an integer type, 8 for "pred"; 0 for types whose values are not followed here.
int IntegerBits(std::string_view dtype);
bool IsSignedInteger(std::string_view dtype);

// Elements in C order. Values are within the range of the type.
struct IntArray {
  ArrayType type;
  std::vector<int64_t> values;
};

// `value` as the type stores it.
int64_t WrapTo(std::string_view dtype, int64_t value);

// Little-endian bytes of elements in C order. Nothing when their number does not fit the type.
std::optional<IntArray> FromBytes(const ArrayType& type, std::string_view bytes);

// The bytes as they lie in HBM or VMEM, padding as zeros. Nothing when the layout would be larger than 64 MiB.
std::optional<std::string> LayOut(const IntArray& array);

}  // namespace kernelwright::cost
