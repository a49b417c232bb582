// Values of the scalar unit and its memory, as the replay sees them. A value carries how well it is known, because a
// branch on an unknown value must end in a refusal and never in a guess. Addresses have a numbering of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kernelwright::cost {

// How well a register or memory cell is known; the result of an operation is as bad as its worst operand.
enum class Known : uint8_t {
  kValue,    // the number itself
  kPointer,  // an address in our own numbering: good for finding the memory again, not for comparing with others
  kRuntime,  // memory that the program never wrote: what the run-time system put there
  kNothing,  // data: from HBM, from the vector unit, or not modelled
};

// A number of 32 bits, or an address: 32 bits of offset, then the allocation, then by how many bits the address has
// been shifted left (copies count in smaller units than the memory is addressed in).
struct Value {
  uint64_t bits = 0;
  Known known = Known::kNothing;
  bool operator==(const Value&) const = default;
};

inline constexpr int kOffsetBits = 32;
inline constexpr int kScaleShift = 58;
// The allocation of addresses that were computed in a way that is not followed: there is nothing at them.
inline constexpr uint64_t kNowhere = (uint64_t{1} << (kScaleShift - kOffsetBits)) - 1;

inline uint64_t PointerOffset(uint64_t bits) { return bits & 0xffffffffULL; }
inline uint64_t PointerAllocation(uint64_t bits) { return (bits >> kOffsetBits) & kNowhere; }
inline unsigned PointerScale(uint64_t bits) { return static_cast<unsigned>(bits >> kScaleShift); }
// Allocation and scale: two addresses that agree in it differ by the difference of their offsets.
inline uint64_t PointerBase(uint64_t bits) { return bits >> kOffsetBits; }
inline Value NowherePointer() { return {kNowhere << kOffsetBits, Known::kPointer}; }
// True for an address at which memory can be found again.
inline bool IsPlace(const Value& value) {
  return value.known == Known::kValue ||
         (value.known == Known::kPointer && PointerAllocation(value.bits) != kNowhere && PointerScale(value.bits) == 0);
}

// Scalar memory by address, in words of 32 bits. Cells are interned so that an operation with a fixed address holds the
// cell itself.
class ScalarMemory {
 public:
  struct Cell {
    Value value{0, Known::kRuntime};
    uint64_t address = 0;
    bool spill = false;  // a compiler spill slot: no computed address can reach it
  };

  // Number of an allocation; names are local to a program.
  uint64_t AllocationBase(int program, std::string_view name);
  uint32_t CellAt(uint64_t address, bool spill = false);
  std::optional<uint32_t> Find(uint64_t address) const;  // a cell that exists already
  const Value& Read(uint32_t cell) const { return cells_[cell].value; }
  void Write(uint32_t cell, Value value) { cells_[cell].value = value; }
  // A store or copy to an address that is not known: nothing but spill slots survives it.
  void ForgetAll();
  // A copy of `words` words to `address`: they become data, and so does what nobody has written around them.
  void Fill(uint64_t address, uint64_t words);
  // A copy of which the bytes are known: little-endian words.
  void Fill(uint64_t address, std::string_view bytes);
  size_t size() const { return cells_.size(); }
  const std::vector<Cell>& cells() const { return cells_; }

 private:
  struct Image {
    uint64_t address = 0;
    uint64_t words = 0;
    std::string bytes;  // empty: not known
  };
  struct Allocation {
    std::vector<uint32_t> cells;  // without spill slots
    bool data = false;            // a copy has landed in it: cells that nobody wrote hold data
    std::vector<Image> images;    // of what is known about that data, the newest last
  };

  Value Initial(uint64_t address) const;
  void Replace(Allocation* allocation, Image image, uint64_t words);

  std::unordered_map<std::string, uint64_t> names_;
  std::unordered_map<uint64_t, uint32_t> index_;
  std::unordered_map<uint64_t, Allocation> allocations_;  // by PointerBase
  std::vector<Cell> cells_;
  bool all_data_ = false;
};

}  // namespace kernelwright::cost
