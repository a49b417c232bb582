// The blocks, waits and copies of the round are laid out in time again, bundle by bundle: a wait lies in front of its
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

const cost::RoundRecord* ChooseRound(const cost::UnitDetail& unit) {
  std::map<uint32_t, std::vector<const cost::RoundRecord*>> loops;
  for (const cost::RoundRecord& round : unit.rounds) {
    if (!round.truncated && round.end > round.start) loops[round.header].push_back(&round);
  }
  std::vector<const cost::RoundRecord*>* best = nullptr;
  int64_t most = -1;
  for (auto& [header, rounds] : loops) {
    if (const int64_t bundles = LoopBundles(unit, header); bundles > most) {
      most = bundles;
      best = &rounds;
    }
  }
  if (best == nullptr) return nullptr;
  // By length, and of equal ones the latest: it is the most settled.
  std::stable_sort(best->begin(), best->end(), [](const cost::RoundRecord* a, const cost::RoundRecord* b) {
    return a->end - a->start < b->end - b->start;
  });
  const int64_t median = (*best)[best->size() / 2]->end - (*best)[best->size() / 2]->start;
  const cost::RoundRecord* chosen = nullptr;
  for (const cost::RoundRecord* round : *best) {
    if (round->end - round->start == median) chosen = round;
  }
  return chosen;
}

// Lays the round out and fills the step's counts and its timeline.
class Layout {
 public:
  Layout(const cost::UnitDetail& unit, const cost::Chip& chip, const cost::RoundRecord& round)
      : unit_(unit), source_(*unit.source), chip_(chip), round_(round) {
    const double cycles = static_cast<double>(round.end - round.start) / cost::kTicksPerCycle;
    const auto slices = static_cast<size_t>(std::clamp(cycles, 1.0, static_cast<double>(kTimelineSlices)));
    step_.cycles = cycles;
    step_.timeline.slice_cycles = cycles / static_cast<double>(slices);
    for (const Unit shown : kShownUnits) step_.timeline.units[compiler::UnitName(shown)].assign(slices, 0);
    step_.timeline.units["wait"].assign(slices, 0);
    step_.timeline.lines.assign(slices, 0);
    votes_.resize(slices);
  }

  Step Run() {
    size_t wait = 0;
    for (const cost::RoundRecord::Block& block : round_.blocks) {
      const cost::ScalarBlock& bundles = unit_.program.blocks[block.block];
      int64_t time = block.start;
      for (uint32_t b = bundles.bundle_begin; b < bundles.bundle_end; ++b) {
        for (; wait < round_.waits.size() && round_.waits[wait].start == time &&
               unit_.program.ops[round_.waits[wait].op].bundle == b;
             ++wait) {
          AddWait(time, round_.waits[wait].ticks);
          time += round_.waits[wait].ticks;
        }
        AddBundle(b, time);
        time += cost::kTicksPerCycle;
      }
    }
    for (const cost::RoundRecord::Copy& copy : round_.copies) {
      if (unit_.program.ops[copy.op].path == cost::DmaPath::kLocal) continue;
      const double factor = unit_.program.ops[copy.op].path == cost::DmaPath::kHbmToHbm ? 2 : 1;
      step_.dma_bytes += static_cast<double>(copy.bytes) * factor;
      step_.timeline.copies.push_back({CyclesAt(copy.start), CyclesAt(copy.done), static_cast<double>(copy.bytes)});
    }
    Finish();
    return std::move(step_);
  }

 private:
  double CyclesAt(int64_t time) const { return static_cast<double>(time - round_.start) / cost::kTicksPerCycle; }

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
    step_.busy_cycles += 1;
    scalar_only_ += vector ? 0 : 1;
  }

  void Finish() {
    if (step_.busy_cycles > 0) {
      for (auto& [unit, used] : step_.units) used /= step_.busy_cycles;
      step_.scalar_only_share = scalar_only_ / step_.busy_cycles;
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
  const cost::RoundRecord& round_;
  Step step_;
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
  const cost::RoundRecord* round = ChooseRound(unit);
  if (round == nullptr) return std::nullopt;
  Step step = Layout(unit, chip, *round).Run();
  if (timing.bytes_per_cycle > 0) step.dma_cycles = step.dma_bytes / timing.bytes_per_cycle;
  step.mxu_cycles = step.products * timing.cycles_per_product;
  step.bound = BoundOf(step);
  return step;
}

}  // namespace kernelwright::profile
