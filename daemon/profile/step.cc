// The blocks, waits and copies of the rounds are laid out in time again, bundle by bundle: a wait lies in front of its
// bundle and pushes the rest back.
#include "daemon/profile/step.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "daemon/profile/op_traits.h"

namespace kernelwright::profile {
namespace {

using compiler::Unit;

constexpr size_t kFilling = 2;         // rounds at the start that are not looked at
constexpr size_t kMostCopies = 256;    // kept for the picture
constexpr double kCloseEnough = 0.03;  // of the mean length

constexpr std::array kShownUnits = {Unit::kMxu,  Unit::kVpu,   Unit::kXlu,   Unit::kEup,
                                    Unit::kLoad, Unit::kStore, Unit::kScalar};

// Executed bundles of the loop with this header, inner loops included: from it to the end of its nest.
int64_t LoopBundles(const cost::UnitDetail& unit, uint32_t header) {
  const compiler::BundleProgram& source = *unit.source;
  uint32_t end = header;
  while (end < source.bundle_count() && source.bundle(end).depth > 0) ++end;
  int64_t bundles = 0;
  for (size_t i = 0; i < unit.program.blocks.size(); ++i) {
    const cost::ScalarBlock& block = unit.program.blocks[i];
    if (block.bundle_begin < header || block.bundle_begin >= end) continue;
    bundles += unit.trace.block_counts[i] * int64_t{block.bundle_end - block.bundle_begin};
  }
  return bundles;
}

using Rounds = std::vector<const cost::RoundRecord*>;

int64_t Length(const cost::RoundRecord& round) { return round.end - round.start; }

// The recorded rounds of the loop that takes the most time, in order.
Rounds RoundsOfMainLoop(const cost::UnitDetail& unit) {
  std::map<uint32_t, Rounds> loops;
  for (const cost::RoundRecord& round : unit.rounds) {
    if (!round.truncated && round.end > round.start) loops[round.header].push_back(&round);
  }
  Rounds best;
  int64_t most = -1;
  for (auto& [header, rounds] : loops) {
    if (const int64_t bundles = LoopBundles(unit, header); bundles > most) {
      most = bundles;
      best = std::move(rounds);
    }
  }
  return best;
}

// Consecutive rounds that stand for all: the fewest whose mean length is that of all recorded ones. Buffers that are
// used in turn make a long and a short round alternate, which only a pair of them shows.
Rounds ChooseRounds(const cost::UnitDetail& unit) {
  Rounds rounds = RoundsOfMainLoop(unit);
  // The pipeline fills in the first ones.
  if (rounds.size() > 2 * kFilling) rounds.erase(rounds.begin(), rounds.begin() + kFilling);
  if (rounds.empty()) return rounds;
  double mean = 0;
  for (const cost::RoundRecord* round : rounds) mean += static_cast<double>(Length(*round));
  mean /= static_cast<double>(rounds.size());
  Rounds closest;
  double least = -1;
  for (const size_t width : {1, 2, 4}) {
    for (size_t i = 0; i + width <= rounds.size(); ++i) {
      double length = 0;
      bool consecutive = true;
      for (size_t j = i; j < i + width; ++j) {
        consecutive &= j == i || rounds[j]->start == rounds[j - 1]->end;
        length += static_cast<double>(Length(*rounds[j]));
      }
      const double distance = std::abs(length / static_cast<double>(width) - mean) / mean;
      // Of equally good ones the latest is the most settled.
      if (consecutive && (least < 0 || distance <= least)) {
        least = distance;
        closest.assign(rounds.begin() + static_cast<std::ptrdiff_t>(i),
                       rounds.begin() + static_cast<std::ptrdiff_t>(i + width));
      }
    }
    if (least >= 0 && least < kCloseEnough) break;
  }
  return closest;
}

// Lays the rounds out and fills the step's counts, which are per round, and its timeline, which shows all of them.
class Layout {
 public:
  Layout(const cost::UnitDetail& unit, const cost::Chip& chip, const Rounds& rounds)
      : unit_(unit), source_(*unit.source), chip_(chip), rounds_(rounds), start_(rounds.front()->start) {
    const double cycles = static_cast<double>(rounds.back()->end - start_) / cost::kTicksPerCycle;
    const auto slices = static_cast<size_t>(std::clamp(cycles, 1.0, static_cast<double>(kTimelineSlices)));
    step_.timeline.cycles = cycles;
    step_.timeline.steps = static_cast<int>(rounds.size());
    step_.timeline.slice_cycles = cycles / static_cast<double>(slices);
    for (const Unit shown : kShownUnits) step_.timeline.units[compiler::UnitName(shown)].assign(slices, 0);
    step_.timeline.units["wait"].assign(slices, 0);
    step_.timeline.lines.assign(slices, 0);
    votes_.resize(slices);
  }

  Step Run() {
    for (const cost::RoundRecord* round : rounds_) AddRound(*round);
    Finish();
    return std::move(step_);
  }

 private:
  void AddRound(const cost::RoundRecord& round) {
    size_t wait = 0;
    for (const cost::RoundRecord::Block& block : round.blocks) {
      const cost::ScalarBlock& bundles = unit_.program.blocks[block.block];
      int64_t time = block.start;
      for (uint32_t b = bundles.bundle_begin; b < bundles.bundle_end; ++b) {
        for (; wait < round.waits.size() && round.waits[wait].start == time &&
               unit_.program.ops[round.waits[wait].op].bundle == b;
             ++wait) {
          AddWait(time, round.waits[wait].ticks);
          time += round.waits[wait].ticks;
        }
        AddBundle(b, time);
        time += cost::kTicksPerCycle;
      }
    }
    for (const cost::RoundRecord::Copy& copy : round.copies) {
      const cost::DmaPath path = unit_.program.ops[copy.op].path;
      if (path == cost::DmaPath::kLocal) continue;
      step_.dma_bytes += static_cast<double>(copy.bytes) * (path == cost::DmaPath::kHbmToHbm ? 2 : 1);
      if (step_.timeline.copies.size() == kMostCopies) continue;
      step_.timeline.copies.push_back({CyclesAt(copy.start), CyclesAt(copy.done), static_cast<double>(copy.bytes)});
    }
  }

  double CyclesAt(int64_t time) const { return static_cast<double>(time - start_) / cost::kTicksPerCycle; }

  size_t SliceAt(double cycle) const {
    const auto slice = static_cast<size_t>(std::max(0.0, cycle / step_.timeline.slice_cycles));
    return std::min(slice, votes_.size() - 1);
  }

  void AddWait(int64_t time, int64_t ticks) {
    step_.wait_cycles += static_cast<double>(ticks) / cost::kTicksPerCycle;
    std::vector<double>& wait = step_.timeline.units["wait"];
    double begin = CyclesAt(time);
    const double end = CyclesAt(time + ticks);
    for (size_t slice = SliceAt(begin); begin < end && slice < wait.size(); ++slice) {
      const double stop = std::min(end, static_cast<double>(slice + 1) * step_.timeline.slice_cycles);
      wait[slice] += std::max(0.0, stop - begin) / step_.timeline.slice_cycles;
      begin = std::max(begin, stop);
    }
  }

  void AddBundle(uint32_t bundle, int64_t time) {
    const size_t slice = SliceAt(CyclesAt(time));
    std::array<int, compiler::kUnitCount> issued{};
    for (uint32_t i = source_.op_begin(bundle); i < source_.op_end(bundle); ++i) {
      const compiler::BundleOp& op = source_.ops()[i];
      ++issued[static_cast<size_t>(source_.opcode(op).unit)];
      step_.products += IsProduct(source_.opcode(op).name) ? 1 : 0;
      if (op.location_count > 0) {
        ++votes_[slice][source_.locations()[source_.op_locations()[op.location_begin]].line];
      }
    }
    bool vector = false;
    for (const Unit unit : kShownUnits) {
      const int slots = SlotsPerCycle(chip_, unit);
      const int used = issued[static_cast<size_t>(unit)];
      if (slots <= 0 || used == 0) continue;
      const double part = std::min(1.0, static_cast<double>(used) / slots);
      step_.units[compiler::UnitName(unit)] += part;
      step_.timeline.units[compiler::UnitName(unit)][slice] += part / step_.timeline.slice_cycles;
      vector |= unit != Unit::kScalar;
    }
    ++bundles_;
    scalar_only_ += vector ? 0 : 1;
  }

  void Finish() {
    // More than the bundles where the hardware waits for its units, and behind branches.
    step_.busy_cycles = step_.timeline.cycles - step_.wait_cycles;
    if (bundles_ > 0) {
      for (auto& [unit, used] : step_.units) used /= bundles_;
      step_.scalar_only_share = scalar_only_ / bundles_;
    }
    const auto rounds = static_cast<double>(rounds_.size());
    step_.cycles = step_.timeline.cycles / rounds;
    for (double* amount : {&step_.busy_cycles, &step_.wait_cycles, &step_.dma_bytes, &step_.products}) {
      *amount /= rounds;
    }
    for (auto& [unit, busy] : step_.timeline.units) {
      for (double& part : busy) part = std::min(part, 1.0);
    }
    for (size_t i = 0; i < votes_.size(); ++i) {
      int most = 0;
      for (const auto& [line, votes] : votes_[i]) {
        if (votes > most) {
          most = votes;
          step_.timeline.lines[i] = line;
        }
      }
    }
  }

  const cost::UnitDetail& unit_;
  const compiler::BundleProgram& source_;
  const cost::Chip& chip_;
  const Rounds& rounds_;
  const int64_t start_;
  Step step_;
  double bundles_ = 0;
  double scalar_only_ = 0;
  std::vector<std::map<int, int>> votes_;  // by slice: line -> operations
};

cost::Bound BoundOf(const Step& step) {
  const double length = std::max({step.cycles, step.mxu_cycles, step.dma_cycles});
  if (length <= 0) return cost::Bound::kUnknown;
  if (step.dma_cycles > 0.85 * length) return cost::Bound::kMemory;
  if (step.mxu_cycles > step.cycles) return cost::Bound::kCompute;
  if (step.wait_cycles > 0.25 * length) {
    return step.dma_cycles > 0.6 * length ? cost::Bound::kMemory : cost::Bound::kLatency;
  }
  const auto mxu = step.units.find("MXU");
  if ((mxu != step.units.end() && mxu->second > 0.3) || step.mxu_cycles > 0.7 * length) return cost::Bound::kCompute;
  return step.scalar_only_share < 0.5 ? cost::Bound::kVector : cost::Bound::kScalar;
}

}  // namespace

int SlotsPerCycle(const cost::Chip& chip, compiler::Unit unit) {
  switch (unit) {
    case Unit::kMxu:
      return chip.mxu_count;
    case Unit::kVpu:
      return chip.valu_slots;
    case Unit::kXlu:
      return chip.xlu_slots;
    case Unit::kEup:
      return chip.eup_slots;
    case Unit::kLoad:
      return chip.load_slots;
    case Unit::kStore:
      return chip.store_slots;
    case Unit::kScalar:
      return 2;  // the columns of the compiler's utilization tables, all chips
    default:
      return 0;
  }
}

std::optional<Step> SettledStep(const cost::UnitDetail& unit, const cost::Chip& chip,
                                const cost::ReplayTiming& timing) {
  const Rounds rounds = ChooseRounds(unit);
  if (rounds.empty()) return std::nullopt;
  Step step = Layout(unit, chip, rounds).Run();
  if (timing.bytes_per_cycle > 0) step.dma_cycles = step.dma_bytes / timing.bytes_per_cycle;
  step.mxu_cycles = step.products * timing.cycles_per_product;
  step.bound = BoundOf(step);
  return step;
}

}  // namespace kernelwright::profile
