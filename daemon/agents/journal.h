// What a run writes down as it goes and finds again when it is resumed: the frozen record, evaluations, events, cached
// compiles. Implemented over the store; in memory for the loop's unit tests. Safe to call from many threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/base/status.h"

namespace kernelwright::agents {

// Row of the table of what was tried; the JSON names are those of CandidateRow in run.proto.
struct CandidateRow {
  std::string id;      // "c3"; unique in its run and chip
  std::string status;  // pending, compiling, checking, passed, failed, skipped
  std::string what;    // "bm=512 bn=1024 bk=1024"
  std::string gate;    // that rejected it
  std::string why;     // one line
  double estimate_ms = 0;
  double ranked_ms = 0;
  std::string content_sha256;
  uint32_t milliseconds = 0;
  bool compile_cached = false;
};

// A finished stage of one candidate on one chip. Found again by (chip, content, stage): equal content is never
// evaluated twice in a run.
struct StageRecord {
  std::string chip;
  std::string candidate;       // id
  std::string content_sha256;  // of the candidate's files
  std::string stage;           // compile, soundness, check
  std::string status;          // "passed" or "failed"
  std::string gate;
  std::string reason;
  std::string result_json;  // what the stage found, enough to go on without repeating it
  uint32_t milliseconds = 0;
};

class Journal {
 public:
  virtual ~Journal() = default;

  virtual std::string run_id() const = 0;

  // The frozen record; empty in a run that has none yet. Saving a second, different one is kInternal.
  virtual Expected<std::optional<std::string>> LoadFrozen() = 0;
  virtual Status SaveFrozen(const std::string& json, const std::string& sha256) = 0;

  // The id of the candidate with this content, the same in every attempt at the run; a new one when there is none yet.
  // The first content that is asked for, the original's, is "c0".
  virtual Expected<std::string> CandidateId(const std::string& content_sha256, const std::string& what) = 0;

  virtual Expected<std::optional<StageRecord>> FindStage(const std::string& chip, const std::string& content_sha256,
                                                         const std::string& stage) = 0;
  // Stores the record and the candidate_changed event that reports it in one transaction.
  virtual Status SaveStage(const StageRecord& record, const CandidateRow& row) = 0;

  // Stores an event; clients see it after that. `payload_json`: the kind's message of run.proto.
  virtual Status Emit(const std::string& kind, const std::string& payload_json) = 0;

  // Compile results by content, shared by all runs, size-limited. A miss and a damaged entry look the same.
  virtual std::optional<std::string> CacheGet(const std::string& key) = 0;
  virtual void CachePut(const std::string& key, const std::string& blob) = 0;
};

}  // namespace kernelwright::agents
