// What is known of the arrays that kernels are called with: constants of the program, what it computes from them, and
// values that the caller knows, such as captured inputs. The replay reads them where a copy brings them into scalar
// memory, so that a kernel steered by a table gets a time instead of a refusal.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/compiler/hlo.h"
#include "daemon/cost/hlo_evaluator.h"
#include "daemon/cost/replay.h"

namespace kernelwright::cost {

// Values of one operand.
struct KnownOperand {
  // The kernel: name of its instruction ("mm.1"), or without the number behind it ("mm") for all calls of that name.
  // Empty: `operand` counts the parameters of the program.
  std::string kernel;
  int operand = 0;            // as the kernel takes them: dynamic grid bounds, prefetched scalars, inputs
  std::string dtype;          // "int32", "int8", "bool", …
  std::vector<int64_t> dims;  // what does not agree with the compiled program is ignored
  std::string data;           // little endian, C order
};

// The operands of the calls of one program. `known` and `module` must outlive it.
class ProgramContents : public OperandContents {
 public:
  ProgramContents(const compiler::HloModule& module, const std::vector<KnownOperand>& known);

  const std::string* Find(std::string_view call_site, size_t index) const override;

 private:
  std::optional<IntArray> Given(std::string_view call_site, size_t index, const ArrayType& type) const;
  std::optional<IntArray> Value(std::string_view call_site, size_t index) const;

  const compiler::HloModule& module_;
  const std::vector<KnownOperand>& known_;
  mutable HloEvaluator evaluator_;
  mutable std::map<std::pair<std::string, size_t>, std::optional<std::string>> laid_out_;
};

}  // namespace kernelwright::cost
