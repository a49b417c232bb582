// The scalar unit's part of a bundle dump, decoded once into compact operations: what the replay executes.
// Vector work keeps its place in time (one bundle, one cycle) but is not represented.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/compiler/bundles.h"
#include "daemon/cost/scalar_memory.h"

namespace kernelwright::cost {

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
  kSignal,         // adds b to flag a
  kSemaphoreWait,  // until flag a is at least b
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
  int32_t otherwise = -1;  // register that gives the result when the predicate is false; -1: keep the old value.
                           // Of a store the value; of a copy into scalar memory where it comes from
  int32_t destination = -1;
  // Registers; constants are registers too. Of a branch, c is the bundle at which it leaves and b the cycles that its
  // last delay slot takes beyond one.
  uint32_t a = 0, b = 0, c = 0;
  int32_t aux = -1;  // cell of a fixed address, callee, parameter index, or branch target (bundle)
  uint32_t bundle = 0;
  uint32_t source = 0;  // index into BundleProgram::ops()
};

struct ScalarBlock {
  uint32_t bundle_begin = 0;
  uint32_t bundle_end = 0;
  uint32_t op_begin = 0;
  uint32_t op_end = 0;
  uint32_t products = 0;       // halves of a packed vmatmul; one of float32 has half of the rows
  uint32_t first_product = 0;  // bundles of the first and the last of them; meaningless without any
  uint32_t last_product = 0;
  // What keeps the units between lanes busy, and bundles with nothing in them.
  uint32_t transposes = 0;
  uint32_t lane_moves = 0;
  uint32_t empty = 0;
  uint32_t strided_loads = 0;  // of registers whose rows lie apart by a multiple of four; where the hardware waits
};

// Where an operand in HBM or VMEM begins, in the program's own numbering.
struct OperandAddress {
  uint64_t base = 0;
  size_t index = 0;
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
  std::vector<OperandAddress> operands;               // parameters of the top-level program, operands of others
  uint32_t undecoded = 0;                             // scalar operations whose operands had an unknown shape
  // The run-time system's part: the top-level program and what runs before and after it.
  bool is_top_level = false;
  bool is_runtime = false;  // late initialization and finalization
};

// What still runs behind a branch.
struct BranchShadow {
  int delay_slots = 4;
  bool shortened = false;  // empty slots at the end are one empty bundle that takes the time of all
};

// Decodes `source`, which must outlive the result. `index` tells programs apart in the shared memory.
ScalarProgram DecodeScalarProgram(const compiler::BundleProgram& source, std::string name, int index,
                                  ScalarMemory* memory, BranchShadow shadow = {});

}  // namespace kernelwright::cost
