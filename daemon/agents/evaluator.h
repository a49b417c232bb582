// Evaluates one candidate in stages, each cheaper than the next: source gate → trace → lint → compile → estimate, then
// on demand the behaviour check. A stage found in the journal is not repeated; a compile found in the cache is counted
// but not run. Thread-safe: stages of different candidates run side by side.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/agents/frozen_reference.h"
#include "daemon/agents/journal.h"
#include "daemon/agents/toolchain.h"
#include "daemon/cost/chips.h"
#include "daemon/cost/estimate.h"
#include "daemon/cost/program_estimate.h"

namespace kernelwright::agents {

// A version of the user's files.
struct CandidateSource {
  std::string id;               // "original", "c3"
  std::string what;             // "bm=512 bn=1024"
  std::vector<FileText> files;  // all user files of the closure, edited ones included
  std::string content_sha256;   // of files
};

// Hash over paths and texts, in order of path.
std::string ContentHash(std::vector<FileText> files);

// Result of the compile stage. `gate` and `reason` say what rejected it, empty when it passed; then `cost` holds an
// estimate or a refusal.
struct CompileStage {
  bool passed = false;
  std::string gate;
  std::string reason;
  std::optional<CodeError> error;  // of the user's code or the compiler
  std::optional<cost::CostResult> cost;
  std::vector<GateResult> gates;
  bool cached = false;   // the compile came from the cache
  bool resumed = false;  // the whole stage came from the journal
  uint32_t milliseconds = 0;

  // The estimate, or null when there is none.
  const cost::Estimate* estimate() const { return cost ? std::get_if<cost::Estimate>(&*cost) : nullptr; }
};

struct CheckStage {
  bool passed = false;
  std::string gate;
  std::string reason;
  std::vector<GateResult> gates;
  double candidate_error = 0;  // worst of all comparisons
  double reference_error = 0;
  bool resumed = false;
  uint32_t milliseconds = 0;
};

class Evaluator {
 public:
  struct Options {
    Limits compile_limits;
    Limits check_limits;
    std::string build;  // identity of this build: estimates of another build are made anew from the cached dumps
  };
  // All references must outlive the evaluator. `work`: of the algorithm, from the traced original.
  Evaluator(Toolchain& toolchain, Journal& journal, const FrozenReference& frozen, const cost::Work& work,
            Options options);

  // A Status error means that no verdict was reached: cancelled, or the worker or the store failed.
  Expected<CompileStage> Compile(const CandidateSource& candidate, const cost::Chip& chip, double ranked_ms,
                                 std::stop_token stop);

  // Behaviour gates at `shapes`. `reference_only` asks whether the original itself is sound.
  Expected<CheckStage> Check(const CandidateSource& candidate, const cost::Chip& chip,
                             const std::vector<CheckShape>& shapes, bool reference_only, CandidateRow row,
                             std::stop_token stop);

  // What the compiler wrote for a candidate that was compiled before, as far as it is still cached.
  std::optional<cost::Dumps> DumpsOf(const CandidateSource& candidate, const cost::Chip& chip,
                                     Versions* versions) const;

  // Compiles asked for so far, cache hits included.
  int compiles() const { return compiles_.load(); }

 private:
  struct Compiled;
  Expected<Compiled> CompileOrCached(const CandidateSource& candidate, const cost::Chip& chip, std::stop_token stop);
  std::string CacheKey(const CandidateSource& candidate, const cost::Chip& chip) const;
  Source SourceOf(const CandidateSource& candidate) const;

  Toolchain& toolchain_;
  Journal& journal_;
  const FrozenReference& frozen_;
  const cost::Work work_;
  const Options options_;
  std::atomic<int> compiles_{0};
};

}  // namespace kernelwright::agents
