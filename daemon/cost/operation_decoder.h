// Decodes one operation of the scalar unit from its text: what it does, with registers, constants and cells for its
// operands. What the operations of a bundle mean together is ScalarProgram's business.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/compiler/bundles.h"
#include "daemon/cost/operand_text.h"
#include "daemon/cost/scalar_program.h"

namespace kernelwright::cost {

// An operation, with the names that it reads and the one that it defines.
struct DecodedOperation {
  ScalarOp op;
  uint64_t virtual_destination = 0;
  std::vector<Name> reads;
};

class OperationDecoder {
 public:
  // Writes registers, callees and counters of `program`, and cells of `memory`; both must outlive it.
  OperationDecoder(const compiler::BundleProgram& source, int index, ScalarMemory* memory, ScalarProgram* program);

  // Nothing for an operation that the replay does not execute. One that is not understood makes its result unknown, and
  // is counted in ScalarProgram::undecoded.
  std::optional<DecodedOperation> Decode(const compiler::BundleOp& op, uint32_t source, uint32_t bundle);

  uint32_t NewRegister(Value value);

 private:
  using Pending = DecodedOperation;

  uint32_t Constant(uint64_t bits, Known known);
  uint32_t UnknownConstant() { return Constant(0, Known::kNothing); }
  std::optional<uint64_t> Allocation(std::string_view s, bool* spill = nullptr);
  uint32_t LoaderAddress(std::string_view kind, std::string_view number);
  uint32_t OperandPlace(std::string_view kind, uint64_t number);
  std::optional<uint32_t> Operand(std::string_view s, Pending* p);
  uint32_t OperandOrUnknown(std::string_view s, Pending* p) { return Operand(s, p).value_or(UnknownConstant()); }
  bool MemoryOperand(std::string_view s, Pending* p);
  std::string_view Predicate(std::string_view rest, Pending* p);

  // Each says whether the operands had a shape that is known.
  bool DecodeByOpcode(std::string_view opcode, std::string_view text, std::string_view rest, Pending* p);
  bool DecodeLoad(std::string_view rest, Pending* p);
  bool DecodeStore(std::string_view rest, Pending* p);
  bool DecodeParameter(std::string_view opcode, std::string_view rest, Pending* p);
  bool DecodeArithmetic(std::string_view opcode, std::string_view rest, Pending* p);
  bool DecodeCompare(std::string_view opcode, const std::vector<std::string_view>& operands, Pending* p);
  bool DecodeBranch(std::string_view opcode, std::string_view rest, Pending* p);
  bool DecodeCall(std::string_view text, std::string_view rest, Pending* p);
  bool DecodeFlag(std::string_view opcode, std::string_view rest, Pending* p);
  bool DecodeDma(std::string_view opcode, std::string_view text, std::string_view rest, Pending* p);

  struct PairHash {
    size_t operator()(const std::pair<uint64_t, int>& k) const {
      return std::hash<uint64_t>{}(k.first * 4 + static_cast<uint64_t>(k.second));
    }
  };

  const compiler::BundleProgram& source_;
  int index_;
  ScalarMemory* memory_;
  ScalarProgram* program_;
  std::unordered_map<std::pair<uint64_t, int>, uint32_t, PairHash> constants_;
};

}  // namespace kernelwright::cost
