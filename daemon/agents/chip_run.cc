// See chip_run.h.
#include "daemon/agents/chip_run.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "daemon/agents/attempt.h"
#include "daemon/agents/optimize_run.h"
#include "daemon/agents/parallel.h"
#include "daemon/agents/retune_stage.h"
#include "daemon/agents/structure_stage.h"
#include "daemon/base/hash.h"

namespace kernelwright::agents {
namespace {

using SteadyClock = std::chrono::steady_clock;

class ChipRun {
 public:
  ChipRun(RunContext& run, Variant& original, Lifts& lifts, const cost::Chip& chip)
      : run_(run), original_(original), lifts_(lifts), chip_(chip), evaluation_(run, chip, result_) {}

  ChipResult Go() {
    const auto start = SteadyClock::now();
    result_.chip = chip_.name;
    const Status status = Steps();
    result_.compiles = evaluation_.compiles();
    for (const Attempt& attempt : evaluation_.attempts()) {
      if (&attempt == first_) continue;
      result_.compiles_cached += attempt.compile && attempt.compile->cached ? 1 : 0;
      result_.candidates.push_back(attempt.row);
    }
    result_.seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
    if (result_.best) {
      // Something was proven, however the rest ended.
      result_.status = "improved";
      char text[200];
      std::snprintf(text, sizeof text, "%s (estimated): %.3g ms instead of %.3g ms, %.2fx%s",
                    result_.verdict == "faster" ? "faster" : "probably faster", result_.best->estimate.milliseconds,
                    std::get<cost::Estimate>(*result_.original).milliseconds, result_.speedup,
                    status.ok() ? "" : ("; stopped early: " + status.message()).c_str());
      result_.message = text;
    } else if (!status.ok()) {
      result_.status = status.kind() == ErrorKind::kCancelled ? "cancelled" : "failed";
      result_.error = status.kind();
      result_.message = status.ToString();
    }
    run_.Emit("progress", ProgressPayload(chip_.name, "done", result_.candidates.size(), result_.candidates.size(),
                                          result_.compiles, 0));
    return std::move(result_);
  }

 private:
  Status NoImprovement(std::string message) {
    result_.status = "no_improvement";
    result_.message = std::move(message);
    return {};
  }

  void EmitBaseline(const CompileStage& compiled, const std::string& note) {
    if (compiled.cost) run_.Emit("baseline_ready", BaselineReadyPayload(chip_.name, *compiled.cost, note));
  }

  // Fills the result; an error ends the chip's work, what is in the result by then stays.
  Status Steps() {
    auto added = evaluation_.Add(original_, run_.frozen.original.files, "original", 0, original_.Calls());
    if (!added) return added.error();
    first_ = *added;
    if (Status compiled = evaluation_.Compile(*first_); !compiled.ok()) return compiled;
    const CompileStage& compiled = *first_->compile;
    result_.original = compiled.cost;
    result_.original_gates = compiled.gates;
    const FrozenReference& frozen = run_.frozen;
    if (!compiled.passed && compiled.gate != "G54") {
      result_.code_error = compiled.error;
      const std::string what =
          compiled.gate == "G23" ? "the original does not compile" : "the original fails gate " + compiled.gate;
      return Status(ErrorKind::kUserCode, what + ": " + compiled.reason,
                    frozen.original.file + "::" + frozen.original.function, "Fix the error first.");
    }
    const bool has_kernel = !first_->calls.empty();
    result_.refusals = lifts_.refusals;
    for (const auto& variant : lifts_.variants) result_.recognised.push_back(variant->steps.back());
    if (!has_kernel && lifts_.variants.empty()) {
      EmitBaseline(compiled, "no pallas_call");
      return NoImprovement(WhyNothing());
    }
    const uint32_t most = run_.request.max_compiles > 0 ? run_.request.max_compiles : kDefaultMaxCompiles;
    if (most == 1) {
      // No candidate can follow, so that nothing needs a checked original.
      EmitBaseline(compiled, "estimate only");
      return NoImprovement("only the original was compiled: the budget is one compile");
    }
    std::string no_check;
    if (Status sound = evaluation_.CheckOriginal(*first_, &no_check); !sound.ok()) return sound;
    EmitBaseline(compiled, no_check);
    const cost::Estimate* before = compiled.estimate();
    if (before == nullptr) {
      return NoImprovement("no estimate of the original: " + std::get<cost::Refusal>(*compiled.cost).reason +
                           "; without one no candidate can be called better");
    }

    StructureStage stage(run_, evaluation_, chip_, result_);
    if (Status structure = Structure(stage, *before, no_check, most); !structure.ok()) return structure;
    if (stage.Best() == nullptr) {
      evaluation_.Conclude(*before, no_check);
      return {};
    }
    const StructureStage::Node base = *stage.Best();
    Status found = Discover(run_, *base.variant, chip_.name, [](size_t, size_t) {});
    if (!found.ok()) return found;
    const auto used = static_cast<uint32_t>(evaluation_.compiles());
    const size_t tried = evaluation_.attempts().size();
    if (Status tuned = Retune(run_, evaluation_, *base.variant, chip_, *base.attempt->compile->cost, *before, no_check,
                              most > used ? most - used : 0, result_);
        !tuned.ok()) {
      return tuned;
    }
    if (result_.best) return {};
    if (tried == 1 && evaluation_.attempts().size() == tried) {
      return NoImprovement(base.variant->discovery->parameters.empty()
                               ? "nothing in the source sets block shapes that can be tuned"
                               : "no other legal values on " + chip_.name);
    }
    evaluation_.Conclude(*before, no_check);
    return {};
  }

  std::string WhyNothing() const {
    const std::string& function = run_.frozen.original.function;
    if (run_.request.kind == "tune") {
      return "no pallas_call is reached from " + function + ": there is nothing to retune";
    }
    if (lifts_.refusals.empty()) return "no pallas_call is reached from " + function + ", and no kernel was proposed";
    const kernels::RuleRefusal& refusal = lifts_.refusals.front();
    return "no kernel can be made from " + function + ": " + refusal.reason +
           (refusal.place.line > 0 ? " (line " + std::to_string(refusal.place.line) + ")" : "");
  }

  // Changes of structure; the best of them is checked, so that a wrong one is not tuned further.
  Status Structure(StructureStage& stage, const cost::Estimate& before, const std::string& no_check, uint32_t most) {
    if (first_->calls.empty()) {
      if (Status lifted = stage.Lift(lifts_); !lifted.ok()) return lifted;
    } else {
      const size_t share = run_.request.kind == "tune" ? 0 : (most - 1) / 2;
      if (Status rewritten = stage.Rewrite(original_, *first_, share); !rewritten.ok()) return rewritten;
    }
    if (evaluation_.attempts().size() == 1) return {};
    return evaluation_.CheckBest(before, no_check);
  }

  RunContext& run_;
  Variant& original_;
  Lifts& lifts_;
  const cost::Chip& chip_;
  ChipResult result_;
  ChipEvaluation evaluation_;
  Attempt* first_ = nullptr;
};

}  // namespace

ChipResult RunChip(RunContext& run, Variant& original, Lifts& lifts, const cost::Chip& chip) {
  return ChipRun(run, original, lifts, chip).Go();
}

}  // namespace kernelwright::agents
