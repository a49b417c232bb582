// Everything that must survive a crash: runs, candidates, evaluations, approvals and the numbered event log, in one
// SQLite file. A call that returns ok has its changes on disk, so what a client is told can never be lost. Thread-safe;
// several processes may use the same file, one of them writing at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/base/process_identity.h"
#include "daemon/base/status.h"
#include "daemon/store/records.h"
#include "daemon/store/sqlite.h"
#include "daemon/store/writer.h"

namespace kernelwright::store {

struct RunFilter {
  std::optional<RunStatus> status;
  std::string kind;    // empty: all
  std::string before;  // only runs older than this id; for the next page
  size_t limit = 100;
};

struct PruneOptions {
  std::optional<int64_t> older_than_ms;  // last change before this time
  std::optional<size_t> keep_newest;     // and not among the newest N
  bool dry_run = false;                  // only say what would go
};

struct PruneResult {
  std::vector<std::string> runs;  // removed, oldest first
  int64_t events = 0;             // events of no run that were older and went too
  int64_t bytes_before = 0;       // size of the database file
  int64_t bytes_after = 0;
};

class Store {
 public:
  // Opens or makes the database (its folder too, private), and migrates an older one. See Migrate for the refusals: a
  // newer, foreign or damaged file is left exactly as it is.
  static Expected<std::unique_ptr<Store>> Open(const std::filesystem::path& path, const Clock& clock = SystemClock());

  // Runs `work` in one transaction and commits if it returns ok; else nothing is changed. Returns the events that it
  // appended, numbered and on disk. `work` must not call the store.
  Expected<std::vector<Event>> Transact(const std::function<Status(Writer&)>& work);

  // Single changes, each a transaction of its own; see Writer for their errors.
  Status CreateRun(Run& run);
  Status UpdateRun(Run& run);
  Status PutCandidate(Candidate& candidate);
  Status PutEvaluation(Evaluation& evaluation);
  Status AddApproval(Approval& approval);
  Status DeleteRun(const std::string& id);
  // Returns the event's number once it is on disk. Where clients listen, append through EventLog instead.
  Expected<int64_t> AppendEvent(Event event);
  Status SetMeta(const std::string& key, const std::string& value);

  // The run with this id, or the only one whose id starts or ends with it (at least 4 characters). kNotFound, or kUsage
  // when several match.
  Expected<Run> GetRun(const std::string& id);
  // Newest first.
  Expected<std::vector<Run>> ListRuns(const RunFilter& filter = {});
  // In order of their numbers.
  Expected<std::vector<Candidate>> ListCandidates(const std::string& run);
  Expected<Candidate> GetCandidate(const std::string& run, const std::string& id);
  // The candidate of this run with the same content, if any: equal candidates are not evaluated twice.
  Expected<std::optional<Candidate>> FindCandidateByContent(const std::string& run, const std::string& content_hash);
  // In order of storing; of one candidate if it is named.
  Expected<std::vector<Evaluation>> ListEvaluations(const std::string& run, const std::string& candidate = {});
  Expected<std::vector<Approval>> ListApprovals(const std::string& run);
  // The latest decision about exactly this content.
  Expected<std::optional<Approval>> FindApproval(const std::string& run, const std::string& step_hash);
  Expected<std::optional<std::string>> GetMeta(const std::string& key);

  // Events with a number above `since`, in order, of one run if it is named.
  Expected<std::vector<Event>> ReadEvents(int64_t since, const std::string& run = {}, size_t limit = 1000);
  // The highest number given so far, 0 when none.
  Expected<int64_t> LastSeq();

  // Runs that are marked running or queued although the process that drove them is gone; oldest first.
  Expected<std::vector<Run>> FindInterrupted(const std::function<bool(const ProcessIdentity&)>& is_alive = IsAlive);
  // Makes `owner` the driver of an interrupted run. kConflict when its driver lives or another process was faster.
  Expected<Run> ClaimRun(const std::string& id, const std::string& owner,
                         const std::function<bool(const ProcessIdentity&)>& is_alive = IsAlive);

  // Removes finished runs by age and number; both limits must allow it when both are given. Runs that are queued,
  // running or paused stay. kUsage when neither limit is given.
  Expected<PruneResult> Prune(const PruneOptions& options);
  // All about one run as one JSON object (docs/event-log.md).
  Expected<Json> Export(const std::string& run);
  // Ok, or what is damaged. Reads the whole file.
  Status CheckIntegrity();

  const std::filesystem::path& path() const { return path_; }

 private:
  Store(std::filesystem::path path, const Clock& clock, Database writer, Database reader)
      : path_(std::move(path)), clock_(clock), write_db_(std::move(writer)), read_db_(std::move(reader)) {}

  Status Change(const std::function<Status(Writer&)>& work);

  const std::filesystem::path path_;
  const Clock& clock_;
  // Two connections, so that a client that reads much does not hold up the log. Each has its own lock.
  std::mutex write_mutex_;
  Database write_db_;
  std::mutex read_mutex_;
  Database read_db_;
};

}  // namespace kernelwright::store
