// See store_journal.h. The store numbers candidates "c0", "c1", …; a content keeps its number for good, so that a
// resumed run shows the same names.
#include "daemon/agents/store_journal.h"

#include <utility>

#include "daemon/agents/run_events.h"

namespace kernelwright::agents {

Expected<std::unique_ptr<StoreJournal>> StoreJournal::Open(store::Store& store, store::EventLog& log, BlobCache* cache,
                                                           const std::string& run) {
  std::unique_ptr<StoreJournal> journal(new StoreJournal(store, log, cache, run));
  if (Status loaded = journal->Load(); !loaded.ok()) return Fail(loaded);
  return journal;
}

Status StoreJournal::Load() {
  auto candidates = store_.ListCandidates(run_);
  if (!candidates) return candidates.error();
  std::map<std::string, std::string> contents;  // id -> content
  for (const store::Candidate& candidate : *candidates) {
    ids_[candidate.content_hash] = candidate.id;
    contents[candidate.id] = candidate.content_hash;
  }
  auto evaluations = store_.ListEvaluations(run_);
  if (!evaluations) return evaluations.error();
  for (const store::Evaluation& evaluation : *evaluations) {
    const std::string& content = contents[evaluation.candidate];
    stages_[{evaluation.chip, content, evaluation.stage}] =
        StageRecord{evaluation.chip,
                    evaluation.candidate,
                    content,
                    evaluation.stage,
                    evaluation.status == store::EvaluationStatus::kPass ? "passed" : "failed",
                    evaluation.gate,
                    evaluation.reason,
                    evaluation.result.dump(),
                    static_cast<uint32_t>(evaluation.duration_ms)};
  }
  kept_stages_ = stages_.size();
  return {};
}

Expected<std::optional<std::string>> StoreJournal::LoadFrozen() {
  auto run = store_.GetRun(run_);
  if (!run) return Fail(run.error());
  if (run->reference.is_null()) return std::optional<std::string>();
  return std::optional<std::string>(run->reference.dump());
}

Status StoreJournal::SaveFrozen(const std::string& json, const std::string& sha256) {
  auto run = store_.GetRun(run_);
  if (!run) return run.error();
  auto parsed = ParseJson(json);
  if (!parsed) return parsed.error();
  run->reference = *std::move(parsed);
  run->reference_hash = sha256;
  return store_.UpdateRun(*run);
}

Expected<std::string> StoreJournal::CandidateId(const std::string& content_sha256, const std::string& what) {
  std::lock_guard lock(mutex_);
  auto [entry, is_new] = ids_.try_emplace(content_sha256, store::CandidateId(static_cast<int64_t>(ids_.size())));
  if (!is_new) return entry->second;
  store::Candidate candidate;
  candidate.run = run_;
  candidate.id = entry->second;
  candidate.status = "new";
  candidate.what = what;
  candidate.content_hash = content_sha256;
  if (Status stored = store_.PutCandidate(candidate); !stored.ok()) {
    ids_.erase(entry);
    return Fail(stored);
  }
  return candidate.id;
}

Expected<std::optional<StageRecord>> StoreJournal::FindStage(const std::string& chip, const std::string& content_sha256,
                                                             const std::string& stage) {
  std::lock_guard lock(mutex_);
  const auto found = stages_.find({chip, content_sha256, stage});
  if (found == stages_.end()) return std::optional<StageRecord>();
  return std::optional<StageRecord>(found->second);
}

Status StoreJournal::SaveStage(const StageRecord& record, const CandidateRow& row) {
  auto result = ParseJson(record.result_json);
  if (!result) return result.error();
  const nlohmann::json payload = CandidateChangedPayload(record.chip, row);
  // The same stage again (made by another build) is a new attempt: what was reported never changes.
  int attempt = 0;
  if (auto earlier = store_.ListEvaluations(run_, record.candidate)) {
    for (const store::Evaluation& evaluation : *earlier) {
      if (evaluation.chip == record.chip && evaluation.stage == record.stage) {
        attempt = std::max(attempt, evaluation.attempt + 1);
      }
    }
  }
  auto committed = log_.Commit([&](store::Writer& writer) -> Status {
    store::Evaluation evaluation;
    evaluation.run = run_;
    evaluation.candidate = record.candidate;
    evaluation.chip = record.chip;
    evaluation.stage = record.stage;
    evaluation.attempt = attempt;
    evaluation.status = record.status == "passed" ? store::EvaluationStatus::kPass : store::EvaluationStatus::kFail;
    evaluation.gate = record.gate;
    evaluation.reason = record.reason;
    evaluation.result = *result;
    evaluation.duration_ms = record.milliseconds;
    evaluation.reported = true;
    if (Status stored = writer.PutEvaluation(evaluation); !stored.ok()) return stored;
    store::Candidate candidate;
    candidate.run = run_;
    candidate.id = record.candidate;
    candidate.status = row.status;
    candidate.what = row.what;
    candidate.content_hash = record.content_sha256;
    candidate.result = payload["candidate"];
    if (Status stored = writer.PutCandidate(candidate); !stored.ok()) return stored;
    store::Event event;
    event.run = run_;
    event.kind = "candidate_changed";
    event.payload = payload;
    return writer.AppendEvent(event);
  });
  if (!committed) return committed.error();
  std::lock_guard lock(mutex_);
  stages_[{record.chip, record.content_sha256, record.stage}] = record;
  return {};
}

Status StoreJournal::Emit(const std::string& kind, const std::string& payload_json) {
  auto payload = ParseJson(payload_json);
  if (!payload) return payload.error();
  store::Event event;
  event.run = run_;
  event.kind = kind;
  event.payload = *std::move(payload);
  auto appended = log_.Append(std::move(event));
  return appended ? Status() : appended.error();
}

std::optional<std::string> StoreJournal::CacheGet(const std::string& key) {
  return cache_ == nullptr ? std::nullopt : cache_->Get(key);
}

void StoreJournal::CachePut(const std::string& key, const std::string& blob) {
  if (cache_ != nullptr) cache_->Put(key, blob);
}

}  // namespace kernelwright::agents
