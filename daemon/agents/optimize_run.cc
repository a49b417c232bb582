// See optimize_run.h. The order inside one chip: the original's compile and soundness, the plan, candidates in the
// order that CandidateSearch asks for, and a check of the best so far after each round, so that a run that is cancelled
// or out of budget has a proven result as early as possible.
#include "daemon/agents/optimize_run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "daemon/agents/candidate_search.h"
#include "daemon/agents/check_shapes.h"
#include "daemon/agents/discover.h"
#include "daemon/agents/evaluator.h"
#include "daemon/agents/gate_list.h"
#include "daemon/agents/original.h"
#include "daemon/agents/parallel.h"
#include "daemon/agents/program_gate.h"
#include "daemon/agents/retune_space.h"
#include "daemon/agents/run_events.h"
#include "daemon/base/hash.h"
#include "daemon/cost/kernel_work.h"
#include "daemon/kernels/diff.h"

namespace kernelwright::agents {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kSeeds = 2;             // interpreter schedules and input draws
constexpr int kMaxFailedChecks = 4;      // candidates that may fail their check before the chip's search gives up
constexpr double kRooflineSlack = 1.02;  // at this distance from the floor nothing is worth another compile
constexpr double kResolution = 0.005;    // estimates closer than this share are equal
constexpr double kWorthACheck = 1.01;    // by how much a candidate must beat a proven one to be checked too
constexpr double kTieRatio = 1.02;       // an estimated ratio below it is a tie: the original stays
constexpr auto kDefaultTimeout = std::chrono::seconds(120);  // of one trace or compile
constexpr int kCheckTimeoutFactor = 4;                       // a check runs several interpreted programs

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

std::string RelativePath(const std::string& file, const std::string& folder) {
  const std::filesystem::path relative = std::filesystem::path(file).lexically_relative(folder);
  if (!folder.empty() && !relative.empty() && *relative.begin() != "..") return relative.generic_string();
  return std::filesystem::path(file).relative_path().generic_string();
}

class Run {
 public:
  Run(const OptimizeInputs& inputs, ToolchainProvider& toolchains, Journal& journal, std::stop_token stop)
      : inputs_(inputs), request_(inputs.request), toolchains_(toolchains), journal_(journal), stop_(std::move(stop)) {
    const auto timeout = request_.timeout_seconds > 0
                             ? std::chrono::milliseconds(static_cast<int64_t>(request_.timeout_seconds * 1000))
                             : std::chrono::milliseconds(kDefaultTimeout);
    compile_limits_.deadline = timeout;
    check_limits_.deadline = timeout * kCheckTimeoutFactor;
  }

  RunResult Go() {
    result_.command = request_.kind;
    result_.run = journal_.run_id();
    result_.file = request_.file;
    result_.function = request_.function;
    if (auto failure = Prepare()) {
      for (const cost::Chip* chip : inputs_.chips) result_.results.push_back(Failed(*chip, *failure));
      return std::move(result_);
    }
    for (const cost::Chip* chip : inputs_.chips) {
      result_.results.push_back(OptimizeChip(*chip));
    }
    return std::move(result_);
  }

 private:
  // One candidate's way through the stages.
  struct Entry {
    CandidateSource source;
    double ranked_ms = 0;
    std::vector<PallasCall> calls;
    std::optional<CompileStage> compile;
    std::optional<CheckStage> check;
    CandidateRow row;
  };

  static ChipResult Failed(const cost::Chip& chip, const OriginalFailure& failure) {
    ChipResult result;
    result.chip = chip.name;
    result.status = failure.status.kind() == ErrorKind::kCancelled ? "cancelled" : "failed";
    result.error = failure.status.kind();
    result.message = failure.status.ToString();
    result.code_error = failure.code;
    return result;
  }

  void Emit(const std::string& kind, const nlohmann::json& payload) {
    // A store that cannot take an event (full disk) will refuse the next evaluation too, which ends the run.
    (void)journal_.Emit(kind, PayloadText(payload));
  }

  // Everything before the first candidate: file, interpreter, trace, parameters, frozen record.
  std::optional<OriginalFailure> Prepare() {
    std::optional<FrozenReference> stored;
    auto loaded = journal_.LoadFrozen();
    if (!loaded) return OriginalFailure{loaded.error(), std::nullopt};
    if (*loaded) {
      auto frozen = FrozenFromJson(**loaded);
      if (!frozen) return OriginalFailure{frozen.error(), std::nullopt};
      stored = *std::move(frozen);
    }
    OrFailure<agents::Entry> entry;
    if (!stored) {
      entry = ReadEntry(request_);
      if (!entry) return entry.error();
      result_.file = entry->file;
      result_.function = entry->function;
    }
    ToolchainOptions options;
    options.python = request_.python;
    options.file = stored ? stored->original.file : entry->file;
    if (!request_.reference_file.empty()) {
      options.readable_folders.push_back(std::filesystem::path(request_.reference_file).parent_path().string());
    }
    options.working_directory = request_.working_directory;
    options.environment = request_.environment;
    options.sandbox = request_.sandbox;
    auto toolchain = toolchains_.Get(options, stop_);
    if (!toolchain) return OriginalFailure{toolchain.error(), std::nullopt};
    toolchain_ = *std::move(toolchain);
    result_.python = toolchain_->identity().python;
    result_.sandbox = toolchain_->identity().sandbox;

    const std::string& chip = inputs_.chips.front()->name;
    if (stored) {
      auto traced = TraceFrozen(*stored, chip, *toolchain_, compile_limits_, stop_);
      if (!traced) return traced.error();
      frozen_ = *std::move(stored);
      traced_ = *std::move(traced);
    } else {
      auto original = TraceOriginal(request_, *entry, chip, *toolchain_, compile_limits_, stop_);
      if (!original) return original.error();
      frozen_ = std::move(original->frozen);
      traced_ = std::move(original->traced);
    }
    if (!traced_.program) {
      return OriginalFailure{
          Status(ErrorKind::kInternal, "the worker returned no program graph", frozen_.original.file), std::nullopt};
    }
    work_ = cost::WorkOfProgram(traced_.program->main);

    auto discovery = DiscoverParameters(
        frozen_.original, frozen_.inputs, traced_, chip, *toolchain_, compile_limits_, inputs_.parallel,
        [&](size_t done, size_t total) { Emit("progress", ProgressPayload("", "planning", done, total, 0, -1)); },
        stop_);
    if (!discovery) return OriginalFailure{discovery.error(), std::nullopt};
    discovery_ = *std::move(discovery);
    for (const std::string& note : discovery_.notes) Emit("log_line", LogLinePayload("info", note));

    if (!loaded->has_value()) {
      MakeLadder();
      for (size_t i = 0; i < kSeeds; ++i) frozen_.seeds.push_back(inputs_.random_seed());
      if (Status saved = journal_.SaveFrozen(FrozenToJson(frozen_), FrozenHash(frozen_)); !saved.ok()) {
        return OriginalFailure{saved, std::nullopt};
      }
    }
    result_.file = frozen_.original.file;
    result_.function = frozen_.original.function;
    result_.reference_file = frozen_.reference.file;
    result_.reference_function = frozen_.reference.function;
    result_.reference_sha256 = FrozenHash(frozen_);
    result_.inputs = kernels::FormatInputs(frozen_.inputs);
    result_.inputs_origin = frozen_.inputs_origin;
    std::vector<std::string> chips;
    chips.reserve(inputs_.chips.size());
    for (const cost::Chip* each : inputs_.chips) chips.push_back(each->name);
    Emit("run_started", {{"kind", request_.kind},
                         {"file", result_.file},
                         {"function", result_.function},
                         {"chips", chips},
                         {"reference_sha256", result_.reference_sha256}});
    return std::nullopt;
  }

  // The chip's candidates; ranked once, although the ladder and the search both need them.
  Expected<const RetuneSpace*> SpaceOf(const cost::Chip& chip) {
    auto found = spaces_.find(chip.name);
    if (found == spaces_.end()) {
      auto space = BuildRetuneSpace(discovery_, chip);
      if (!space) return Fail(space.error());
      found = spaces_.emplace(chip.name, *std::move(space)).first;
    }
    return &found->second;
  }

  // Reduced shapes for the original and all candidates of all chips.
  void MakeLadder() {
    Program program = *traced_.program;
    AddToLadder(ProposeCheckShapes(frozen_.inputs, program, discovery_.base, RoundsUp()), frozen_.ladder);
    for (const cost::Chip* chip : inputs_.chips) {
      auto space = SpaceOf(*chip);
      if (!space) continue;  // said when the chip's turn comes
      for (const RetuneCandidate& candidate : (*space)->candidates) {
        AddToLadder(ProposeCheckShapes(frozen_.inputs, program, candidate.calls, RoundsUp()), frozen_.ladder);
      }
    }
  }

  // Whether the code rounds its grid up, so that partial blocks must be right.
  bool RoundsUp() const {
    return !discovery_.parameters.empty() &&
           std::all_of(discovery_.parameters.begin(), discovery_.parameters.end(), [](const kernels::Parameter& each) {
             return each.inside_kernel || each.tails == kernels::TailSupport::kRoundsUp;
           });
  }

  Expected<ShapeChoice> ShapesFor(const Entry& entry, const cost::Chip& chip) {
    Program program = *traced_.program;
    return ChooseShapes(frozen_, ProposeCheckShapes(frozen_.inputs, program, entry.calls, RoundsUp()),
                        entry.source.files, entry.calls, chip.name, *toolchain_, compile_limits_, stop_);
  }

  ChipResult OptimizeChip(const cost::Chip& chip) {
    const auto start = SteadyClock::now();
    ChipResult result;
    result.chip = chip.name;
    Evaluator evaluator(*toolchain_, journal_, frozen_, work_, {compile_limits_, check_limits_, inputs_.build});
    std::vector<Entry> entries;
    const Status status = Steps(chip, evaluator, entries, result);
    result.compiles = evaluator.compiles();
    for (Entry& entry : entries) {
      result.compiles_cached += entry.compile && entry.compile->cached ? 1 : 0;
      if (!entry.row.id.empty()) result.candidates.push_back(entry.row);
    }
    result.seconds = SecondsSince(start);
    if (result.best) {
      // Something was proven, however the rest ended.
      result.status = "improved";
      char text[200];
      std::snprintf(text, sizeof text, "%s (estimated): %.3g ms instead of %.3g ms, %.2fx%s",
                    result.verdict == "faster" ? "faster" : "probably faster", result.best->estimate.milliseconds,
                    std::get<cost::Estimate>(*result.original).milliseconds, result.speedup,
                    status.ok() ? "" : ("; stopped early: " + status.message()).c_str());
      result.message = text;
    } else if (!status.ok()) {
      result.status = status.kind() == ErrorKind::kCancelled ? "cancelled" : "failed";
      result.error = status.kind();
      result.message = status.ToString();
    }
    Emit("progress",
         ProgressPayload(chip.name, "done", result.candidates.size(), result.candidates.size(), result.compiles, 0));
    return result;
  }

  // Fills `result`; an error ends the chip's work, what is in `result` by then stays.
  Status Steps(const cost::Chip& chip, Evaluator& evaluator, std::vector<Entry>& entries, ChipResult& result) {
    Entry original;
    original.source.files = frozen_.original.files;
    original.source.what = "original";
    original.calls = discovery_.base;
    if (Status named = Name(original); !named.ok()) return named;
    auto compiled = evaluator.Compile(original.source, chip, 0, stop_);
    if (!compiled) return compiled.error();
    result.original = compiled->cost;
    result.original_gates = compiled->gates;
    if (!compiled->passed && compiled->gate != "G54") {
      result.code_error = compiled->error;
      const std::string what =
          compiled->gate == "G23" ? "the original does not compile" : "the original fails gate " + compiled->gate;
      return Status(ErrorKind::kUserCode, what + ": " + compiled->reason,
                    frozen_.original.file + "::" + frozen_.original.function, "Fix the error first.");
    }
    const auto* before = compiled->estimate();
    if (discovery_.base.empty()) {
      if (compiled->cost) Emit("baseline_ready", BaselineReadyPayload(chip.name, *compiled->cost, "no pallas_call"));
      result.status = "no_improvement";
      result.message = "no pallas_call is reached from " + frozen_.original.function + ": there is nothing to retune";
      return {};
    }

    if (request_.max_compiles == 1) {
      // No candidate can follow, so that nothing needs a checked original.
      if (compiled->cost) Emit("baseline_ready", BaselineReadyPayload(chip.name, *compiled->cost, "estimate only"));
      result.status = "no_improvement";
      result.message = "only the original was compiled: the budget is one compile";
      return {};
    }
    auto shapes = ShapesFor(original, chip);
    if (!shapes) return shapes.error();
    std::string note;
    if (shapes->shapes.empty()) {
      note = "no reduced check is possible: " + shapes->why_none;
    } else {
      auto sound = evaluator.Check(original.source, chip, shapes->shapes, true, RowOf(original, *compiled), stop_);
      if (!sound) return sound.error();
      result.original_gates.insert(result.original_gates.end(), sound->gates.begin(), sound->gates.end());
      if (!sound->passed) {
        return Status(ErrorKind::kUserCode, "the original itself fails gate " + sound->gate + ": " + sound->reason,
                      frozen_.original.file + "::" + frozen_.original.function,
                      "Correct the kernel first: a wrong original is no baseline.");
      }
    }
    if (compiled->cost) Emit("baseline_ready", BaselineReadyPayload(chip.name, *compiled->cost, note));
    if (before == nullptr) {
      result.status = "no_improvement";
      result.message = "no estimate of the original: " + std::get<cost::Refusal>(*compiled->cost).reason +
                       "; without one no candidate can be called better";
      return {};
    }

    auto built = SpaceOf(chip);
    if (!built) return built.error();
    const RetuneSpace& space = **built;
    result.plan = MakeRetunePlan(discovery_, space, chip, *compiled->cost);
    Emit("plan_made", PlanMadePayload(chip.name, result.plan));
    if (space.candidates.empty()) {
      result.status = "no_improvement";
      result.message = discovery_.parameters.empty() ? "nothing in the source sets block shapes that can be tuned"
                                                     : "no other legal values on " + chip.name;
      return {};
    }
    return SearchSpace(chip, evaluator, *before, space, note, entries, result);
  }

  Status SearchSpace(const cost::Chip& chip, Evaluator& evaluator, const cost::Estimate& before,
                     const RetuneSpace& space, const std::string& no_check, std::vector<Entry>& entries,
                     ChipResult& result) {
    std::vector<SearchPoint> points;
    points.reserve(space.candidates.size());
    for (const RetuneCandidate& candidate : space.candidates) points.push_back(candidate.point);
    CandidateSearch::Options options;
    const uint32_t max_compiles = request_.max_compiles > 0 ? request_.max_compiles : kDefaultMaxCompiles;
    options.budget = max_compiles > 1 ? max_compiles - 1 : 0;  // the original took one
    options.target_ms = before.floor_milliseconds * kRooflineSlack;
    CandidateSearch search(points, options);
    entries.resize(space.candidates.size());
    const auto start = SteadyClock::now();
    size_t finished = 0;
    size_t checked_at = 0;
    std::optional<size_t> proven;
    int failed_checks = 0;
    Status failure;

    auto rounds = [&]() -> Status {
      while (!stop_.stop_requested() && !inputs_.budget.expired()) {
        const std::vector<size_t> batch = search.Next(static_cast<size_t>(std::max(1, inputs_.parallel)) * 2);
        if (batch.empty()) break;
        for (size_t i : batch) {
          if (Status made = Make(space.candidates[i], entries[i]); !made.ok()) return made;
        }
        RunParallel(batch.size(), inputs_.parallel, stop_, [&](size_t k) {
          Entry& entry = entries[batch[k]];
          {
            CandidateRow row = entry.row;
            row.status = "compiling";
            Emit("candidate_changed", CandidateChangedPayload(chip.name, row));
          }
          auto compiled = evaluator.Compile(entry.source, chip, entry.ranked_ms, stop_);
          std::lock_guard lock(mutex_);
          if (!compiled) {
            failure = compiled.error();
            return false;
          }
          entry.compile = *std::move(compiled);
          entry.row = RowOf(entry, *entry.compile);
          ++finished;
          const double each = SecondsSince(start) / static_cast<double>(finished);
          Emit("progress",
               ProgressPayload(chip.name, "compiling", finished, finished + search.LikelyLeft(), evaluator.compiles(),
                               static_cast<int64_t>(1000 * each * static_cast<double>(search.LikelyLeft()))));
          return true;
        });
        for (size_t i : batch) {
          const Entry& entry = entries[i];
          const cost::Estimate* estimate = entry.compile && entry.compile->passed ? entry.compile->estimate() : nullptr;
          search.Report(i, estimate ? std::optional<double>(estimate->milliseconds) : std::nullopt);
        }
        if (!failure.ok()) return failure;
        if (finished >= checked_at + options.first) {
          checked_at = finished;
          if (Status checked = CheckBest(chip, evaluator, before, no_check, entries, proven, failed_checks, result);
              !checked.ok()) {
            return checked;
          }
          if (failed_checks >= kMaxFailedChecks) break;
        }
      }
      if (stop_.stop_requested()) return Status(ErrorKind::kCancelled, "cancelled");
      return CheckBest(chip, evaluator, before, no_check, entries, proven, failed_checks, result);
    };
    const Status status = rounds();
    std::erase_if(entries, [](const Entry& entry) { return entry.source.id.empty(); });
    if (!result.best && status.ok()) Conclude(chip, before, entries, no_check, failed_checks, result);
    return status;
  }

  // Checks candidates that beat what is proven, best estimate first, until one passes or too many have failed.
  Status CheckBest(const cost::Chip& chip, Evaluator& evaluator, const cost::Estimate& before,
                   const std::string& no_check, std::vector<Entry>& entries, std::optional<size_t>& proven,
                   int& failed_checks, ChipResult& result) {
    while (failed_checks < kMaxFailedChecks) {
      const std::optional<size_t> next =
          NextToCheck(entries, proven ? entries[*proven].compile->estimate()->milliseconds / kWorthACheck
                                      : before.milliseconds / kTieRatio);
      if (!next) return {};
      Entry& entry = entries[*next];
      if (!no_check.empty()) {
        entry.check = CheckStage{false, "G40", no_check, {}, 0, 0, false, 0};
        entry.row.status = "compiled_only";
        entry.row.gate = "G40";
        entry.row.why = no_check;
        Emit("candidate_changed", CandidateChangedPayload(chip.name, entry.row));
        continue;
      }
      entry.row.status = "checking";
      Emit("candidate_changed", CandidateChangedPayload(chip.name, entry.row));
      auto shapes = ShapesFor(entry, chip);
      if (!shapes) return shapes.error();
      if (shapes->shapes.empty()) {
        entry.check = CheckStage{false, "G40", shapes->why_none, {}, 0, 0, false, 0};
        entry.row.status = "compiled_only";
        entry.row.gate = "G40";
        entry.row.why = shapes->why_none;
        Emit("candidate_changed", CandidateChangedPayload(chip.name, entry.row));
        continue;
      }
      auto checked = evaluator.Check(entry.source, chip, shapes->shapes, false, entry.row, stop_);
      if (!checked) return checked.error();
      entry.check = *std::move(checked);
      entry.row.milliseconds += entry.check->milliseconds;
      if (Promote(chip, before, entry, result)) {
        proven = next;
        return {};
      }
      ++failed_checks;
    }
    return {};
  }

  // The unchecked candidate with the least estimate below `limit_ms`; among those that are as good as it within the
  // model's resolution, the one that the ranking prefers (less VMEM, shorter pipeline ends).
  static std::optional<size_t> NextToCheck(const std::vector<Entry>& entries, double limit_ms) {
    auto milliseconds = [&](size_t i) -> std::optional<double> {
      const Entry& entry = entries[i];
      if (!entry.compile || !entry.compile->passed || entry.check) return std::nullopt;
      const double ms = entry.compile->estimate()->milliseconds;
      return ms < limit_ms ? std::optional(ms) : std::nullopt;
    };
    std::optional<double> least;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (const auto ms = milliseconds(i); ms && (!least || *ms < *least)) least = ms;
    }
    std::optional<size_t> next;
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto ms = milliseconds(i);
      if (!ms || *ms > *least * (1 + kResolution)) continue;
      if (!next || entries[i].ranked_ms < entries[*next].ranked_ms) next = i;
    }
    return next;
  }

  // Makes the entry the best if every gate of its claim holds. What is shown is hashed again and must be what was
  // evaluated (G22).
  bool Promote(const cost::Chip& chip, const cost::Estimate& before, Entry& entry, ChipResult& result) {
    std::vector<GateResult> gates = entry.compile->gates;
    gates.insert(gates.end(), entry.check->gates.begin(), entry.check->gates.end());
    BestCandidate best;
    std::vector<FileText> shown = frozen_.original.files;
    for (FileText& file : shown) {
      const auto changed = std::find_if(entry.source.files.begin(), entry.source.files.end(),
                                        [&](const FileText& other) { return other.path == file.path; });
      if (changed == entry.source.files.end() || changed->text == file.text) continue;
      best.changes.push_back({file.path, Sha256Hex(file.text), changed->text});
      best.diff += kernels::UnifiedDiff(RelativePath(file.path, request_.working_directory), file.text, changed->text);
      file.text = changed->text;
    }
    gates.push_back(CheckIdentity(shown, entry.source.content_sha256));
    const ClaimVerdict verdict = JudgeClaim(Claim::kEstimated, true, gates);
    if (!verdict.holds) {
      entry.row.status = "failed";
      entry.row.gate = verdict.gate;
      entry.row.why = verdict.reason;
      Emit("candidate_changed", CandidateChangedPayload(chip.name, entry.row));
      return false;
    }
    best.id = entry.source.id;
    best.what = entry.source.what;
    best.content_sha256 = entry.source.content_sha256;
    best.estimate = *entry.compile->estimate();
    best.gates = std::move(gates);
    best.candidate_error = entry.check->candidate_error;
    best.reference_error = entry.check->reference_error;
    result.speedup = before.milliseconds / best.estimate.milliseconds;
    result.verdict = VerdictWord(result.speedup);
    result.best = std::move(best);
    entry.row.status = "passed";
    entry.row.gate.clear();
    entry.row.why.clear();
    Emit("candidate_changed", CandidateChangedPayload(chip.name, entry.row));
    Emit("best_changed", BestChangedPayload(chip.name, entry.source.id, result.speedup, result.verdict));
    return true;
  }

  // Nothing was proven better: why.
  static void Conclude(const cost::Chip& chip, const cost::Estimate& before, const std::vector<Entry>& entries,
                       const std::string& no_check, int failed_checks, ChipResult& result) {
    double best = 0;
    size_t estimated = 0;
    for (const Entry& entry : entries) {
      if (!entry.compile || !entry.compile->passed) continue;
      ++estimated;
      const double ms = entry.compile->estimate()->milliseconds;
      if (best == 0 || ms < best) best = ms;
    }
    if (!entries.empty() && estimated == 0) {
      result.status = "failed";
      result.error = ErrorKind::kUserCode;
      result.message = "none of " + std::to_string(entries.size()) + " candidates passed the compile stage on " +
                       chip.name + "; the original stays";
      return;
    }
    result.status = "no_improvement";
    if (best > 0 && before.milliseconds / best >= kTieRatio) {
      result.message = !no_check.empty()   ? "candidates are estimated faster but compiled only: " + no_check
                       : failed_checks > 0 ? "the candidates estimated faster failed their checks"
                                           : "the candidates estimated faster could not be checked";
      result.message += "; the original stays";
      if (failed_checks > 0 && no_check.empty()) {
        result.status = "failed";
        result.error = ErrorKind::kUserCode;
      }
      return;
    }
    result.verdict = "tie";
    result.message = "nothing better was found; the original stays";
  }

  Status Name(Entry& entry) {
    entry.source.content_sha256 = ContentHash(entry.source.files);
    auto id = journal_.CandidateId(entry.source.content_sha256, entry.source.what);
    if (!id) return id.error();
    entry.source.id = *std::move(id);
    return {};
  }

  Status Make(const RetuneCandidate& candidate, Entry& entry) {
    auto files = EditedFiles(frozen_.original, candidate.edits);
    if (!files) return files.error();
    entry.source.files = *std::move(files);
    entry.source.what = candidate.what;
    entry.ranked_ms = candidate.point.ranked_ms;
    entry.calls = candidate.calls;
    if (Status named = Name(entry); !named.ok()) return named;
    entry.row.id = entry.source.id;
    entry.row.what = candidate.what;
    entry.row.ranked_ms = entry.ranked_ms;
    entry.row.content_sha256 = entry.source.content_sha256;
    entry.row.status = "pending";
    return {};
  }

  static CandidateRow RowOf(const Entry& entry, const CompileStage& stage) {
    CandidateRow row = entry.row;
    row.id = entry.source.id;
    row.what = entry.source.what;
    row.status = stage.passed ? "compiled" : "failed";
    row.gate = stage.gate;
    row.why = stage.reason;
    row.estimate_ms = stage.estimate() ? stage.estimate()->milliseconds : 0;
    row.content_sha256 = entry.source.content_sha256;
    row.milliseconds = stage.milliseconds;
    row.compile_cached = stage.cached;
    return row;
  }

  const OptimizeInputs& inputs_;
  const RunRequest& request_;
  ToolchainProvider& toolchains_;
  Journal& journal_;
  const std::stop_token stop_;
  Limits compile_limits_;
  Limits check_limits_;
  std::shared_ptr<Toolchain> toolchain_;
  FrozenReference frozen_;
  TraceReport traced_;
  Discovery discovery_;
  std::map<std::string, RetuneSpace> spaces_;  // by chip
  cost::Work work_;
  RunResult result_;
  std::mutex mutex_;
};

}  // namespace

RunResult RunOptimize(const OptimizeInputs& inputs, ToolchainProvider& toolchains, Journal& journal,
                      std::stop_token stop) {
  return Run(inputs, toolchains, journal, std::move(stop)).Go();
}

}  // namespace kernelwright::agents
