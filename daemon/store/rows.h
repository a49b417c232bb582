// Turns rows of the tables into records. Private to this folder.
#pragma once

#include <vector>

#include "daemon/store/records.h"
#include "daemon/store/sqlite.h"

namespace kernelwright::store {

// Column lists that match the readers below.
inline constexpr const char* kRunColumns =
    "id, kind, status, created, updated, request, reference, reference_hash, chips, result, client, owner";
inline constexpr const char* kCandidateColumns =
    "run, number, parents, status, what, edits, content_hash, result, created, updated";
inline constexpr const char* kEvaluationColumns =
    "run, candidate, chip, stage, attempt, status, gate, reason, result, evidence, duration_ms, reported, created";
inline constexpr const char* kApprovalColumns = "run, step, step_hash, decision, scope, who, time";
inline constexpr const char* kEventColumns = "seq, run, time, kind, payload";

Expected<Run> ReadRun(const Statement& row);
Expected<Candidate> ReadCandidate(const Statement& row);
Expected<Evaluation> ReadEvaluation(const Statement& row);
Expected<Approval> ReadApproval(const Statement& row);
Expected<Event> ReadEvent(const Statement& row);

// All rows of a query.
template <typename Record>
Expected<std::vector<Record>> ReadAll(Expected<Statement> statement, Expected<Record> (*read)(const Statement&)) {
  if (!statement) return Fail(statement.error());
  std::vector<Record> records;
  while (true) {
    Expected<bool> row = statement->Step();
    if (!row) return Fail(row.error());
    if (!*row) return records;
    Expected<Record> record = read(*statement);
    if (!record) return Fail(record.error());
    records.push_back(*std::move(record));
  }
}

}  // namespace kernelwright::store
