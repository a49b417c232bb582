// What the store keeps, as plain values. Times are milliseconds since 1970 UTC; 0 means "now" when a record is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/json.h"
#include "daemon/base/status.h"

namespace kernelwright::store {

enum class RunStatus { kQueued, kRunning, kPaused, kFinished, kFailed, kCancelled };
std::string_view RunStatusName(RunStatus status);  // "queued", "running", …
Expected<RunStatus> ParseRunStatus(std::string_view name);

struct Run {
  std::string id;    // 16 characters that sort by time of creation; given by the store when empty
  std::string kind;  // optimize, tune, auto, search, session, …
  RunStatus status = RunStatus::kQueued;
  int64_t created = 0;
  int64_t updated = 0;
  Json request;                // what was asked for
  Json reference;              // frozen reference, inputs, seeds, tolerances; null until set, then never changes
  std::string reference_hash;  // SHA-256 of it; empty until set
  std::vector<std::string> chips;
  Json result;         // null until the end
  std::string client;  // cli, vscode, mcp, …
  std::string owner;   // ProcessIdentity::ToString() of the process that drives it
};

struct Candidate {
  std::string run;
  std::string id;  // "c3"; the next free number of the run when empty
  std::vector<std::string> parents;
  std::string status;  // new, rejected, failed, passed, best, …
  std::string what;    // one line for people
  Json edits;          // from the original to this candidate
  std::string content_hash;
  Json result;  // gate, estimate_ms, why, …
  int64_t created = 0;
  int64_t updated = 0;
};

enum class EvaluationStatus { kPass, kFail, kNotRun };
std::string_view EvaluationStatusName(EvaluationStatus status);  // "pass", "fail", "not_run"
Expected<EvaluationStatus> ParseEvaluationStatus(std::string_view name);

// The outcome of one stage for one candidate on one chip.
struct Evaluation {
  std::string run;
  std::string candidate;
  std::string chip;   // empty when the stage has no chip
  std::string stage;  // compile, check, estimate, …
  int attempt = 0;
  EvaluationStatus status = EvaluationStatus::kNotRun;
  std::string gate;    // the gate that decided, if any
  std::string reason;  // why it failed or was not run
  Json result;
  Json evidence;  // class, chip, versions
  int64_t duration_ms = 0;
  bool reported = false;  // a client may have seen it: from then on it never changes
  int64_t created = 0;
};

struct Approval {
  std::string run;
  std::string step;
  std::string step_hash;  // SHA-256 of the step's content: the approval holds for nothing else
  std::string decision;   // approved, rejected
  std::string scope;      // once, plan, session, always
  std::string who;        // a person, or a rule by name
  int64_t time = 0;
};

struct Event {
  int64_t seq = 0;  // global number, given by the store
  std::string run;  // empty for what concerns the daemon as a whole
  int64_t time = 0;
  std::string kind;
  Json payload;
};

// JSON forms, as in `runs show --json` and in an export. Times are UTC text.
Json ToJson(const Run& run);
Json ToJson(const Candidate& candidate);
Json ToJson(const Evaluation& evaluation);
Json ToJson(const Approval& approval);
Json ToJson(const Event& event);

// "c3" ↔ 3.
std::string CandidateId(int64_t number);
Expected<int64_t> CandidateNumber(std::string_view id);

}  // namespace kernelwright::store
