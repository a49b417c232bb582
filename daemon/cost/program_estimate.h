// From the compiler's text dumps of one compiled program to a time, or a refusal with its reason (docs/cost-model.md).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "daemon/cost/chips.h"
#include "daemon/cost/estimate.h"
#include "daemon/cost/known_operands.h"

namespace kernelwright::cost {

// One text file that the compiler dumped: its file name (a path is allowed) and its content.
struct Dump {
  std::string name;
  std::string text;
};
using Dumps = std::vector<Dump>;

// Replays the schedule in `dumps` (one compiled program: final_bundles of all units, TLP-hlo,
// pre-finalize-registers-and-allocations; others are ignored) on `chip`. `work` gives the floor; `versions` goes into
// the evidence. Text that cannot be read is a refusal too: there is no other kind of failure. `known` are values of
// integer operands: a program whose time depends on them is refused without.
CostResult EstimateFromDumps(Dumps dumps, const Chip& chip, const Work& work,
                             const std::map<std::string, std::string>& versions,
                             const std::vector<KnownOperand>& known = {});

// A compiled program that has been read once and can be estimated again and again, with other figures of the same chip.
class PreparedProgram {
 public:
  // `chip` decides how the schedule is decoded. A refusal when the dumps cannot be read.
  static std::variant<PreparedProgram, Refusal> Read(Dumps dumps, const Chip& chip);
  PreparedProgram(PreparedProgram&&) noexcept;
  PreparedProgram& operator=(PreparedProgram&&) noexcept;
  ~PreparedProgram();

  // The milliseconds that EstimateFromDumps would give with these figures.
  std::variant<double, Refusal> Milliseconds(const Chip& chip) const;

 private:
  class Impl;
  explicit PreparedProgram(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernelwright::cost
