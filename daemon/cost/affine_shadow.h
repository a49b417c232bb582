// Proof that loop iterations to come are like the one being executed. While the interpreter runs one more round of a
// loop, the shadow keeps for each register and memory cell its slope: by how much it differs from one round to the
// next. Operations carry slopes along; every decision (predicate, copy, address) narrows the number of rounds for which
// it stays as it is. What cannot be followed becomes opaque, and a decision that depends on something opaque ends the
// attempt.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "daemon/cost/scalar_program.h"

namespace kernelwright::cost {

class AffineShadow {
 public:
  // Registers and cells at the start of two rounds, one period apart. The shadow then follows the round after `second`.
  AffineShadow(const std::vector<Value>& first_registers, const std::vector<Value>& second_registers,
               const std::vector<Value>& first_cells, const std::vector<Value>& second_cells);

  // To be called before each operation is executed, with the state that it will read. False: the attempt has failed.
  bool Track(const ScalarOp& op, const std::vector<Value>& registers, const ScalarMemory& memory);

  // After the round: true when everything that a round reads before it writes it has moved by its slope, and moves by
  // the same slope in the next round. Otherwise nothing is proven.
  bool Proves(const std::vector<Value>& registers, const ScalarMemory& memory) const;

  // Rounds, counted from the one that was followed (round 0), that take the same decisions: rounds 0 … last_round().
  int64_t last_round() const { return last_round_; }

  // Moves what rounds carry along by `rounds` of them. What a round computes anew keeps its stale value: the caller
  // must execute at least one more of the proven rounds afterwards.
  void Advance(int64_t rounds, std::vector<Value>* registers, ScalarMemory* memory) const;

 private:
  static constexpr int64_t kOpaque = std::numeric_limits<int64_t>::min();

  struct Slot {
    Value start;
    int64_t initial_slope = 0;
    int64_t slope = 0;
    bool read_first = false;
    bool written = false;
    bool unsteady = false;  // how well it is known differs between rounds
  };

  static Slot MakeSlot(const Value& first, const Value& second);
  static bool Holds(const Slot& slot, const Value& now);
  static void Move(const Slot& slot, int64_t rounds, Value* value);

  int64_t ReadRegister(uint32_t index);
  int64_t ReadCell(uint32_t index);
  void WriteRegister(uint32_t index, int64_t slope);
  void WriteCell(uint32_t index, int64_t slope);
  // Whether a predicate holds; fails on one that is not the same in all rounds.
  enum class Choice : uint8_t { kNo, kYes, kUnknown, kFailed };
  Choice Decide(const ScalarOp& op, const std::vector<Value>& registers);

  int64_t Result(const ScalarOp& op, const std::vector<Value>& registers);
  int64_t LinearResult(const ScalarOp& op, const Value& a, const Value& b, int64_t sa, int64_t sb);
  int64_t CompareResult(const ScalarOp& op, const Value& a, const Value& b, int64_t sa, int64_t sb);
  // The order of a and b stays what it is now in all rounds, or the number of rounds is narrowed to those.
  bool KeepOrder(const Value& a, const Value& b, int64_t sa, int64_t sb, bool is_signed, bool equality_only);
  // A value stays within the range of its type in all rounds, or the number of rounds is narrowed.
  void KeepInRange(int64_t value, int64_t slope, bool is_signed);
  bool TrackLoad(const ScalarOp& op, const std::vector<Value>& registers, const ScalarMemory& memory, int64_t* slope);
  bool TrackStore(const ScalarOp& op, const std::vector<Value>& registers, const ScalarMemory& memory, bool maybe);

  std::vector<Slot> registers_;
  std::vector<Slot> cells_;
  int64_t last_round_ = int64_t{1} << 40;
};

}  // namespace kernelwright::cost
