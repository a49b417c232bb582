// Evaluates integer instructions of the program around the kernels: constants, counters, and what is computed from them
// and from known arguments one element at a time. Anything else is unknown, never guessed.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/compiler/hlo.h"
#include "daemon/cost/int_array.h"

namespace kernelwright::cost {

class HloEvaluator {
 public:
  // Value of the parameter with this number, as the type given; nothing when it is not known.
  using Parameter = std::function<std::optional<IntArray>(size_t, const ArrayType&)>;

  HloEvaluator(const compiler::HloModule& module, Parameter parameter)
      : module_(module), parameter_(std::move(parameter)) {}

  // Operand `index` of an instruction, in the computation that holds the instruction. Its type is the operand's.
  std::optional<IntArray> Operand(std::string_view instruction, size_t index);

 private:
  using Result = std::optional<IntArray>;
  struct Scope {
    const compiler::HloComputation* computation = nullptr;
    bool is_entry = false;
    std::vector<Result> arguments;  // of a fusion or call
    std::map<std::string, Result, std::less<>> known;
    int depth = 0;
  };

  Result Evaluate(Scope* scope, std::string_view name);
  Result Compute(Scope* scope, const compiler::HloInstruction& instruction);
  Result Call(Scope* scope, const compiler::HloInstruction& instruction);

  const compiler::HloModule& module_;
  Parameter parameter_;
  int64_t budget_ = int64_t{1} << 26;  // elements computed, so that no text makes it run long
};

}  // namespace kernelwright::cost
