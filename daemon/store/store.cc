// Opening, changing and reading; see store.h. Upkeep (recovery, pruning, export, checks) is in store_upkeep.cc.
#include "daemon/store/store.h"

#include "daemon/base/files.h"
#include "daemon/store/rows.h"
#include "daemon/store/schema.h"

namespace kernelwright::store {
namespace {

std::string Select(const char* columns, const char* rest) { return std::string("SELECT ") + columns + " FROM " + rest; }

template <typename Record>
Expected<std::optional<Record>> First(Expected<std::vector<Record>> records) {
  if (!records) return Fail(records.error());
  if (records->empty()) return std::optional<Record>();
  return std::optional<Record>(std::move(records->front()));
}

}  // namespace

Expected<std::unique_ptr<Store>> Store::Open(const std::filesystem::path& path, const Clock& clock) {
  if (path.has_parent_path()) {
    std::error_code error;
    if (!std::filesystem::exists(path.parent_path(), error)) {
      if (Status status = MakePrivateFolder(path.parent_path()); !status) return Fail(std::move(status));
    }
  }
  Expected<Database> writer = Database::Open(path, Database::Mode::kReadWriteCreate);
  if (!writer) return Fail(writer.error());
  if (Status status = Migrate(*writer, StoreMigrations(), kStoreApplicationId); !status) return Fail(std::move(status));
  // With FULL a commit survives a power cut, not only a crash of this program.
  if (Status status = writer->Execute("PRAGMA synchronous = FULL"); !status) return Fail(std::move(status));
  Expected<Database> reader = Database::Open(path, Database::Mode::kReadOnly);
  if (!reader) return Fail(reader.error());
  return std::unique_ptr<Store>(new Store(path, clock, *std::move(writer), *std::move(reader)));
}

Expected<std::vector<Event>> Store::Transact(const std::function<Status(Writer&)>& work) {
  std::lock_guard lock(write_mutex_);
  Expected<Transaction> transaction = Transaction::Begin(write_db_);
  if (!transaction) return Fail(transaction.error());
  Writer writer(write_db_, clock_);
  if (Status status = work(writer); !status) return Fail(std::move(status));
  if (Status status = transaction->Commit(); !status) return Fail(std::move(status));
  return writer.events();
}

Status Store::Change(const std::function<Status(Writer&)>& work) {
  Expected<std::vector<Event>> events = Transact(work);
  return events ? Status() : events.error();
}

Status Store::CreateRun(Run& run) {
  return Change([&](Writer& writer) { return writer.CreateRun(run); });
}
Status Store::UpdateRun(Run& run) {
  return Change([&](Writer& writer) { return writer.UpdateRun(run); });
}
Status Store::PutCandidate(Candidate& candidate) {
  return Change([&](Writer& writer) { return writer.PutCandidate(candidate); });
}
Status Store::PutEvaluation(Evaluation& evaluation) {
  return Change([&](Writer& writer) { return writer.PutEvaluation(evaluation); });
}
Status Store::AddApproval(Approval& approval) {
  return Change([&](Writer& writer) { return writer.AddApproval(approval); });
}
Status Store::DeleteRun(const std::string& id) {
  return Change([&](Writer& writer) { return writer.DeleteRun(id); });
}
Status Store::SetMeta(const std::string& key, const std::string& value) {
  return Change([&](Writer& writer) { return writer.SetMeta(key, value); });
}

Expected<int64_t> Store::AppendEvent(Event event) {
  Status status = Change([&](Writer& writer) { return writer.AppendEvent(event); });
  if (!status) return Fail(std::move(status));
  return event.seq;
}

Expected<Run> Store::GetRun(const std::string& id) {
  std::lock_guard lock(read_mutex_);
  Expected<std::vector<Run>> runs = ReadAll(read_db_.Query(Select(kRunColumns, "runs WHERE id = ?"), id), ReadRun);
  if (!runs) return Fail(runs.error());
  if (runs->empty() && id.size() >= 4) {
    // Compared by substr, not LIKE: the text comes from a person and may hold wildcards.
    runs = ReadAll(read_db_.Query(Select(kRunColumns,
                                         "runs WHERE substr(id, 1, length(?1)) = ?1 OR substr(id, -length(?1)) = ?1"
                                         " ORDER BY id LIMIT 2"),
                                  id),
                   ReadRun);
    if (!runs) return Fail(runs.error());
  }
  if (runs->empty()) {
    return Fail(ErrorKind::kNotFound, "there is no run `" + id + "`", {}, "See `kernelwright runs list`.");
  }
  if (runs->size() > 1) {
    return Fail(ErrorKind::kUsage, "several runs match `" + id + "`", {},
                "Give more of the id, for example " + (*runs)[0].id + ".");
  }
  return std::move(runs->front());
}

Expected<std::vector<Run>> Store::ListRuns(const RunFilter& filter) {
  std::lock_guard lock(read_mutex_);
  const std::string status = filter.status ? std::string(RunStatusName(*filter.status)) : "";
  return ReadAll(read_db_.Query(Select(kRunColumns,
                                       "runs WHERE (?1 = '' OR status = ?1) AND (?2 = '' OR kind = ?2)"
                                       " AND (?3 = '' OR id < ?3) ORDER BY id DESC LIMIT ?4"),
                                status, filter.kind, filter.before, filter.limit),
                 ReadRun);
}

Expected<std::vector<Candidate>> Store::ListCandidates(const std::string& run) {
  std::lock_guard lock(read_mutex_);
  return ReadAll(read_db_.Query(Select(kCandidateColumns, "candidates WHERE run = ? ORDER BY number"), run),
                 ReadCandidate);
}

Expected<Candidate> Store::GetCandidate(const std::string& run, const std::string& id) {
  Expected<int64_t> number = CandidateNumber(id);
  if (!number) return Fail(number.error());
  std::lock_guard lock(read_mutex_);
  Expected<std::optional<Candidate>> candidate =
      First(ReadAll(read_db_.Query(Select(kCandidateColumns, "candidates WHERE run = ? AND number = ?"), run, *number),
                    ReadCandidate));
  if (!candidate) return Fail(candidate.error());
  if (!*candidate) {
    return Fail(ErrorKind::kNotFound, "run " + run + " has no candidate " + id, {},
                "See `kernelwright runs show " + run + "`.");
  }
  return **std::move(candidate);
}

Expected<std::optional<Candidate>> Store::FindCandidateByContent(const std::string& run,
                                                                 const std::string& content_hash) {
  std::lock_guard lock(read_mutex_);
  return First(ReadAll(
      read_db_.Query(Select(kCandidateColumns, "candidates WHERE run = ? AND content_hash = ? ORDER BY number LIMIT 1"),
                     run, content_hash),
      ReadCandidate));
}

Expected<std::vector<Evaluation>> Store::ListEvaluations(const std::string& run, const std::string& candidate) {
  int64_t number = -1;
  if (!candidate.empty()) {
    Expected<int64_t> parsed = CandidateNumber(candidate);
    if (!parsed) return Fail(parsed.error());
    number = *parsed;
  }
  std::lock_guard lock(read_mutex_);
  return ReadAll(read_db_.Query(Select(kEvaluationColumns,
                                       "evaluations WHERE run = ?1 AND (?2 < 0 OR candidate = ?2) ORDER BY id"),
                                run, number),
                 ReadEvaluation);
}

Expected<std::vector<Approval>> Store::ListApprovals(const std::string& run) {
  std::lock_guard lock(read_mutex_);
  return ReadAll(read_db_.Query(Select(kApprovalColumns, "approvals WHERE run = ? ORDER BY id"), run), ReadApproval);
}

Expected<std::optional<Approval>> Store::FindApproval(const std::string& run, const std::string& step_hash) {
  std::lock_guard lock(read_mutex_);
  return First(ReadAll(
      read_db_.Query(Select(kApprovalColumns, "approvals WHERE run = ? AND step_hash = ? ORDER BY id DESC LIMIT 1"),
                     run, step_hash),
      ReadApproval));
}

Expected<std::optional<std::string>> Store::GetMeta(const std::string& key) {
  std::lock_guard lock(read_mutex_);
  Expected<Statement> statement = read_db_.Query("SELECT value FROM meta WHERE key = ?", key);
  if (!statement) return Fail(statement.error());
  Expected<bool> row = statement->Step();
  if (!row) return Fail(row.error());
  return *row ? std::optional<std::string>(statement->Text(0)) : std::nullopt;
}

Expected<std::vector<Event>> Store::ReadEvents(int64_t since, const std::string& run, size_t limit) {
  std::lock_guard lock(read_mutex_);
  if (run.empty()) {
    return ReadAll(read_db_.Query(Select(kEventColumns, "events WHERE seq > ? ORDER BY seq LIMIT ?"), since, limit),
                   ReadEvent);
  }
  return ReadAll(
      read_db_.Query(Select(kEventColumns, "events WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?"), run, since, limit),
      ReadEvent);
}

Expected<int64_t> Store::LastSeq() {
  std::lock_guard lock(read_mutex_);
  // Not max(seq): the newest events may have been pruned, and a number is never given twice.
  return read_db_.Scalar("SELECT seq FROM sqlite_sequence WHERE name = 'events'");
}

}  // namespace kernelwright::store
