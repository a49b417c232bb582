// Cycles and slots come from the cost model's own attribution; what it does not keep (waits, casts, moves, fills,
// registers) is spread over the lines by the same rule: equally over the lines of an operation.
#include "daemon/profile/line_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "daemon/cost/attribution.h"
#include "daemon/profile/op_traits.h"
#include "daemon/profile/register_pressure.h"

namespace kernelwright::profile {
namespace {

using Key = std::pair<std::string, int>;

// Kernels that XLA generates itself have lines of a text that no one can open, in a file called "-".
bool IsSourceFile(const std::string& name) { return !name.empty() && name != "-" && name.front() != '<'; }

class Table {
 public:
  Table(const cost::UnitDetail& unit, const cost::ProgramTrace& trace)
      : unit_(unit), source_(*unit.source), trace_(trace), pressure_(RegisterPressure(source_)) {
    const bool located = std::any_of(source_.files().begin(), source_.files().end(), IsSourceFile);
    if (!located && !unit.file.empty()) unlocated_ = {unit.file, unit.line};
  }

  std::vector<LineProfile> Run() {
    for (const cost::LineCost& line :
         cost::AttributeProgram(unit_.program, trace_, unlocated_.first, unlocated_.second).lines) {
      LineProfile& out = At(line.line > 0 && IsSourceFile(line.file) ? Key{line.file, line.line} : unlocated_);
      out.cycles += line.cycles;
      for (const auto& [name, count] : line.slots) out.slots[name] += count;
      out.spills += line.spills;
      out.dma_bytes += line.dma_bytes;
    }
    for (size_t i = 0; i < unit_.program.blocks.size(); ++i) {
      if (trace_.block_counts[i] == 0) continue;
      const cost::ScalarBlock& block = unit_.program.blocks[i];
      for (uint32_t b = block.bundle_begin; b < block.bundle_end; ++b) {
        AddBundle(b, static_cast<double>(trace_.block_counts[i]));
      }
    }
    for (size_t i = 0; i < unit_.program.ops.size(); ++i) {
      if (trace_.op_wait_ticks[i] == 0) continue;
      const double cycles = static_cast<double>(trace_.op_wait_ticks[i]) / cost::kTicksPerCycle;
      Spread(unit_.program.ops[i].source,
             [&](LineProfile& line, double part) { line.dma_wait_cycles += cycles * part; });
    }
    // Waits that the model added because the bytes cannot be moved faster belong to no line.
    if (trace_.memory_floor_ticks > 0) {
      At(unlocated_).dma_wait_cycles += static_cast<double>(trace_.memory_floor_ticks) / cost::kTicksPerCycle;
    }
    std::vector<LineProfile> lines;
    lines.reserve(lines_.size());
    for (auto& [key, line] : lines_) lines.push_back(std::move(line));
    MakeExact(&lines);
    return lines;
  }

 private:
  LineProfile& At(const Key& key) {
    LineProfile& line = lines_[key];
    line.file = key.first;
    line.line = key.second;
    return line;
  }

  template <typename Add>
  void Spread(uint32_t op_index, Add add) {
    const compiler::BundleOp& op = source_.ops()[op_index];
    keys_.clear();
    for (uint32_t i = 0; i < op.location_count; ++i) {
      const auto& location = source_.locations()[source_.op_locations()[op.location_begin + i]];
      Key key{source_.files()[location.file], location.line};
      if (location.line <= 0 || !IsSourceFile(key.first)) key = unlocated_;
      if (std::find(keys_.begin(), keys_.end(), key) == keys_.end()) keys_.push_back(std::move(key));
    }
    if (keys_.empty()) keys_.push_back(unlocated_);
    for (const Key& key : keys_) add(At(key), 1.0 / static_cast<double>(keys_.size()));
  }

  void AddBundle(uint32_t bundle, double count) {
    for (uint32_t i = source_.op_begin(bundle); i < source_.op_end(bundle); ++i) {
      const compiler::BundleOp& op = source_.ops()[i];
      const compiler::Opcode& opcode = source_.opcode(op);
      const bool cast = IsCast(opcode.name);
      const bool relayout = IsRelayout(opcode.name);
      const bool fill = opcode.unit == compiler::Unit::kLoad && compiler::IsVectorSpill(source_.op_text(op));
      const int live = pressure_[bundle];
      Spread(i, [&](LineProfile& line, double part) {
        line.casts += cast ? count * part : 0;
        line.relayouts += relayout ? count * part : 0;
        line.fills += fill ? count * part : 0;
        line.live_registers = std::max(line.live_registers, live);
      });
    }
  }

  // Rounds to whole ticks so that the sum is the unit's total to the last one: the largest remainders are rounded up.
  void MakeExact(std::vector<LineProfile>* lines) const {
    int64_t left = trace_.ticks;
    std::vector<std::pair<double, size_t>> remainders;
    remainders.reserve(lines->size());
    std::vector<int64_t> ticks(lines->size());
    for (size_t i = 0; i < lines->size(); ++i) {
      const double exact = (*lines)[i].cycles * cost::kTicksPerCycle;
      ticks[i] = static_cast<int64_t>(std::floor(exact));
      left -= ticks[i];
      remainders.emplace_back(exact - std::floor(exact), i);
    }
    std::stable_sort(remainders.begin(), remainders.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (size_t i = 0; i < remainders.size() && left > 0; ++i, --left) ++ticks[remainders[i].second];
    // Left over only by the rounding of very large sums.
    if (left != 0 && !ticks.empty()) *std::max_element(ticks.begin(), ticks.end()) += left;
    for (size_t i = 0; i < lines->size(); ++i) {
      (*lines)[i].cycles = static_cast<double>(ticks[i]) / cost::kTicksPerCycle;
    }
  }

  const cost::UnitDetail& unit_;
  const compiler::BundleProgram& source_;
  const cost::ProgramTrace& trace_;
  const std::vector<uint8_t> pressure_;
  Key unlocated_;
  std::map<Key, LineProfile> lines_;
  std::vector<Key> keys_;
};

}  // namespace

std::vector<LineProfile> LinesOfUnit(const cost::UnitDetail& unit, const cost::ProgramTrace& trace) {
  return Table(unit, trace).Run();
}

cost::ProgramTrace EachBlockOnce(const cost::ScalarProgram& program) {
  cost::ProgramTrace trace;
  trace.calls = 1;
  trace.block_counts.assign(program.blocks.size(), 1);
  trace.op_wait_ticks.assign(program.ops.size(), 0);
  trace.op_dma_bytes.assign(program.ops.size(), 0);
  for (const cost::ScalarBlock& block : program.blocks) {
    trace.ticks += int64_t{block.bundle_end - block.bundle_begin} * cost::kTicksPerCycle;
    trace.products += block.products;
  }
  return trace;
}

void AddLines(const std::vector<LineProfile>& more, std::vector<LineProfile>* lines) {
  for (const LineProfile& line : more) {
    auto it = std::lower_bound(lines->begin(), lines->end(), line, [](const LineProfile& a, const LineProfile& b) {
      return std::tie(a.file, a.line) < std::tie(b.file, b.line);
    });
    if (it == lines->end() || it->file != line.file || it->line != line.line) {
      lines->insert(it, line);
      continue;
    }
    it->cycles += line.cycles;
    it->spills += line.spills;
    it->fills += line.fills;
    it->dma_bytes += line.dma_bytes;
    it->dma_wait_cycles += line.dma_wait_cycles;
    it->casts += line.casts;
    it->relayouts += line.relayouts;
    it->live_registers = std::max(it->live_registers, line.live_registers);
    for (const auto& [unit, slots] : line.slots) it->slots[unit] += slots;
  }
}

}  // namespace kernelwright::profile
