// See optimize_run.h. Everything before the first candidate is here: file, interpreter, trace, what can be tuned,
// lifts, the frozen record. What follows on each chip is in chip_run.h.
#include "daemon/agents/optimize_run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "daemon/agents/check_shapes.h"
#include "daemon/agents/chip_run.h"
#include "daemon/agents/lift_stage.h"
#include "daemon/agents/original.h"
#include "daemon/cost/kernel_work.h"

namespace kernelwright::agents {
namespace {

constexpr size_t kSeeds = 2;                                 // interpreter schedules and input draws
constexpr auto kDefaultTimeout = std::chrono::seconds(120);  // of one trace or compile
constexpr int kCheckTimeoutFactor = 4;                       // a check runs several interpreted programs

class Run {
 public:
  Run(const OptimizeInputs& inputs, ToolchainProvider& toolchains, Journal& journal, std::stop_token stop)
      : inputs_(inputs), request_(inputs.request), toolchains_(toolchains), run_{inputs.request,
                                                                                 journal,
                                                                                 std::move(stop),
                                                                                 inputs.build,
                                                                                 inputs.parallel,
                                                                                 inputs.budget,
                                                                                 {},
                                                                                 {},
                                                                                 nullptr,
                                                                                 {},
                                                                                 {}} {
    const auto timeout = request_.timeout_seconds > 0
                             ? std::chrono::milliseconds(static_cast<int64_t>(request_.timeout_seconds * 1000))
                             : std::chrono::milliseconds(kDefaultTimeout);
    run_.compile_limits.deadline = timeout;
    run_.check_limits.deadline = timeout * kCheckTimeoutFactor;
  }

  RunResult Go() {
    result_.command = request_.kind;
    result_.run = run_.journal.run_id();
    result_.file = request_.file;
    result_.function = request_.function;
    if (auto failure = Prepare()) {
      for (const cost::Chip* chip : inputs_.chips) result_.results.push_back(Failed(*chip, *failure));
      return std::move(result_);
    }
    for (const cost::Chip* chip : inputs_.chips) result_.results.push_back(RunChip(run_, original_, lifts_, *chip));
    return std::move(result_);
  }

 private:
  static ChipResult Failed(const cost::Chip& chip, const OriginalFailure& failure) {
    ChipResult result;
    result.chip = chip.name;
    result.status = failure.status.kind() == ErrorKind::kCancelled ? "cancelled" : "failed";
    result.error = failure.status.kind();
    result.message = failure.status.ToString();
    result.code_error = failure.code;
    return result;
  }

  std::optional<OriginalFailure> OpenToolchain(const std::string& file) {
    ToolchainOptions options;
    options.python = request_.python;
    options.file = file;
    if (!request_.reference_file.empty()) {
      options.readable_folders.push_back(std::filesystem::path(request_.reference_file).parent_path().string());
    }
    options.working_directory = request_.working_directory;
    options.environment = request_.environment;
    options.sandbox = request_.sandbox;
    auto toolchain = toolchains_.Get(options, run_.stop);
    if (!toolchain) return OriginalFailure{toolchain.error(), std::nullopt};
    run_.toolchain = *std::move(toolchain);
    result_.python = run_.toolchain->identity().python;
    result_.sandbox = run_.toolchain->identity().sandbox;
    return std::nullopt;
  }

  // The frozen record, its original traced; read from the journal when the run is resumed. Without ladder and seeds
  // when it is new.
  std::optional<OriginalFailure> LoadOrTrace(bool* is_new) {
    std::optional<FrozenReference> stored;
    auto loaded = run_.journal.LoadFrozen();
    if (!loaded) return OriginalFailure{loaded.error(), std::nullopt};
    if (*loaded) {
      auto frozen = FrozenFromJson(**loaded);
      if (!frozen) return OriginalFailure{frozen.error(), std::nullopt};
      stored = *std::move(frozen);
    }
    *is_new = !stored;
    OrFailure<Entry> entry;
    if (!stored) {
      entry = ReadEntry(request_, inputs_.captures);
      if (!entry) return entry.error();
      result_.file = entry->file;
      result_.function = entry->function;
    }
    if (auto failure = OpenToolchain(stored ? stored->original.file : entry->file)) return failure;
    const std::string& chip = inputs_.chips.front()->name;
    if (stored) {
      auto traced = TraceFrozen(*stored, chip, *run_.toolchain, run_.compile_limits, run_.stop);
      if (!traced) return traced.error();
      run_.frozen = *std::move(stored);
      original_.traced = *std::move(traced);
    } else {
      auto original = TraceOriginal(request_, *entry, chip, *run_.toolchain, run_.compile_limits, run_.stop);
      if (!original) return original.error();
      run_.frozen = std::move(original->frozen);
      original_.traced = std::move(original->traced);
    }
    original_.source = run_.frozen.original;
    if (!original_.traced.program) {
      return OriginalFailure{
          Status(ErrorKind::kInternal, "the worker returned no program graph", run_.frozen.original.file),
          std::nullopt};
    }
    run_.work = cost::WorkOfProgram(original_.traced.program->main);
    return std::nullopt;
  }

  // What can be tuned, and the lifts of a function without kernels.
  Status Explore() {
    const cost::Chip& chip = *inputs_.chips.front();
    if (original_.Calls().empty()) {
      original_.discovery.emplace();  // no number in it sets a block
    }
    Status found = Discover(run_, original_, chip.name, [&](size_t done, size_t total) {
      run_.Emit("progress", ProgressPayload("", "planning", done, total, 0, -1));
    });
    if (!found.ok()) return found;
    for (const std::string& note : original_.discovery->notes) run_.Emit("log_line", LogLinePayload("info", note));
    if (!original_.discovery->base.empty() || request_.kind == "tune") return {};
    auto lifts = MakeLifts(run_, original_, chip);
    if (!lifts) return lifts.error();
    lifts_ = *std::move(lifts);
    for (const kernels::RuleRefusal& refusal : lifts_.refusals) {
      run_.Emit("log_line", LogLinePayload("info", refusal.rule + " does not apply: " + refusal.reason));
    }
    return {};
  }

  // Reduced shapes for the original, all lifts and all their candidates on all chips.
  void MakeLadder(Variant& variant) {
    AddToLadder(ShapesOf(run_, variant, variant.Calls()), run_.frozen.ladder);
    for (const cost::Chip* chip : inputs_.chips) {
      auto space = SpaceOf(variant, *chip);
      if (!space) continue;  // said when the chip's turn comes
      for (const RetuneCandidate& candidate : (*space)->candidates) {
        AddToLadder(ShapesOf(run_, variant, candidate.calls), run_.frozen.ladder);
      }
    }
  }

  std::optional<OriginalFailure> Prepare() {
    bool is_new = false;
    if (auto failure = LoadOrTrace(&is_new)) return failure;
    if (Status explored = Explore(); !explored.ok()) return OriginalFailure{explored, std::nullopt};
    if (is_new) {
      for (const auto& lift : lifts_.variants) MakeLadder(*lift);
      if (lifts_.variants.empty()) MakeLadder(original_);
      for (size_t i = 0; i < kSeeds; ++i) run_.frozen.seeds.push_back(inputs_.random_seed());
      const Status saved = run_.journal.SaveFrozen(FrozenToJson(run_.frozen), FrozenHash(run_.frozen));
      if (!saved.ok()) return OriginalFailure{saved, std::nullopt};
    }
    const FrozenReference& frozen = run_.frozen;
    result_.file = frozen.original.file;
    result_.function = frozen.original.function;
    result_.reference_file = frozen.reference.file;
    result_.reference_function = frozen.reference.function;
    result_.reference_sha256 = FrozenHash(frozen);
    result_.inputs = kernels::FormatInputs(frozen.inputs);
    result_.inputs_origin = frozen.inputs_origin;
    std::vector<std::string> chips;
    chips.reserve(inputs_.chips.size());
    for (const cost::Chip* each : inputs_.chips) chips.push_back(each->name);
    run_.Emit("run_started", {{"kind", request_.kind},
                              {"file", result_.file},
                              {"function", result_.function},
                              {"chips", chips},
                              {"reference_sha256", result_.reference_sha256}});
    return std::nullopt;
  }

  const OptimizeInputs& inputs_;
  const RunRequest& request_;
  ToolchainProvider& toolchains_;
  RunContext run_;
  Variant original_;
  Lifts lifts_;
  RunResult result_;
};

}  // namespace

RunResult RunOptimize(const OptimizeInputs& inputs, ToolchainProvider& toolchains, Journal& journal,
                      std::stop_token stop) {
  return Run(inputs, toolchains, journal, std::move(stop)).Go();
}

}  // namespace kernelwright::agents
