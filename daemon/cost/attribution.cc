// A bundle's cycle is split equally over the lines in it; a bundle without any line goes to line 0. A wait goes to the
// lines of the waiting operation, the MXU's lower bound to the lines of the products.
#include "daemon/cost/attribution.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace kernelwright::cost {
namespace {

using compiler::Unit;

struct Key {
  uint32_t file = 0;
  int32_t line = 0;  // 0: no line
  auto operator<=>(const Key&) const = default;
};

class Attributor {
 public:
  Attributor(const ScalarProgram& program, const ProgramTrace& trace)
      : program_(program), source_(*program.source), trace_(trace) {
    for (const compiler::Opcode& opcode : source_.opcodes()) {
      unit_.push_back(opcode.unit);
      product_.push_back(opcode.name.starts_with("vmatmul"));
    }
  }

  std::map<Key, LineCost> Run(UnitShares* shares) {
    double executed = 0;
    for (size_t i = 0; i < program_.blocks.size(); ++i) {
      const ScalarBlock& block = program_.blocks[i];
      const auto count = static_cast<double>(trace_.block_counts[i]);
      if (count == 0) continue;
      // Where units make a block longer than its bundles, each bundle takes its share of that.
      const double bundles = block.bundle_end - block.bundle_begin;
      const double cycles =
          i < trace_.block_ticks.size() ? static_cast<double>(trace_.block_ticks[i]) / kTicksPerCycle : bundles;
      for (uint32_t b = block.bundle_begin; b < block.bundle_end; ++b) AddBundle(b, count, cycles / bundles, shares);
      executed += count * (block.bundle_end - block.bundle_begin);
    }
    if (executed > 0) {
      shares->mxu /= executed;
      shares->vector /= executed;
      shares->scalar_only /= executed;
    }
    for (size_t i = 0; i < program_.ops.size(); ++i) {
      const uint32_t source = program_.ops[i].source;
      if (trace_.op_wait_ticks[i] != 0) {
        Spread(source, static_cast<double>(trace_.op_wait_ticks[i]) / kTicksPerCycle,
               [](LineCost& line, double part) { line.cycles += part; });
      }
      if (trace_.op_dma_bytes[i] != 0) {
        Spread(source, static_cast<double>(trace_.op_dma_bytes[i]),
               [](LineCost& line, double part) { line.dma_bytes += part; });
      }
    }
    AddFloors();
    return std::move(lines_);
  }

 private:
  // Distinct lines of an operation.
  void LinesOf(uint32_t op_index, std::vector<Key>* out) const {
    const compiler::BundleOp& op = source_.ops()[op_index];
    for (uint32_t i = 0; i < op.location_count; ++i) {
      const auto& location = source_.locations()[source_.op_locations()[op.location_begin + i]];
      const Key key{location.file, location.line};
      if (std::find(out->begin(), out->end(), key) == out->end()) out->push_back(key);
    }
  }

  template <typename Add>
  void Spread(uint32_t op_index, double amount, Add add) {
    scratch_.clear();
    LinesOf(op_index, &scratch_);
    if (scratch_.empty()) scratch_.push_back(Key{});
    for (const Key& key : scratch_) add(lines_[key], amount / static_cast<double>(scratch_.size()));
  }

  void AddBundle(uint32_t bundle, double count, double cycles, UnitShares* shares) {
    std::vector<Key>& in_bundle = bundle_lines_;
    in_bundle.clear();
    bool mxu = false;
    bool vector = false;
    for (uint32_t i = source_.op_begin(bundle); i < source_.op_end(bundle); ++i) {
      LinesOf(i, &in_bundle);
      const Unit unit = unit_[source_.ops()[i].opcode];
      mxu |= unit == Unit::kMxu;
      vector |=
          unit == Unit::kVpu || unit == Unit::kXlu || unit == Unit::kEup || unit == Unit::kLoad || unit == Unit::kStore;
      if (unit != Unit::kControl && unit != Unit::kUnknown) {
        Spread(i, count, [&](LineCost& line, double part) { line.slots[compiler::UnitName(unit)] += part; });
      }
      if ((unit == Unit::kLoad || unit == Unit::kStore) && compiler::IsVectorSpill(source_.op_text(source_.ops()[i]))) {
        Spread(i, count, [](LineCost& line, double part) { line.spills += part; });
      }
      if (product_[source_.ops()[i].opcode]) {
        scratch_.clear();
        LinesOf(i, &scratch_);
        if (scratch_.empty()) scratch_.push_back(Key{});
        for (const Key& key : scratch_) product_lines_[key] += count / static_cast<double>(scratch_.size());
      }
    }
    if (in_bundle.empty()) in_bundle.push_back(Key{});
    for (const Key& key : in_bundle) lines_[key].cycles += count * cycles / static_cast<double>(in_bundle.size());
    shares->mxu += mxu ? count : 0;
    shares->vector += vector ? count : 0;
    shares->scalar_only += mxu || vector ? 0 : count;
  }

  void AddFloors() {
    double products = 0;
    for (const auto& [key, count] : product_lines_) products += count;
    const double mxu = static_cast<double>(trace_.mxu_floor_ticks) / kTicksPerCycle;
    if (products > 0) {
      for (const auto& [key, count] : product_lines_) lines_[key].cycles += mxu * count / products;
    } else if (mxu > 0) {
      lines_[Key{}].cycles += mxu;
    }
    if (const int64_t unplaced = trace_.memory_floor_ticks + trace_.overhead_ticks; unplaced > 0) {
      lines_[Key{}].cycles += static_cast<double>(unplaced) / kTicksPerCycle;
    }
  }

  const ScalarProgram& program_;
  const compiler::BundleProgram& source_;
  const ProgramTrace& trace_;
  std::vector<Unit> unit_;
  std::vector<uint8_t> product_;
  std::map<Key, LineCost> lines_;
  std::map<Key, double> product_lines_;
  std::vector<Key> scratch_;
  std::vector<Key> bundle_lines_;
};

}  // namespace

Attribution AttributeProgram(const ScalarProgram& program, const ProgramTrace& trace, const std::string& fallback_file,
                             int fallback_line) {
  Attribution out;
  std::map<Key, LineCost> lines = Attributor(program, trace).Run(&out.shares);
  const bool no_locations = program.source->locations().empty();
  for (auto& [key, cost] : lines) {
    if (key.line > 0) {
      cost.file = program.source->files()[key.file];
      cost.line = key.line;
    } else if (no_locations && !fallback_file.empty()) {
      cost.file = fallback_file;
      cost.line = fallback_line;
    }
    MergeLines({cost}, &out.lines);
  }
  return out;
}

void MergeLines(const std::vector<LineCost>& more, std::vector<LineCost>* lines) {
  for (const LineCost& line : more) {
    auto it = std::lower_bound(lines->begin(), lines->end(), line, [](const LineCost& a, const LineCost& b) {
      return std::tie(a.file, a.line) < std::tie(b.file, b.line);
    });
    if (it == lines->end() || it->file != line.file || it->line != line.line) {
      lines->insert(it, line);
      continue;
    }
    it->cycles += line.cycles;
    it->spills += line.spills;
    it->dma_bytes += line.dma_bytes;
    for (const auto& [unit, slots] : line.slots) it->slots[unit] += slots;
  }
}

}  // namespace kernelwright::cost
