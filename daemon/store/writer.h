// Changes inside one transaction of the store. All of them become visible together or not at all.
#pragma once

#include <string>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/store/records.h"
#include "daemon/store/sqlite.h"

namespace kernelwright::store {

class Writer {
 public:
  Writer(Database& database, const Clock& clock) : database_(database), clock_(clock) {}

  // A new run; `run.id` is filled in, the times too where they are 0.
  Status CreateRun(Run& run);
  // Writes status, result, chips, owner, request and, if it was not set before, the reference. kConflict when a frozen
  // reference would change, kNotFound when there is no such run.
  Status UpdateRun(Run& run);
  Status DeleteRun(const std::string& id);

  // A new candidate (`candidate.id` is filled in when empty), or a new state of one that exists.
  Status PutCandidate(Candidate& candidate);

  // Keyed by run, candidate, chip, stage and attempt; replaces one that was not reported yet. kConflict when it was.
  Status PutEvaluation(Evaluation& evaluation);

  Status AddApproval(Approval& approval);

  // Gives the event its number. It may be shown only after the transaction has been committed.
  Status AppendEvent(Event& event);

  Status SetMeta(const std::string& key, const std::string& value);

  // The events of this transaction in order.
  const std::vector<Event>& events() const { return events_; }

 private:
  Database& database_;
  const Clock& clock_;
  std::vector<Event> events_;
};

// A new run id: 10 characters of time and 6 random ones, in an alphabet that sorts (Crockford's base 32, lower case).
// Ids that this process makes are strictly increasing.
Expected<std::string> NewRunId(int64_t now_ms);

}  // namespace kernelwright::store
