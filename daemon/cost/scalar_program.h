// The scalar unit's part of a bundle dump, decoded once into compact operations: what the replay executes.
// Vector work keeps its place in time (one bundle, one cycle) but is not represented. Values carry how well they are
// known, because a branch on an unknown value must end in a refusal and never in a guess.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/compiler/bundles.h"

namespace kernelwright::cost {

// How well a register or memory cell is known; the result of an operation is as bad as its worst operand.
enum class Known : uint8_t {
  kValue,    // the number itself
  kPointer,  // an address in our own numbering: good for finding the memory again, not for comparing
  kRuntime,  // memory that the program never wrote: what the run-time system put there
  kNothing,  // data: from HBM, from the vector unit, or not modelled
};

struct Value {
  uint64_t bits = 0;
  Known known = Known::kNothing;
  bool operator==(const Value&) const = default;
};

// Scalar memory by address. Cells are interned so that an operation with a fixed address holds the cell itself.
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
  // A copy into the allocation that holds `address`: its cells become data.
  void ForgetAllocation(uint64_t address);
  // True when a copy has landed in the allocation of `address`, so that unwritten cells hold data.
  bool HoldsData(uint64_t address) const;
  size_t size() const { return cells_.size(); }
  const std::vector<Cell>& cells() const { return cells_; }

 private:
  std::unordered_map<std::string, uint64_t> allocations_;
  std::unordered_map<uint64_t, uint32_t> index_;
  std::vector<Cell> cells_;
  std::unordered_map<uint64_t, bool> data_allocations_;
  bool all_data_ = false;
};

enum class OpKind : uint8_t {
  kMove,
  kAdd,
  kSub,
  kMul,
  kMulHigh,
  kAnd,
  kOr,
  kXor,
  kShiftLeft,
  kShiftRight,
  kShiftRightSigned,
  kMin,
  kMax,
  kCarry,
  kLeadingZeros,
  kCompare,
  kSelect,
  kLea,
  kPredicateAnd,
  kPredicateOr,
  kPredicateNand,
  kPredicateNor,
  kPredicateXor,
  kPredicateNot,
  kLoad,
  kStore,
  kUnknown,
  kParameter,
  kDma,
  kWait,
  kCall,
  kBranch,
  kUnsupportedBranch,
};

enum class CompareKind : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };

enum class DmaPath : uint8_t {
  kHbm,         // between HBM and on-chip memory
  kHbmToHbm,    // read and written: counts twice
  kLocal,       // within the chip
  kHost,        // messages to the host around the program
  kUnmodelled,  // remote or unknown
};

struct ScalarOp {
  OpKind kind = OpKind::kUnknown;
  CompareKind compare = CompareKind::kEqual;
  DmaPath path = DmaPath::kHbm;
  bool is_signed = false;
  bool predicate_negated = false;
  bool to_smem = false;    // a copy whose destination is scalar memory (operand c)
  int32_t predicate = -1;  // register, or -1
  int32_t otherwise = -1;  // register that gives the result when the predicate is false; -1: keep the old value
  int32_t destination = -1;
  uint32_t a = 0, b = 0, c = 0;  // registers; constants are registers too
  int32_t aux = -1;              // cell of a fixed address, callee, parameter index, or branch target (bundle)
  uint32_t bundle = 0;
  uint32_t source = 0;  // index into BundleProgram::ops()
};

struct ScalarBlock {
  uint32_t bundle_begin = 0;
  uint32_t bundle_end = 0;
  uint32_t op_begin = 0;
  uint32_t op_end = 0;
  uint32_t products = 0;       // vmatmul instructions in it
  uint32_t first_product = 0;  // bundles of the first and the last of them; meaningless without any
  uint32_t last_product = 0;
};

struct ScalarProgram {
  std::string name;
  const compiler::BundleProgram* source = nullptr;
  std::vector<ScalarOp> ops;
  std::vector<ScalarBlock> blocks;
  std::vector<int32_t> block_at;  // by bundle: the block that starts there, or -1; one past the end included
  std::vector<Value> registers;   // initial register file, constants included
  std::vector<std::string> callees;
  std::vector<std::vector<uint32_t>> call_arguments;  // by op.a of a kCall
  uint32_t undecoded = 0;                             // scalar operations whose operands had an unknown shape
  uint32_t semaphore_waits = 0;                       // waits that are not for a copy
  // The run-time system's part: the top-level program and what runs before and after it.
  bool is_top_level = false;
  bool is_runtime = false;  // late initialization and finalization
};

// Decodes `source`, which must outlive the result. `index` tells programs apart in the shared memory.
ScalarProgram DecodeScalarProgram(const compiler::BundleProgram& source, std::string name, int index,
                                  ScalarMemory* memory);

}  // namespace kernelwright::cost
