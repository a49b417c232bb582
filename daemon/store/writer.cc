// See writer.h. Every JSON value and free text passes the redactor on its way in; only a candidate's edits do not,
// since they must come out byte for byte.
#include "daemon/store/writer.h"

#include <mutex>

#include "daemon/base/hash.h"
#include "daemon/base/redact.h"

namespace kernelwright::store {
namespace {

std::string Clean(const std::string& text) { return ProcessRedactor().RedactRegistered(text); }

Json CleanJson(Json value) {
  if (value.is_string()) return Clean(value.get<std::string>());
  if (value.is_structured()) {
    for (Json& part : value) part = CleanJson(std::move(part));
  }
  return value;
}

std::string CleanText(const Json& value) { return DumpJson(CleanJson(value)); }

Status NoSuchRun(const std::string& id) {
  return Status(ErrorKind::kNotFound, "there is no run `" + id + "`", {}, "See `kernelwright runs list`.");
}

Status RequireOneChange(const Database& database, const std::string& run) {
  return database.changes() == 1 ? Status() : NoSuchRun(run);
}

}  // namespace

Expected<std::string> NewRunId(int64_t now_ms) {
  static constexpr std::string_view kAlphabet = "0123456789abcdefghjkmnpqrstvwxyz";
  static std::mutex mutex;
  static int64_t last_ms = 0;
  {
    std::lock_guard lock(mutex);
    now_ms = std::max(now_ms, last_ms + 1);
    last_ms = now_ms;
  }
  Expected<std::string> random = RandomBytes(6);
  if (!random) return random;
  std::string id;
  for (int shift = 45; shift >= 0; shift -= 5) id += kAlphabet[static_cast<size_t>(now_ms >> shift & 31)];
  for (char byte : *random) id += kAlphabet[static_cast<unsigned char>(byte) & 31];
  return id;
}

Status Writer::CreateRun(Run& run) {
  const int64_t now = clock_.NowMs();
  if (run.created == 0) run.created = now;
  if (run.updated == 0) run.updated = run.created;
  if (run.id.empty()) {
    Expected<std::string> id = NewRunId(run.created);
    if (!id) return id.error();
    run.id = *id;
  }
  return database_.Run(
      "INSERT INTO runs (id, kind, status, created, updated, request, reference, reference_hash, chips, result, client,"
      " owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      run.id, run.kind, RunStatusName(run.status), run.created, run.updated, CleanText(run.request),
      CleanText(run.reference), run.reference_hash, DumpJson(run.chips), CleanText(run.result), run.client, run.owner);
}

Status Writer::UpdateRun(Run& run) {
  Expected<Statement> old = database_.Query("SELECT reference, reference_hash FROM runs WHERE id = ?", run.id);
  if (!old) return old.error();
  Expected<bool> row = old->Step();
  if (!row) return row.error();
  if (!*row) return NoSuchRun(run.id);
  const std::string reference = CleanText(run.reference);
  if (!old->Text(1).empty() && (old->Text(1) != run.reference_hash || old->Text(0) != reference)) {
    return Status(ErrorKind::kConflict, "the reference of run " + run.id + " is frozen and cannot change", {},
                  "Start a new run for another reference, other inputs or other tolerances.");
  }
  run.updated = clock_.NowMs();
  Status status = database_.Run(
      "UPDATE runs SET status = ?, updated = ?, request = ?, reference = ?, reference_hash = ?, chips = ?, result = ?,"
      " owner = ? WHERE id = ?",
      RunStatusName(run.status), run.updated, CleanText(run.request), reference, run.reference_hash,
      DumpJson(run.chips), CleanText(run.result), run.owner, run.id);
  return status ? RequireOneChange(database_, run.id) : status;
}

Status Writer::DeleteRun(const std::string& id) {
  Status status = database_.Run("DELETE FROM runs WHERE id = ?", id);
  if (status) status = RequireOneChange(database_, id);
  if (status) status = database_.Run("DELETE FROM events WHERE run = ?", id);
  return status;
}

Status Writer::PutCandidate(Candidate& candidate) {
  int64_t number = 0;
  if (candidate.id.empty()) {
    Expected<Statement> next =
        database_.Query("SELECT coalesce(max(number) + 1, 0) FROM candidates WHERE run = ?", candidate.run);
    if (!next) return next.error();
    if (Expected<bool> row = next->Step(); !row) return row.error();
    number = next->Int(0);
    candidate.id = CandidateId(number);
  } else {
    Expected<int64_t> parsed = CandidateNumber(candidate.id);
    if (!parsed) return parsed.error();
    number = *parsed;
  }
  candidate.updated = clock_.NowMs();
  if (candidate.created == 0) candidate.created = candidate.updated;
  return database_.Run(
      "INSERT INTO candidates (run, number, parents, status, what, edits, content_hash, result, created, updated)"
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
      " ON CONFLICT (run, number) DO UPDATE SET parents = excluded.parents, status = excluded.status,"
      " what = excluded.what, edits = excluded.edits, content_hash = excluded.content_hash, result = excluded.result,"
      " updated = excluded.updated",
      candidate.run, number, DumpJson(candidate.parents), candidate.status, Clean(candidate.what),
      DumpJson(candidate.edits), candidate.content_hash, CleanText(candidate.result), candidate.created,
      candidate.updated);
}

Status Writer::PutEvaluation(Evaluation& evaluation) {
  Expected<int64_t> number = CandidateNumber(evaluation.candidate);
  if (!number) return number.error();
  if (evaluation.created == 0) evaluation.created = clock_.NowMs();
  Status status = database_.Run(
      "INSERT INTO evaluations (run, candidate, chip, stage, attempt, status, gate, reason, result, evidence,"
      " duration_ms, reported, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
      " ON CONFLICT (run, candidate, chip, stage, attempt) DO UPDATE SET status = excluded.status,"
      " gate = excluded.gate, reason = excluded.reason, result = excluded.result, evidence = excluded.evidence,"
      " duration_ms = excluded.duration_ms, reported = excluded.reported, created = excluded.created"
      " WHERE evaluations.reported = 0",
      evaluation.run, *number, evaluation.chip, evaluation.stage, evaluation.attempt,
      EvaluationStatusName(evaluation.status), evaluation.gate, Clean(evaluation.reason), CleanText(evaluation.result),
      CleanText(evaluation.evidence), evaluation.duration_ms, evaluation.reported ? 1 : 0, evaluation.created);
  if (status && database_.changes() == 0) {
    return Status(ErrorKind::kConflict,
                  "the evaluation " + evaluation.stage + " of " + evaluation.candidate + " was reported already", {},
                  "A second one needs a higher attempt number.");
  }
  return status;
}

Status Writer::AddApproval(Approval& approval) {
  if (approval.time == 0) approval.time = clock_.NowMs();
  return database_.Run(
      "INSERT INTO approvals (run, step, step_hash, decision, scope, who, time) VALUES (?, ?, ?, ?, ?, ?, ?)",
      approval.run, approval.step, approval.step_hash, approval.decision, approval.scope, approval.who, approval.time);
}

Status Writer::AppendEvent(Event& event) {
  if (event.time == 0) event.time = clock_.NowMs();
  event.payload = CleanJson(std::move(event.payload));
  Status status = database_.Run("INSERT INTO events (run, time, kind, payload) VALUES (?, ?, ?, ?)", event.run,
                                event.time, event.kind, DumpJson(event.payload));
  if (!status) return status;
  event.seq = database_.last_insert_id();
  events_.push_back(event);
  return {};
}

Status Writer::SetMeta(const std::string& key, const std::string& value) {
  return database_.Run(
      "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", key,
      Clean(value));
}

}  // namespace kernelwright::store
