// See rows.h.
#include "daemon/store/rows.h"

namespace kernelwright::store {
namespace {

// Collects the first error of several columns, so that each reader is a plain list.
class Row {
 public:
  explicit Row(const Statement& statement) : statement_(statement) {}

  std::string Text(int column) const { return statement_.Text(column); }
  int64_t Int(int column) const { return statement_.Int(column); }
  Json Value(int column) {
    Expected<Json> value = ParseJson(statement_.Text(column));
    if (value) return *std::move(value);
    Note(Status(ErrorKind::kInternal, "a stored record cannot be read: " + value.error().message(), {},
                "Check the database with `kernelwright doctor`."));
    return nullptr;
  }
  std::vector<std::string> Strings(int column) {
    std::vector<std::string> strings;
    for (const Json& element : Value(column)) {
      if (element.is_string()) strings.push_back(element.get<std::string>());
    }
    return strings;
  }
  template <typename T>
  T Parsed(Expected<T> value) {
    if (value) return *value;
    Note(value.error());
    return T{};
  }
  template <typename Record>
  Expected<Record> Result(Record record) {
    if (!status_) return Fail(status_);
    return record;
  }

 private:
  void Note(Status status) {
    if (status_) status_ = std::move(status);
  }
  const Statement& statement_;
  Status status_;
};

}  // namespace

Expected<Run> ReadRun(const Statement& statement) {
  Row row(statement);
  Run run;
  run.id = row.Text(0);
  run.kind = row.Text(1);
  run.status = row.Parsed(ParseRunStatus(row.Text(2)));
  run.created = row.Int(3);
  run.updated = row.Int(4);
  run.request = row.Value(5);
  run.reference = row.Value(6);
  run.reference_hash = row.Text(7);
  run.chips = row.Strings(8);
  run.result = row.Value(9);
  run.client = row.Text(10);
  run.owner = row.Text(11);
  return row.Result(std::move(run));
}

Expected<Candidate> ReadCandidate(const Statement& statement) {
  Row row(statement);
  Candidate candidate;
  candidate.run = row.Text(0);
  candidate.id = CandidateId(row.Int(1));
  candidate.parents = row.Strings(2);
  candidate.status = row.Text(3);
  candidate.what = row.Text(4);
  candidate.edits = row.Value(5);
  candidate.content_hash = row.Text(6);
  candidate.result = row.Value(7);
  candidate.created = row.Int(8);
  candidate.updated = row.Int(9);
  return row.Result(std::move(candidate));
}

Expected<Evaluation> ReadEvaluation(const Statement& statement) {
  Row row(statement);
  Evaluation evaluation;
  evaluation.run = row.Text(0);
  evaluation.candidate = CandidateId(row.Int(1));
  evaluation.chip = row.Text(2);
  evaluation.stage = row.Text(3);
  evaluation.attempt = static_cast<int>(row.Int(4));
  evaluation.status = row.Parsed(ParseEvaluationStatus(row.Text(5)));
  evaluation.gate = row.Text(6);
  evaluation.reason = row.Text(7);
  evaluation.result = row.Value(8);
  evaluation.evidence = row.Value(9);
  evaluation.duration_ms = row.Int(10);
  evaluation.reported = row.Int(11) != 0;
  evaluation.created = row.Int(12);
  return row.Result(std::move(evaluation));
}

Expected<Approval> ReadApproval(const Statement& statement) {
  Approval approval;
  approval.run = statement.Text(0);
  approval.step = statement.Text(1);
  approval.step_hash = statement.Text(2);
  approval.decision = statement.Text(3);
  approval.scope = statement.Text(4);
  approval.who = statement.Text(5);
  approval.time = statement.Int(6);
  return approval;
}

Expected<Event> ReadEvent(const Statement& statement) {
  Row row(statement);
  Event event;
  event.seq = row.Int(0);
  event.run = row.Text(1);
  event.time = row.Int(2);
  event.kind = row.Text(3);
  event.payload = row.Value(4);
  return row.Result(std::move(event));
}

}  // namespace kernelwright::store
