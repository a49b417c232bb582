// Names and JSON forms of the records; see records.h.
#include "daemon/store/records.h"

#include <array>
#include <charconv>

#include "daemon/base/clock.h"

namespace kernelwright::store {
namespace {

constexpr std::array<std::string_view, 6> kRunNames = {"queued",   "running", "paused",
                                                       "finished", "failed",  "cancelled"};
constexpr std::array<std::string_view, 3> kEvaluationNames = {"pass", "fail", "not_run"};

}  // namespace

std::string_view RunStatusName(RunStatus status) { return kRunNames[static_cast<size_t>(status)]; }

Expected<RunStatus> ParseRunStatus(std::string_view name) {
  for (size_t i = 0; i < kRunNames.size(); ++i) {
    if (kRunNames[i] == name) return static_cast<RunStatus>(i);
  }
  return Fail(ErrorKind::kUsage, "unknown run status `" + std::string(name) + "`", {},
              "Use queued, running, paused, finished, failed or cancelled.");
}

std::string_view EvaluationStatusName(EvaluationStatus status) { return kEvaluationNames[static_cast<size_t>(status)]; }

Expected<EvaluationStatus> ParseEvaluationStatus(std::string_view name) {
  for (size_t i = 0; i < kEvaluationNames.size(); ++i) {
    if (kEvaluationNames[i] == name) return static_cast<EvaluationStatus>(i);
  }
  return Fail(ErrorKind::kUsage, "unknown evaluation status `" + std::string(name) + "`");
}

Json ToJson(const Run& run) {
  return Json{{"id", run.id},
              {"kind", run.kind},
              {"status", RunStatusName(run.status)},
              {"created", FormatTimeUtc(run.created)},
              {"updated", FormatTimeUtc(run.updated)},
              {"request", run.request},
              {"reference", run.reference},
              {"reference_hash", run.reference_hash},
              {"chips", run.chips},
              {"result", run.result},
              {"client", run.client}};
}

Json ToJson(const Candidate& candidate) {
  return Json{{"id", candidate.id},
              {"run", candidate.run},
              {"parents", candidate.parents},
              {"status", candidate.status},
              {"what", candidate.what},
              {"edits", candidate.edits},
              {"content_hash", candidate.content_hash},
              {"result", candidate.result},
              {"created", FormatTimeUtc(candidate.created)},
              {"updated", FormatTimeUtc(candidate.updated)}};
}

Json ToJson(const Evaluation& evaluation) {
  return Json{{"run", evaluation.run},
              {"candidate", evaluation.candidate},
              {"chip", evaluation.chip},
              {"stage", evaluation.stage},
              {"attempt", evaluation.attempt},
              {"status", EvaluationStatusName(evaluation.status)},
              {"gate", evaluation.gate},
              {"reason", evaluation.reason},
              {"result", evaluation.result},
              {"evidence", evaluation.evidence},
              {"duration_ms", evaluation.duration_ms},
              {"reported", evaluation.reported},
              {"created", FormatTimeUtc(evaluation.created)}};
}

Json ToJson(const Approval& approval) {
  return Json{{"run", approval.run},
              {"step", approval.step},
              {"step_hash", approval.step_hash},
              {"decision", approval.decision},
              {"scope", approval.scope},
              {"who", approval.who},
              {"time", FormatTimeUtc(approval.time)}};
}

Json ToJson(const Event& event) {
  return Json{{"seq", event.seq},
              {"run", event.run},
              {"time", FormatTimeUtc(event.time)},
              {"kind", event.kind},
              {"payload", event.payload}};
}

std::string CandidateId(int64_t number) { return "c" + std::to_string(number); }

Expected<int64_t> CandidateNumber(std::string_view id) {
  int64_t number = -1;
  if (id.size() > 1 && id[0] == 'c') {
    const auto result = std::from_chars(id.data() + 1, id.data() + id.size(), number);
    if (result.ec != std::errc() || result.ptr != id.data() + id.size()) number = -1;
  }
  if (number < 0) {
    return Fail(ErrorKind::kUsage, "`" + std::string(id) + "` is not a candidate", {},
                "Candidates are named c0, c1, …; see `kernelwright runs show RUN`.");
  }
  return number;
}

}  // namespace kernelwright::store
