// Recovery after a crash, pruning, export and checks; see store.h.
#include <algorithm>
#include <limits>

#include "daemon/store/rows.h"
#include "daemon/store/store.h"

namespace kernelwright::store {
namespace {

bool IsOver(RunStatus status) {
  return status == RunStatus::kFinished || status == RunStatus::kFailed || status == RunStatus::kCancelled;
}

// A run whose owner cannot be read was written by hand or by nobody: it has no living driver.
bool HasLivingOwner(const Run& run, const std::function<bool(const ProcessIdentity&)>& is_alive) {
  Expected<ProcessIdentity> owner = ProcessIdentity::Parse(run.owner);
  return owner && is_alive(*owner);
}

Expected<int64_t> FileBytes(Database& database) {
  Expected<int64_t> pages = database.Scalar("PRAGMA page_count");
  if (!pages) return pages;
  Expected<int64_t> size = database.Scalar("PRAGMA page_size");
  if (!size) return size;
  return *pages * *size;
}

template <typename Record>
Json Array(const std::vector<Record>& records) {
  Json array = Json::array();
  for (const Record& record : records) array.push_back(ToJson(record));
  return array;
}

}  // namespace

Expected<std::vector<Run>> Store::FindInterrupted(const std::function<bool(const ProcessIdentity&)>& is_alive) {
  Expected<std::vector<Run>> runs = [&] {
    std::lock_guard lock(read_mutex_);
    return ReadAll(read_db_.Query(std::string("SELECT ") + kRunColumns +
                                  " FROM runs WHERE status IN ('queued', 'running') ORDER BY id"),
                   ReadRun);
  }();
  if (!runs) return runs;
  std::erase_if(*runs, [&](const Run& run) { return HasLivingOwner(run, is_alive); });
  return runs;
}

Expected<Run> Store::ClaimRun(const std::string& id, const std::string& owner,
                              const std::function<bool(const ProcessIdentity&)>& is_alive) {
  Run run;
  Status status = Change([&](Writer& writer) -> Status {
    Expected<std::vector<Run>> found =
        ReadAll(write_db_.Query(std::string("SELECT ") + kRunColumns + " FROM runs WHERE id = ?", id), ReadRun);
    if (!found) return found.error();
    if (found->empty()) {
      return Status(ErrorKind::kNotFound, "there is no run `" + id + "`", {}, "See `kernelwright runs list`.");
    }
    run = std::move(found->front());
    if (run.owner != owner && HasLivingOwner(run, is_alive) && !IsOver(run.status)) {
      return Status(ErrorKind::kConflict, "run " + id + " is driven by a living process (" + run.owner + ")", {},
                    "Watch it with `kernelwright runs watch " + id + "`, or end that process.");
    }
    run.owner = owner;
    return writer.UpdateRun(run);
  });
  if (!status) return Fail(std::move(status));
  return run;
}

Expected<PruneResult> Store::Prune(const PruneOptions& options) {
  if (!options.older_than_ms && !options.keep_newest) {
    return Fail(ErrorKind::kUsage, "what to prune was not said", {},
                "Give an age (--older-than 30d), a number (--keep 50) or both.");
  }
  PruneResult result;
  std::lock_guard lock(write_mutex_);
  Expected<int64_t> before = FileBytes(write_db_);
  if (!before) return Fail(before.error());
  result.bytes_before = result.bytes_after = *before;

  Expected<Transaction> transaction = Transaction::Begin(write_db_);
  if (!transaction) return Fail(transaction.error());
  Expected<Statement> runs = write_db_.Query("SELECT id, status, updated FROM runs ORDER BY id DESC");
  if (!runs) return Fail(runs.error());
  for (size_t newer = 0;; ++newer) {
    Expected<bool> row = runs->Step();
    if (!row) return Fail(row.error());
    if (!*row) break;
    Expected<RunStatus> status = ParseRunStatus(runs->Text(1));
    if (!status || !IsOver(*status)) continue;
    if (options.keep_newest && newer < *options.keep_newest) continue;
    if (options.older_than_ms && runs->Int(2) >= *options.older_than_ms) continue;
    result.runs.push_back(runs->Text(0));
  }
  std::reverse(result.runs.begin(), result.runs.end());
  if (options.dry_run) return result;

  Writer writer(write_db_, clock_);
  for (const std::string& id : result.runs) {
    if (Status status = writer.DeleteRun(id); !status) return Fail(std::move(status));
  }
  if (options.older_than_ms) {
    Status status = write_db_.Run("DELETE FROM events WHERE run = '' AND time < ?", *options.older_than_ms);
    if (!status) return Fail(std::move(status));
    result.events = write_db_.changes();
  }
  if (Status status = transaction->Commit(); !status) return Fail(std::move(status));
  // Giving space back is a courtesy; the removal above stands whether it works or not.
  static_cast<void>(write_db_.Execute("PRAGMA incremental_vacuum"));
  static_cast<void>(write_db_.Execute("PRAGMA wal_checkpoint(TRUNCATE)"));
  if (Expected<int64_t> after = FileBytes(write_db_)) result.bytes_after = *after;
  return result;
}

Expected<Json> Store::Export(const std::string& id) {
  Expected<Run> run = GetRun(id);
  if (!run) return Fail(run.error());
  Expected<std::vector<Candidate>> candidates = ListCandidates(run->id);
  if (!candidates) return Fail(candidates.error());
  Expected<std::vector<Evaluation>> evaluations = ListEvaluations(run->id);
  if (!evaluations) return Fail(evaluations.error());
  Expected<std::vector<Approval>> approvals = ListApprovals(run->id);
  if (!approvals) return Fail(approvals.error());
  Expected<std::vector<Event>> events = ReadEvents(0, run->id, std::numeric_limits<int32_t>::max());
  if (!events) return Fail(events.error());
  return Json{{"format", "kernelwright-run"},
              {"version", 1},
              {"run", ToJson(*run)},
              {"candidates", Array(*candidates)},
              {"evaluations", Array(*evaluations)},
              {"approvals", Array(*approvals)},
              {"events", Array(*events)}};
}

Status Store::CheckIntegrity() {
  std::lock_guard lock(read_mutex_);
  Expected<Statement> check = read_db_.Query("PRAGMA integrity_check(1)");
  if (!check) return check.error();
  Expected<bool> row = check->Step();
  if (!row) return row.error();
  if (check->Text(0) != "ok") return SqliteStatus(SQLITE_CORRUPT, check->Text(0), path_.string());
  Expected<Statement> keys = read_db_.Query("PRAGMA foreign_key_check");
  if (!keys) return keys.error();
  row = keys->Step();
  if (!row) return row.error();
  if (*row) return SqliteStatus(SQLITE_CORRUPT, "a record of table " + keys->Text(0) + " has no owner", path_.string());
  return {};
}

}  // namespace kernelwright::store
