// See attempt.h.
#include "daemon/agents/attempt.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "daemon/agents/check_shapes.h"
#include "daemon/agents/gate_list.h"
#include "daemon/agents/program_gate.h"
#include "daemon/base/hash.h"
#include "daemon/kernels/diff.h"

namespace kernelwright::agents {
namespace {

constexpr int kMaxFailedChecks = 4;    // attempts that may fail their check before the chip's search gives up
constexpr double kResolution = 0.005;  // estimates closer than this share are equal
constexpr double kWorthACheck = 1.01;  // by how much an attempt must beat a proven one to be checked too
constexpr double kTieRatio = 1.02;     // an estimated ratio below it is a tie: the original stays

std::string RelativePath(const std::string& file, const std::string& folder) {
  const std::filesystem::path relative = std::filesystem::path(file).lexically_relative(folder);
  if (!folder.empty() && !relative.empty() && *relative.begin() != "..") return relative.generic_string();
  return std::filesystem::path(file).relative_path().generic_string();
}

CandidateRow RowOf(const Attempt& attempt, const CompileStage& stage) {
  CandidateRow row = attempt.row;
  row.id = attempt.source.id;
  row.what = attempt.source.what;
  row.status = stage.passed ? "compiled" : "failed";
  row.gate = stage.gate;
  row.why = stage.reason;
  row.estimate_ms = stage.estimate() ? stage.estimate()->milliseconds : 0;
  row.content_sha256 = attempt.source.content_sha256;
  row.milliseconds = stage.milliseconds;
  row.compile_cached = stage.cached;
  return row;
}

}  // namespace

ChipEvaluation::ChipEvaluation(RunContext& run, const cost::Chip& chip, ChipResult& result)
    : run_(run),
      chip_(chip),
      result_(result),
      evaluator_(*run.toolchain, run.journal, run.frozen, run.work, {run.compile_limits, run.check_limits, run.build}) {
}

Expected<Attempt*> ChipEvaluation::Add(const Variant& variant, std::vector<FileText> files, const std::string& what,
                                       double ranked_ms, std::vector<PallasCall> calls) {
  Attempt attempt;
  attempt.variant = &variant;
  attempt.source.files = std::move(files);
  attempt.source.what = what;
  attempt.source.content_sha256 = ContentHash(attempt.source.files);
  auto id = run_.journal.CandidateId(attempt.source.content_sha256, what);
  if (!id) return Fail(id.error());
  attempt.source.id = *std::move(id);
  attempt.ranked_ms = ranked_ms;
  attempt.calls = std::move(calls);
  attempt.row.id = attempt.source.id;
  attempt.row.what = what;
  attempt.row.ranked_ms = ranked_ms;
  attempt.row.content_sha256 = attempt.source.content_sha256;
  attempt.row.status = "pending";
  attempts_.push_back(std::move(attempt));
  return &attempts_.back();
}

Status ChipEvaluation::Compile(Attempt& attempt) {
  CandidateRow row = attempt.row;
  row.status = "compiling";
  if (!attempt.variant->steps.empty() || attempt.source.what != "original") {
    run_.Emit("candidate_changed", CandidateChangedPayload(chip_.name, row));
  }
  auto compiled = evaluator_.Compile(attempt.source, chip_, attempt.ranked_ms, run_.stop);
  std::lock_guard lock(run_.mutex);
  if (!compiled) return compiled.error();
  attempt.compile = *std::move(compiled);
  attempt.row = RowOf(attempt, *attempt.compile);
  return {};
}

Expected<ShapeChoice> ChipEvaluation::ShapesFor(const Attempt& attempt) {
  const std::vector<CheckShape> proposed =
      attempt.calls.empty() ? run_.frozen.ladder : ShapesOf(run_, *attempt.variant, attempt.calls);
  auto choice = ChooseShapes(run_.frozen, proposed, attempt.source.files, attempt.calls, chip_.name, *run_.toolchain,
                             run_.compile_limits, run_.stop);
  if (!choice || !choice->shapes.empty() || attempt.calls.empty()) return choice;
  // Blocks that nobody foresaw when the ladder was frozen: any rung that stands for the full size will do.
  auto any = ChooseShapes(run_.frozen, run_.frozen.ladder, attempt.source.files, attempt.calls, chip_.name,
                          *run_.toolchain, run_.compile_limits, run_.stop);
  return any && any->shapes.empty() ? choice : any;
}

Status ChipEvaluation::CheckOriginal(Attempt& original, std::string* note) {
  auto shapes = ShapesFor(original);
  if (!shapes) return shapes.error();
  if (shapes->shapes.empty()) {
    *note = "no reduced check is possible: " + shapes->why_none;
    return {};
  }
  auto sound =
      evaluator_.Check(original.source, chip_, shapes->shapes, true, RowOf(original, *original.compile), run_.stop);
  if (!sound) return sound.error();
  result_.original_gates.insert(result_.original_gates.end(), sound->gates.begin(), sound->gates.end());
  if (sound->passed) return {};
  return Status(ErrorKind::kUserCode, "the original itself fails gate " + sound->gate + ": " + sound->reason,
                run_.frozen.original.file + "::" + run_.frozen.original.function,
                "Correct the kernel first: a wrong original is no baseline.");
}

bool ChipEvaluation::gave_up() const { return failed_checks_ >= kMaxFailedChecks; }

void ChipEvaluation::Unchecked(Attempt& attempt, const std::string& why) {
  attempt.check = CheckStage{false, "G40", why, {}, 0, 0, false, 0};
  attempt.row.status = "compiled_only";
  attempt.row.gate = "G40";
  attempt.row.why = why;
  run_.Emit("candidate_changed", CandidateChangedPayload(chip_.name, attempt.row));
}

Status ChipEvaluation::CheckBest(const cost::Estimate& before, const std::string& no_check) {
  while (!gave_up()) {
    Attempt* attempt = NextToCheck(proven_ != nullptr ? proven_->estimate()->milliseconds / kWorthACheck
                                                      : before.milliseconds / kTieRatio);
    if (attempt == nullptr) return {};
    if (!no_check.empty()) {
      Unchecked(*attempt, no_check);
      continue;
    }
    attempt->row.status = "checking";
    run_.Emit("candidate_changed", CandidateChangedPayload(chip_.name, attempt->row));
    auto shapes = ShapesFor(*attempt);
    if (!shapes) return shapes.error();
    if (shapes->shapes.empty()) {
      Unchecked(*attempt, shapes->why_none);
      continue;
    }
    auto checked = evaluator_.Check(attempt->source, chip_, shapes->shapes, false, attempt->row, run_.stop);
    if (!checked) return checked.error();
    attempt->check = *std::move(checked);
    attempt->row.milliseconds += attempt->check->milliseconds;
    if (Promote(before, *attempt)) {
      proven_ = attempt;
      return {};
    }
    ++failed_checks_;
  }
  return {};
}

// The unchecked attempt with the least estimate below `limit_ms`; among those that are as good as it within the model's
// resolution, the one that the ranking prefers (less VMEM, shorter pipeline ends).
Attempt* ChipEvaluation::NextToCheck(double limit_ms) {
  const auto milliseconds = [&](const Attempt& attempt) -> std::optional<double> {
    if (attempt.estimate() == nullptr || attempt.check) return std::nullopt;
    const double ms = attempt.estimate()->milliseconds;
    return ms < limit_ms ? std::optional(ms) : std::nullopt;
  };
  std::optional<double> least;
  for (const Attempt& attempt : attempts_) {
    if (const auto ms = milliseconds(attempt); ms && (!least || *ms < *least)) least = ms;
  }
  Attempt* next = nullptr;
  for (Attempt& attempt : attempts_) {
    const auto ms = milliseconds(attempt);
    if (!ms || *ms > *least * (1 + kResolution)) continue;
    if (next == nullptr || attempt.ranked_ms < next->ranked_ms) next = &attempt;
  }
  return next;
}

// Makes the attempt the best if every gate of its claim holds. What is shown is hashed again and must be what was
// evaluated (G22).
bool ChipEvaluation::Promote(const cost::Estimate& before, Attempt& attempt) {
  std::vector<GateResult> gates = attempt.compile->gates;
  gates.insert(gates.end(), attempt.check->gates.begin(), attempt.check->gates.end());
  BestCandidate best;
  std::vector<FileText> shown = run_.frozen.original.files;
  for (const FileText& file : attempt.source.files) {
    const auto original =
        std::find_if(shown.begin(), shown.end(), [&](const FileText& other) { return other.path == file.path; });
    const std::string relative = RelativePath(file.path, run_.request.working_directory);
    if (original == shown.end()) {
      best.changes.push_back({file.path, "", file.text});
      best.diff += kernels::NewFileDiff(relative, file.text);
      shown.push_back(file);
    } else if (original->text != file.text) {
      best.changes.push_back({file.path, Sha256Hex(original->text), file.text});
      best.diff += kernels::UnifiedDiff(relative, original->text, file.text);
      original->text = file.text;
    }
  }
  gates.push_back(CheckIdentity(shown, attempt.source.content_sha256));
  const ClaimVerdict verdict = JudgeClaim(Claim::kEstimated, true, gates);
  if (!verdict.holds) {
    attempt.row.status = "failed";
    attempt.row.gate = verdict.gate;
    attempt.row.why = verdict.reason;
    run_.Emit("candidate_changed", CandidateChangedPayload(chip_.name, attempt.row));
    return false;
  }
  best.id = attempt.source.id;
  best.what = attempt.source.what;
  best.content_sha256 = attempt.source.content_sha256;
  best.estimate = *attempt.compile->estimate();
  best.gates = std::move(gates);
  best.candidate_error = attempt.check->candidate_error;
  best.reference_error = attempt.check->reference_error;
  for (const kernels::Proposal& step : attempt.variant->steps) {
    best.rules.push_back(step.rule);
    best.exactness = std::max(best.exactness, step.exactness);
  }
  result_.speedup = before.milliseconds / best.estimate.milliseconds;
  result_.verdict = VerdictWord(result_.speedup);
  result_.best = std::move(best);
  attempt.row.status = "passed";
  attempt.row.gate.clear();
  attempt.row.why.clear();
  run_.Emit("candidate_changed", CandidateChangedPayload(chip_.name, attempt.row));
  run_.Emit("best_changed", BestChangedPayload(chip_.name, attempt.source.id, result_.speedup, result_.verdict));
  return true;
}

void ChipEvaluation::Conclude(const cost::Estimate& before, const std::string& no_check) {
  double best = 0;
  size_t tried = 0;
  size_t estimated = 0;
  // Code that was made for a function without a kernel is no fault of the user's when it fails.
  const bool lifted = !attempts_.empty() && attempts_.front().calls.empty();
  for (const Attempt& attempt : attempts_) {
    if (attempt.source.what == "original") continue;
    ++tried;
    if (attempt.estimate() == nullptr) continue;
    ++estimated;
    const double ms = attempt.estimate()->milliseconds;
    if (best == 0 || ms < best) best = ms;
  }
  if (tried > 0 && estimated == 0 && lifted) {
    result_.status = "no_improvement";
    result_.message = "no lifted form compiles on " + chip_.name + "; the original stays";
    return;
  }
  if (tried > 0 && estimated == 0) {
    result_.status = "failed";
    result_.error = ErrorKind::kUserCode;
    result_.message = "none of " + std::to_string(tried) + " candidates passed the compile stage on " + chip_.name +
                      "; the original stays";
    return;
  }
  result_.status = "no_improvement";
  if (best > 0 && before.milliseconds / best >= kTieRatio) {
    result_.message = !no_check.empty()    ? "candidates are estimated faster but compiled only: " + no_check
                      : failed_checks_ > 0 ? "the candidates estimated faster failed their checks"
                                           : "the candidates estimated faster could not be checked";
    result_.message += "; the original stays";
    if (failed_checks_ > 0 && no_check.empty() && !lifted) {
      result_.status = "failed";
      result_.error = ErrorKind::kUserCode;
    }
    return;
  }
  result_.verdict = "tie";
  result_.message = "nothing better was found; the original stays";
}

}  // namespace kernelwright::agents
