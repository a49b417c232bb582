// The journal of one run over the store: evaluations and the events that report them are committed together, and what
// an earlier attempt at the run has stored is found again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

#include "daemon/agents/journal.h"
#include "daemon/store/event_log.h"
#include "daemon/store/store.h"

namespace kernelwright::agents {

// Where compile results are kept.
class BlobCache {
 public:
  virtual ~BlobCache() = default;
  virtual std::optional<std::string> Get(const std::string& key) = 0;
  virtual void Put(const std::string& key, const std::string& blob) = 0;
};

class StoreJournal : public Journal {
 public:
  // Reads what the store has of the run. The store, log and cache must outlive the journal; `cache` may be null.
  static Expected<std::unique_ptr<StoreJournal>> Open(store::Store& store, store::EventLog& log, BlobCache* cache,
                                                      const std::string& run);

  std::string run_id() const override { return run_; }
  Expected<std::optional<std::string>> LoadFrozen() override;
  Status SaveFrozen(const std::string& json, const std::string& sha256) override;
  Expected<std::string> CandidateId(const std::string& content_sha256, const std::string& what) override;
  Expected<std::optional<StageRecord>> FindStage(const std::string& chip, const std::string& content_sha256,
                                                 const std::string& stage) override;
  Status SaveStage(const StageRecord& record, const CandidateRow& row) override;
  Status Emit(const std::string& kind, const std::string& payload_json) override;
  std::optional<std::string> CacheGet(const std::string& key) override;
  void CachePut(const std::string& key, const std::string& blob) override;

  // Stages that were in the store when the journal was opened.
  size_t kept_stages() const { return kept_stages_; }

 private:
  StoreJournal(store::Store& store, store::EventLog& log, BlobCache* cache, std::string run)
      : store_(store), log_(log), cache_(cache), run_(std::move(run)) {}
  Status Load();

  using StageKey = std::tuple<std::string, std::string, std::string>;  // chip, content, stage
  store::Store& store_;
  store::EventLog& log_;
  BlobCache* const cache_;
  const std::string run_;
  std::mutex mutex_;
  std::map<std::string, std::string> ids_;  // content -> candidate id
  std::map<StageKey, StageRecord> stages_;
  size_t kept_stages_ = 0;
};

}  // namespace kernelwright::agents
