// One candidate's way through the stages, and what has been proven so far on one chip. Whatever driver makes attempts,
// they are compiled, checked and promoted here alone (invariants NoUnprovenWinner and FrozenReference).
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "daemon/agents/check_shapes.h"
#include "daemon/agents/evaluator.h"
#include "daemon/agents/run_context.h"
#include "daemon/agents/run_result.h"
#include "daemon/agents/variant.h"

namespace kernelwright::agents {

struct Attempt {
  const Variant* variant = nullptr;  // whose structure it has
  CandidateSource source;
  double ranked_ms = 0;           // by the analytic model; 0: not ranked
  std::vector<PallasCall> calls;  // as they will be traced
  std::optional<CompileStage> compile;
  std::optional<CheckStage> check;
  CandidateRow row;

  const cost::Estimate* estimate() const { return compile && compile->passed ? compile->estimate() : nullptr; }
};

// Attempts on one chip. Not thread-safe but for Compile.
class ChipEvaluation {
 public:
  ChipEvaluation(RunContext& run, const cost::Chip& chip, ChipResult& result);

  // Registers an attempt; the reference stays valid.
  Expected<Attempt*> Add(const Variant& variant, std::vector<FileText> files, const std::string& what, double ranked_ms,
                         std::vector<PallasCall> calls);
  // Compiles it and reports its row. A Status error: no verdict. May run side by side for different attempts.
  Status Compile(Attempt& attempt);
  // Judges the original; fails with kUserCode when it is not sound. `note` gets why it could not be judged.
  Status CheckOriginal(Attempt& original, std::string* note);
  // Checks attempts that beat what is proven, best estimate first, until one passes or too many have failed.
  Status CheckBest(const cost::Estimate& before, const std::string& no_check);
  // Nothing was proven better: says why in the result.
  void Conclude(const cost::Estimate& before, const std::string& no_check);

  bool gave_up() const;  // too many checks failed
  int compiles() const { return evaluator_.compiles(); }
  std::deque<Attempt>& attempts() { return attempts_; }
  const Attempt* proven() const { return proven_; }
  Evaluator& evaluator() { return evaluator_; }

 private:
  Expected<ShapeChoice> ShapesFor(const Attempt& attempt);
  Attempt* NextToCheck(double limit_ms);
  bool Promote(const cost::Estimate& before, Attempt& attempt);
  void Unchecked(Attempt& attempt, const std::string& why);

  RunContext& run_;
  const cost::Chip& chip_;
  ChipResult& result_;
  Evaluator evaluator_;
  std::deque<Attempt> attempts_;
  const Attempt* proven_ = nullptr;
  int failed_checks_ = 0;
};

}  // namespace kernelwright::agents
