// From dumps to a time: find the top-level program, decode every unit it reaches, replay, then judge the result by the
// floor of the algorithm and by a second, simpler formula over the same dumps.
#include "daemon/cost/program_estimate.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <utility>

#include "daemon/compiler/allocations.h"
#include "daemon/compiler/bundles.h"
#include "daemon/compiler/dump_name.h"
#include "daemon/compiler/hlo.h"
#include "daemon/cost/attribution.h"
#include "daemon/cost/chips.h"
#include "daemon/cost/detailed_cost.h"
#include "daemon/cost/known_operands.h"
#include "daemon/cost/replay.h"

namespace kernelwright::cost {
namespace {

constexpr double kCrossCheckTolerance = 0.25;
// The formula knows no exposed first copy: differences of a few latencies say nothing about a short program.
constexpr double kCrossCheckSlackMs = 0.01;
// Copies within the chip: VMEM feeds the MXU at about 22 times the HBM bandwidth, but one copy engine moves less; the
// factor 4 and the third of a latency were chosen so that local copies never dominate, and no measured program is
// sensitive to them.
constexpr double kLocalBandwidthFactor = 4;
constexpr double kLocalLatencyFactor = 0.3;

double ValueOr(const std::optional<Figure>& figure, double otherwise) { return figure ? figure->value : otherwise; }

ReplayTiming TimingOf(const Chip& chip) {
  ReplayTiming timing;
  timing.bytes_per_cycle = chip.bytes_per_cycle() * chip.bandwidth_fraction.value;
  timing.dma_latency_cycles = chip.dma_latency_us.value * chip.clock_ghz.value * 1e3;
  timing.local_bytes_per_cycle = timing.bytes_per_cycle * kLocalBandwidthFactor;
  timing.local_latency_cycles = timing.dma_latency_cycles * kLocalLatencyFactor;
  timing.cycles_per_product = ValueOr(chip.mxu_cycles_per_vmatmul, 0);
  if (chip.xlu_cycles_per_transpose) {
    timing.block_cycles_per_product = timing.cycles_per_product;
    timing.cycles_per_transpose = chip.xlu_cycles_per_transpose->value;
    timing.cycles_per_lane_move = ValueOr(chip.xlu_cycles_per_lane_move, 0);
    timing.cycles_per_empty_bundle = ValueOr(chip.cycles_per_empty_bundle, 1);
    timing.cycles_per_strided_load = ValueOr(chip.cycles_per_strided_load, 0);
  }
  timing.kernel_overhead_cycles = ValueOr(chip.kernel_overhead_us, 0) * chip.clock_ghz.value * 1e3;
  timing.program_overhead_cycles = ValueOr(chip.program_overhead_us, 0) * chip.clock_ghz.value * 1e3;
  return timing;
}

class Estimator {
 public:
  Estimator(Dumps dumps, const Chip& chip, const Work& work, const std::map<std::string, std::string>& versions,
            const std::vector<KnownOperand>& known)
      : dumps_(std::move(dumps)), chip_(chip), work_(work), known_(known) {
    evidence_.evidence_class = EvidenceClass::kEstimated;
    evidence_.chip = chip.name;
    evidence_.versions = versions;
    evidence_.method = "replay";
  }

  // Reads the dumps; nothing is replayed yet.
  std::optional<Refusal> Prepare() {
    if (auto refusal = Collect()) return refusal;
    return DecodeReachable();
  }

  // The time with other figures; everything stays as it is, so that it can be asked again.
  std::variant<double, Refusal> Retime(const Chip& chip) const {
    ScalarMemory memory = memory_;
    const ProgramContents contents(hlo_, known_);
    ReplayOptions options;
    options.contents = &contents;
    ReplayResult result = Replay(programs_, callees_, 0, &memory, TimingOf(chip), options);
    if (result.refusal) return std::move(*result.refusal);
    if (auto refusal = NothingRan(result)) return std::move(*refusal);
    return static_cast<double>(result.ticks) / kTicksPerCycle / chip.cycles_per_ms();
  }

  CostResult Run() {
    if (auto refusal = Prepare()) return Refused(std::move(*refusal));
    timing_ = TimingOf(chip_);
    const ReplayTiming& timing = timing_;
    ReplayOptions options;
    options.record_rounds = record_rounds_;
    const ProgramContents contents(hlo_, known_);
    options.contents = &contents;
    replay_ = Replay(programs_, callees_, 0, &memory_, timing, options);
    if (replay_.refusal) return Refused(std::move(*replay_.refusal));
    if (auto refusal = NothingRan(replay_)) return Refused(std::move(*refusal));
    replayed_ = true;
    return Assemble(replay_, timing);
  }

  // As Run, with everything that it was made of; the estimator is used up by it.
  DetailedCost RunInDetail(size_t record_rounds) {
    record_rounds_ = record_rounds;
    DetailedCost detail;
    detail.cost = Run();
    detail.replayed = replayed_;
    detail.timing = timing_;
    detail.units.reserve(programs_.size());
    for (size_t i = 0; i < programs_.size(); ++i) {
      UnitDetail unit;
      unit.name = programs_[i].name;
      unit.source = std::move(sources_[i]);
      unit.program = std::move(programs_[i]);
      if (replayed_) {
        unit.trace = std::move(replay_.programs[i]);
        unit.rounds = std::move(replay_.rounds[i]);
      }
      if (const auto it = allocations_.find(unit.name); it != allocations_.end()) {
        unit.allocations = compiler::ParseAllocations(it->second->text);
      }
      if (const compiler::HloInstruction* instruction = hlo_.Find(unit.name)) {
        unit.opcode = instruction->opcode;
        unit.file = instruction->file;
        unit.line = instruction->line;
      }
      detail.units.push_back(std::move(unit));
    }
    return detail;
  }

 private:
  CostResult Refused(Refusal refusal) {
    refusal.evidence = evidence_;
    return refusal;
  }

  static Refusal Because(std::string reason) {
    Refusal refusal;
    refusal.reason = std::move(reason);
    return refusal;
  }

  // Dumps with kernels of which none ran: seen on grouped products of XLA's, whose top-level program names no kernel.
  std::optional<Refusal> NothingRan(const ReplayResult& replay) const {
    for (size_t i = 1; i < programs_.size(); ++i) {
      if (!programs_[i].is_runtime && replay.programs[i].calls > 0) return std::nullopt;
    }
    const bool has_kernels = std::any_of(bundles_.begin(), bundles_.end(), [](const auto& unit) {
      return unit.first != "TLP" && !unit.first.starts_with("<late-");
    });
    if (!has_kernels) return std::nullopt;
    return Because("none of the program's kernels ran in the replay: the program around them was not understood");
  }

  // Sorts the files by unit.
  std::optional<Refusal> Collect() {
    for (Dump& dump : dumps_) {
      const auto name = compiler::ParseDumpName(dump.name);
      if (!name) continue;
      if (name->label == compiler::kFinalBundles) {
        if (!bundles_.emplace(name->unit, &dump).second && name->unit == "TLP") {
          return Because("the dumps are of more than one compiled program");
        }
      } else if (name->label == compiler::kAllocations) {
        allocations_.emplace(name->unit, &dump);
      } else if (name->label == compiler::kHlo) {
        auto hlo = compiler::ParseHlo(dump.text);
        if (!hlo) return Because("the program around the kernels cannot be read: " + hlo.error().ToString());
        hlo_ = std::move(*hlo);
      }
    }
    if (!bundles_.contains("TLP")) {
      return Because("the schedule of the top-level program (TLP final_bundles) is missing from the dumps");
    }
    return std::nullopt;
  }

  // Index of the program that `callee` names, decoding it on the way; -1 when its dump is missing.
  Expected<int> ProgramFor(const std::string& callee) {
    std::string unit = callee;
    if (!bundles_.contains(unit)) unit = AliasOf(callee);
    if (unit.empty()) return -1;
    if (const auto it = index_.find(unit); it != index_.end()) return it->second;
    auto parsed = compiler::ParseBundles(std::move(bundles_.at(unit)->text));
    if (!parsed) {
      const Status& status = parsed.error();
      return Fail(status.kind(), status.message(), unit + ": " + status.where(), status.remedy());
    }
    if (!parsed->complete()) {
      return Fail(ErrorKind::kEnvironment, "the schedule ends before its last bundle: the dump is cut off", unit,
                  "Compile again; if it stays, this libtpu version writes another format");
    }
    const int index = static_cast<int>(programs_.size());
    sources_.push_back(std::make_unique<compiler::BundleProgram>(std::move(*parsed)));
    programs_.push_back(DecodeScalarProgram(*sources_.back(), unit, index, &memory_,
                                            {chip_.branch_delay_slots, chip_.shortens_branch_slots}));
    callees_.emplace_back();
    index_.emplace(unit, index);
    SeedFixedMemory(unit, index);
    return index;
  }

  // Scalar memory that the run-time system fills with what can be told: times are those of core 0, and a program's
  // arguments were not brought on chip by the program before it.
  void SeedFixedMemory(const std::string& unit, int index) {
    const auto it = allocations_.find(unit);
    if (it == allocations_.end()) return;
    for (const compiler::Allocation& allocation : compiler::ParseAllocations(it->second->text)) {
      if (allocation.space == "smem" &&
          (allocation.tag.ends_with("- core index") || allocation.tag.ends_with("- spec success addr"))) {
        memory_.Write(memory_.CellAt(memory_.AllocationBase(index, allocation.name)), {0, Known::kValue});
      }
    }
  }

  // Instructions that do the same share one dump, under the name of one of them.
  std::string AliasOf(const std::string& callee) const {
    const std::string signature = hlo_.Signature(callee);
    if (signature.empty()) return {};
    for (const auto& [unit, dump] : bundles_) {
      if (hlo_.Signature(unit) == signature) return unit;
    }
    return {};
  }

  std::optional<Refusal> DecodeReachable() {
    auto top = ProgramFor("TLP");
    if (!top) return Because("a schedule cannot be read: " + top.error().ToString());
    for (size_t i = 0; i < programs_.size(); ++i) {
      const std::vector<std::string> names = programs_[i].callees;
      for (const std::string& name : names) {
        auto callee = ProgramFor(name);
        if (!callee) return Because("a schedule cannot be read: " + callee.error().ToString());
        callees_[i].push_back(*callee);
      }
    }
    return std::nullopt;
  }

  double Milliseconds(double cycles) const { return cycles / chip_.cycles_per_ms(); }

  Bound BoundOf(const ProgramTrace& trace, const UnitShares& shares, const ReplayTiming& timing) const {
    const double ticks = static_cast<double>(trace.ticks);
    if (ticks <= 0) return Bound::kUnknown;
    const double memory = static_cast<double>(trace.dma_bytes) / timing.bytes_per_cycle * kTicksPerCycle / ticks;
    const double wait = static_cast<double>(trace.wait_ticks + trace.memory_floor_ticks) / ticks;
    if (memory > 0.85 || (wait > 0.25 && memory > 0.6)) return Bound::kMemory;
    if (wait > 0.25) return Bound::kLatency;
    if (trace.mxu_floor_ticks > 0 || shares.mxu > 0.3) return Bound::kCompute;
    if (shares.vector >= shares.scalar_only) return Bound::kVector;
    return Bound::kScalar;
  }

  CostResult Assemble(const ReplayResult& replay, const ReplayTiming& timing) {
    Estimate estimate;
    estimate.evidence = evidence_;
    double cross_check = 0;
    double wait_ticks = 0;
    int64_t largest = -1;
    for (size_t i = 0; i < programs_.size(); ++i) {
      const ProgramTrace& trace = replay.programs[i];
      if (trace.calls == 0) continue;
      const compiler::HloInstruction* instruction = hlo_.Find(programs_[i].name);
      const std::string file = instruction != nullptr ? instruction->file : std::string();
      const Attribution attribution =
          AttributeProgram(programs_[i], trace, file, instruction != nullptr ? instruction->line : 0);
      MergeLines(attribution.lines, &estimate.lines);
      KernelCost kernel;
      kernel.name = programs_[i].name;
      kernel.bundles = static_cast<int64_t>(programs_[i].source->bundle_count());
      kernel.calls = trace.calls;
      kernel.cycles = static_cast<double>(trace.ticks) / kTicksPerCycle;
      kernel.dma_wait_cycles = static_cast<double>(trace.wait_ticks + trace.memory_floor_ticks) / kTicksPerCycle;
      kernel.dma_bytes = static_cast<double>(trace.dma_bytes);
      kernel.loop_iterations = trace.loop_iterations;
      kernel.bound = BoundOf(trace, attribution.shares, timing);
      estimate.dma_bytes += kernel.dma_bytes;
      wait_ticks += static_cast<double>(trace.wait_ticks + trace.memory_floor_ticks);
      if (trace.ticks > largest) {
        largest = trace.ticks;
        estimate.bound = kernel.bound;
      }
      const double busy =
          static_cast<double>(trace.ticks - trace.wait_ticks - trace.memory_floor_ticks) / kTicksPerCycle;
      cross_check += std::max(Milliseconds(busy), Milliseconds(kernel.dma_bytes / timing.bytes_per_cycle)) +
                     static_cast<double>(trace.dma_iterations) * chip_.loop_iteration_us.value * 1e-3;
      Warn(i, &estimate);
      estimate.kernels.push_back(std::move(kernel));
    }
    estimate.total_cycles = static_cast<double>(replay.ticks) / kTicksPerCycle;
    estimate.milliseconds = Milliseconds(estimate.total_cycles);
    estimate.cross_check_milliseconds = cross_check;
    if (replay.ticks > 0) estimate.dma_wait_share = wait_ticks / static_cast<double>(replay.ticks);
    if (replay.unmatched_waits > 0) {
      estimate.warnings.push_back(std::to_string(replay.unmatched_waits) +
                                  " waits found no copy in flight; they were taken to cost nothing");
    }
    Judge(&estimate);
    return estimate;
  }

  void Warn(size_t i, Estimate* estimate) const {
    const ScalarProgram& program = programs_[i];
    if (program.is_runtime || program.is_top_level) return;
    uint32_t unknown = 0;
    std::string example;
    for (const compiler::Opcode& opcode : program.source->UnknownOpcodes()) {
      unknown += opcode.count;
      example = opcode.name;
    }
    if (unknown > 0) {
      estimate->warnings.push_back(program.name + ": " + std::to_string(unknown) +
                                   " operations with unknown opcodes (" + example + ")");
    }
    if (program.undecoded > 0) {
      estimate->warnings.push_back(program.name + ": " + std::to_string(program.undecoded) +
                                   " scalar operations were not understood");
    }
  }

  void Judge(Estimate* estimate) const {
    const double spread = chip_.interval_fraction.value;
    estimate->low_milliseconds = estimate->milliseconds * (1 - spread);
    estimate->high_milliseconds = estimate->milliseconds * (1 + spread);
    switch (chip_.calibration) {
      case Calibration::kCalibrated:
        estimate->confidence = Confidence::kHigh;
        break;
      case Calibration::kPartly:
        estimate->confidence = Confidence::kMedium;
        break;
      case Calibration::kUncalibrated:
        estimate->confidence = Confidence::kLow;
        break;
    }
    if (!estimate->warnings.empty()) estimate->confidence = std::min(estimate->confidence, Confidence::kMedium);
    const double gap = std::abs(estimate->cross_check_milliseconds - estimate->milliseconds);
    if (gap > kCrossCheckTolerance * estimate->milliseconds && gap > kCrossCheckSlackMs) {
      estimate->confidence = Confidence::kLow;
      estimate->warnings.emplace_back("the replay and the cross-check formula differ by more than 25 %");
    }
    estimate->floor_milliseconds = FloorMilliseconds(work_, chip_);
    if (estimate->floor_milliseconds > 0 && estimate->milliseconds > 0) {
      estimate->roofline_fraction = std::min(1.0, estimate->floor_milliseconds / estimate->milliseconds);
    }
    if (BelowFloor(estimate->milliseconds, work_, chip_)) {
      estimate->below_floor = true;
      estimate->confidence = Confidence::kLow;
      estimate->warnings.emplace_back("the time is below what the chip's peak rates allow for this work");
    }
  }

  Dumps dumps_;
  const Chip& chip_;
  const Work& work_;
  const std::vector<KnownOperand>& known_;
  Evidence evidence_;
  std::map<std::string, Dump*> bundles_;
  std::map<std::string, const Dump*> allocations_;
  compiler::HloModule hlo_;
  ScalarMemory memory_;
  std::vector<std::unique_ptr<compiler::BundleProgram>> sources_;
  std::vector<ScalarProgram> programs_;
  std::vector<std::vector<int>> callees_;
  std::map<std::string, int> index_;
  ReplayTiming timing_;
  ReplayResult replay_;
  size_t record_rounds_ = 0;
  bool replayed_ = false;
};

}  // namespace

// The estimator refers to what it was made with, which therefore stays at one place.
class PreparedProgram::Impl {
 public:
  Impl(Dumps dumps, const Chip& chip) : chip_(chip), estimator_(std::move(dumps), chip_, work_, versions_, known_) {}
  Estimator& estimator() { return estimator_; }

 private:
  Chip chip_;
  Work work_;
  std::map<std::string, std::string> versions_;
  std::vector<KnownOperand> known_;
  Estimator estimator_;
};

PreparedProgram::PreparedProgram(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PreparedProgram::PreparedProgram(PreparedProgram&&) noexcept = default;
PreparedProgram& PreparedProgram::operator=(PreparedProgram&&) noexcept = default;
PreparedProgram::~PreparedProgram() = default;

std::variant<PreparedProgram, Refusal> PreparedProgram::Read(Dumps dumps, const Chip& chip) {
  auto impl = std::make_unique<Impl>(std::move(dumps), chip);
  if (auto refusal = impl->estimator().Prepare()) return std::move(*refusal);
  return PreparedProgram(std::move(impl));
}

std::variant<double, Refusal> PreparedProgram::Milliseconds(const Chip& chip) const {
  return impl_->estimator().Retime(chip);
}

CostResult EstimateFromDumps(Dumps dumps, const Chip& chip, const Work& work,
                             const std::map<std::string, std::string>& versions,
                             const std::vector<KnownOperand>& known) {
  return Estimator(std::move(dumps), chip, work, versions, known).Run();
}

DetailedCost EstimateInDetail(Dumps dumps, const Chip& chip, const Work& work,
                              const std::map<std::string, std::string>& versions, size_t record_rounds,
                              const std::vector<KnownOperand>& known) {
  return Estimator(std::move(dumps), chip, work, versions, known).RunInDetail(record_rounds);
}

}  // namespace kernelwright::cost
