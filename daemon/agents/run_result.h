// What a run of optimize or tune found, and its documented JSON object (docs/json.md). Built by the loop, kept in the
// store, shown by clients.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/agents/journal.h"
#include "daemon/agents/toolchain.h"
#include "daemon/base/status.h"
#include "daemon/cost/estimate.h"
#include "daemon/kernels/proposal.h"

namespace kernelwright::agents {

inline constexpr int kResultSchemaVersion = 1;

// A step of a plan; the JSON names are those of PlanStep in run.proto.
struct PlanStep {
  std::string id;
  std::string title;
  std::string file;
  int line = 0;
  int end_line = 0;
  std::string reason;
  std::string expected_gain;
  std::string evidence;
  std::string content_sha256;
};

// A changed file: the text it was made from, by hash (empty: the file is new), and the whole new text.
struct FileChange {
  std::string file;
  std::string base_sha256;
  std::string new_text;
};

struct BestCandidate {
  std::string id;
  std::string what;
  std::string content_sha256;
  cost::Estimate estimate;
  std::vector<FileChange> changes;
  std::string diff;
  std::vector<GateResult> gates;
  double candidate_error = 0;
  double reference_error = 0;
  std::vector<std::string> rules;  // that changed its structure, in order; empty: values of parameters alone
  kernels::Exactness exactness = kernels::Exactness::kBitEqual;  // the weakest of the rules
};

// One chip's outcome. `status`: improved, no_improvement, failed, cancelled.
struct ChipResult {
  std::string chip;
  std::string status = "failed";
  std::string message;               // one line for people
  ErrorKind error = ErrorKind::kOk;  // why it failed; decides the exit code
  std::optional<CodeError> code_error;
  std::optional<cost::CostResult> original;
  std::vector<GateResult> original_gates;
  std::optional<BestCandidate> best;
  double speedup = 0;   // original / best by estimate; 0 without a best
  std::string verdict;  // faster, probably, tie; empty without a comparison
  std::vector<PlanStep> plan;
  std::vector<kernels::Proposal> recognised;   // changes of structure that were found, tried or not
  std::vector<kernels::RuleRefusal> refusals;  // rules that do not apply, and why
  std::vector<CandidateRow> candidates;
  int compiles = 0;  // cache hits included
  int compiles_cached = 0;
  double seconds = 0;
};

struct RunResult {
  std::string command;  // optimize, tune
  std::string run;
  std::string file;
  std::string function;
  std::string reference_file;
  std::string reference_function;
  std::string reference_sha256;  // of the frozen record
  std::string inputs;            // inputs text
  std::string inputs_origin;
  std::string python;
  std::string sandbox;
  std::vector<ChipResult> results;
};

// Words for an estimated ratio original / candidate: "faster" from 1.10, "probably" from 1.02, else "tie".
std::string VerdictWord(double ratio);

// Status of the whole: improved when any chip improved; else cancelled, failed or no_improvement, in this order.
std::string OverallStatus(const RunResult& result);

// Exit code of the command: 0 for improved and no_improvement; failed by the first failed chip's error kind (1 when
// only candidates failed); 4 for cancelled.
int OverallExitCode(const RunResult& result);

// One line for people.
std::string OverallMessage(const RunResult& result);

// As in run.proto.
nlohmann::json PlanStepToJson(const PlanStep& step);

std::string ResultJson(const RunResult& result);

}  // namespace kernelwright::agents
