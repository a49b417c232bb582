// See store_history.h. A candidate's row says what it was; its last failed evaluation says why, more fully than the
// row.
#include "daemon/tools/store_history.h"

#include <map>
#include <utility>

namespace kernelwright::tools {
namespace {

class StoreHistory : public RunHistory {
 public:
  StoreHistory(store::Store& store, std::string run) : store_(store), run_(std::move(run)) {}

  Expected<std::vector<HistoryEntry>> Entries() override {
    const Expected<std::vector<store::Candidate>> candidates = store_.ListCandidates(run_);
    if (!candidates) return Fail(candidates.error());
    const Expected<std::vector<store::Evaluation>> evaluations = store_.ListEvaluations(run_);
    if (!evaluations) return Fail(evaluations.error());
    std::map<std::string, const store::Evaluation*> failed;
    std::map<std::string, const store::Evaluation*> last;
    for (const store::Evaluation& evaluation : *evaluations) {
      last[evaluation.candidate] = &evaluation;
      if (evaluation.status == store::EvaluationStatus::kFail) failed[evaluation.candidate] = &evaluation;
    }
    std::vector<HistoryEntry> entries;
    entries.reserve(candidates->size());
    for (const store::Candidate& candidate : *candidates) {
      HistoryEntry entry;
      entry.id = candidate.id;
      entry.what = candidate.what;
      entry.status = candidate.status;
      entry.gate = Text(candidate.result, "gate");
      entry.why = Text(candidate.result, "why");
      // 0 is what rows without an estimate have there.
      if (candidate.result.is_object()) {
        const auto found = candidate.result.find("estimate_ms");
        if (found != candidate.result.end() && found->is_number() && found->get<double>() > 0) {
          entry.estimate_ms = found->get<double>();
          entry.evidence = "estimated";
        }
      }
      if (const auto found = last.find(candidate.id); found != last.end()) {
        entry.chip = found->second->chip;
        if (std::string kind = Text(found->second->evidence, "class"); !kind.empty()) entry.evidence = std::move(kind);
      }
      if (const auto found = failed.find(candidate.id); found != failed.end()) {
        if (entry.gate.empty()) entry.gate = found->second->gate;
        if (entry.why.empty()) entry.why = found->second->reason;
      }
      entries.push_back(std::move(entry));
    }
    return entries;
  }

 private:
  static std::string Text(const Json& object, const char* key) {
    if (!object.is_object()) return {};
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  }

  store::Store& store_;
  const std::string run_;
};

}  // namespace

std::unique_ptr<RunHistory> MakeStoreHistory(store::Store& store, std::string run) {
  return std::make_unique<StoreHistory>(store, std::move(run));
}

}  // namespace kernelwright::tools
