// Unit by unit: lines, VMEM, the settled step; then what needs the whole program: shares, roofline, advice.
#include "daemon/profile/build_report.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "daemon/cost/kernel_work.h"
#include "daemon/profile/advice.h"
#include "daemon/profile/line_table.h"
#include "daemon/profile/op_traits.h"
#include "daemon/profile/source_ops.h"
#include "daemon/profile/step.h"
#include "daemon/profile/vmem_map.h"

namespace kernelwright::profile {
namespace {

// The name that the user gave: "mm" of "mm.1".
std::string_view BaseName(std::string_view hlo_name) { return hlo_name.substr(0, hlo_name.rfind('.')); }

// Grid as the compiler prints it with the copies of the pipeline: "iteration_bounds: (2, 2, 2)".
std::vector<int64_t> GridInDump(const compiler::BundleProgram& program) {
  std::vector<int64_t> grid;
  for (const compiler::BundleOp& op : program.ops()) {
    if (program.opcode(op).unit != compiler::Unit::kDma) continue;
    const std::string_view text = program.op_text(op);
    const size_t at = text.find("iteration_bounds: (");
    if (at == std::string_view::npos) continue;
    std::string_view rest = text.substr(at + 19);
    rest = rest.substr(0, rest.find(')'));
    while (!rest.empty()) {
      int64_t value = 0;
      while (rest.starts_with(' ') || rest.starts_with(',')) rest.remove_prefix(1);
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
      if (error != std::errc{}) break;
      grid.push_back(value);
      rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    }
    return grid;
  }
  return grid;
}

int64_t StepsOf(const std::vector<int64_t>& grid) {
  if (grid.empty()) return 0;
  int64_t steps = 1;
  for (const int64_t axis : grid) {
    if (axis <= 0) return 0;
    steps *= axis;
  }
  return steps;
}

class Builder {
 public:
  Builder(cost::DetailedCost cost, const cost::Chip& chip, const ProfileInput& input)
      : cost_(std::move(cost)), chip_(chip), input_(input), source_ops_(input.program) {
    if (input.program != nullptr) calls_ = FindPallasCalls(*input.program);
    taken_.assign(calls_.size(), false);
  }

  ProfileReport Run() {
    report_.file = input_.file;
    report_.function = input_.function;
    report_.inputs = input_.inputs;
    report_.chip = chip_.name;
    report_.cycles_per_ms = chip_.cycles_per_ms();
    report_.static_counts = !cost_.replayed;
    report_.sources = input_.sources;
    kernel_calls_.reserve(cost_.units.size());
    for (const cost::UnitDetail& unit : cost_.units) {
      const cost::ProgramTrace trace = cost_.replayed ? unit.trace : EachBlockOnce(unit.program);
      if (trace.calls > 0) AddUnit(unit, trace);
    }
    AddTotals();
    FinishLines();
    FinishKernels();
    report_.cost = std::move(cost_.cost);
    AdviceContext context{report_, chip_, kernel_calls_};
    report_.advice = Advise(context);
    return std::move(report_);
  }

 private:
  const PallasCall* CallOf(const cost::UnitDetail& unit) {
    if (unit.opcode != "custom-call" && !unit.opcode.empty()) return nullptr;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (!taken_[i] && calls_[i]->name == BaseName(unit.name)) {
        taken_[i] = true;
        return calls_[i];
      }
    }
    // The compiler changes names that it does not like; a kernel without a match in a program with one is that one.
    if (unit.opcode == "custom-call" && calls_.size() == 1 && !taken_[0]) {
      taken_[0] = true;
      return calls_[0];
    }
    return nullptr;
  }

  void AddUnit(const cost::UnitDetail& unit, const cost::ProgramTrace& trace) {
    KernelProfile kernel;
    kernel.name = unit.name;
    kernel.is_runtime = unit.program.is_top_level || unit.program.is_runtime;
    const PallasCall* call = kernel.is_runtime ? nullptr : CallOf(unit);
    // XLA makes kernels of its own too; without the traced program the two cannot be told apart.
    kernel.is_pallas = call != nullptr || (input_.program == nullptr && unit.opcode == "custom-call");
    kernel.file = unit.file;
    kernel.line = unit.line;
    kernel.bundles = static_cast<int64_t>(unit.source->bundle_count());
    kernel.calls = trace.calls;
    kernel.cycles = static_cast<double>(trace.ticks) / cost::kTicksPerCycle;
    kernel.dma_wait_cycles = static_cast<double>(trace.wait_ticks + trace.memory_floor_ticks) / cost::kTicksPerCycle;
    kernel.dma_bytes = static_cast<double>(trace.dma_bytes);
    kernel.products = static_cast<double>(trace.products);
    kernel.mxu_added_cycles = static_cast<double>(trace.mxu_floor_ticks) / cost::kTicksPerCycle;
    kernel.loop_iterations = trace.loop_iterations;
    kernel.f32_products = CountF32Products(unit, trace);
    // The compiler's grid is what one core walks; with two cores it is a part of the user's.
    const std::vector<int64_t> walked = GridInDump(*unit.source);
    kernel.grid = call != nullptr ? call->grid : walked;
    kernel.grid_steps = StepsOf(walked.empty() ? kernel.grid : walked);
    kernel.vmem = MapVmem(unit, chip_, call != nullptr ? call->vmem_limit_bytes : std::nullopt);
    if (cost_.replayed && !kernel.is_runtime) kernel.step = SettledStep(unit, chip_, cost_.timing);
    kernel.lines = LinesOfUnit(unit, trace);
    for (LineProfile& line : kernel.lines) {
      kernel.spills += line.spills;
      kernel.casts += line.casts;
      kernel.relayouts += line.relayouts;
      kernel.live_registers = std::max(kernel.live_registers, line.live_registers);
      MarkInserted(&line);
    }
    if (const auto* estimate = std::get_if<cost::Estimate>(&cost_.cost)) {
      for (const cost::KernelCost& known : estimate->kernels) {
        if (known.name == kernel.name) kernel.bound = known.bound;
      }
      if (call != nullptr) kernel.roofline = RooflineOf(*call, kernel);
    }
    AddLines(kernel.lines, &report_.lines);
    kernel_calls_.push_back(call);
    report_.kernels.push_back(std::move(kernel));
  }

  static double CountF32Products(const cost::UnitDetail& unit, const cost::ProgramTrace& trace) {
    double count = 0;
    const compiler::BundleProgram& source = *unit.source;
    for (size_t i = 0; i < unit.program.blocks.size(); ++i) {
      if (trace.block_counts[i] == 0 || unit.program.blocks[i].products == 0) continue;
      const cost::ScalarBlock& block = unit.program.blocks[i];
      for (uint32_t op = source.op_begin(block.bundle_begin); op < source.op_end(block.bundle_end - 1); ++op) {
        if (IsF32Product(source.opcode(source.ops()[op]).name)) count += static_cast<double>(trace.block_counts[i]);
      }
    }
    return count;
  }

  void MarkInserted(LineProfile* line) const {
    if (!source_ops_.known() || line->line == 0) return;
    line->casts_inserted = line->casts > 0 && !source_ops_.HasCast(line->file, line->line);
    line->relayouts_inserted = line->relayouts > 0 && !source_ops_.HasRelayout(line->file, line->line);
  }

  std::optional<Roofline> MakeRoofline(double flops, const std::string& dtype, double bytes, double cycles) const {
    const auto peak = chip_.DevicePeakFlops(dtype);
    if (!(flops > 0) || !(bytes > 0) || !(cycles > 0) || !peak) return std::nullopt;
    Roofline roofline;
    roofline.flops = flops;
    roofline.bytes = bytes;
    roofline.dtype = dtype;
    roofline.intensity = flops / bytes;
    roofline.achieved = flops / (cycles / chip_.cycles_per_ms() * 1e-3);
    roofline.peak = *peak;
    roofline.bandwidth = chip_.DeviceBandwidth();
    roofline.attainable_share = roofline.achieved / std::min(roofline.peak, roofline.intensity * roofline.bandwidth);
    return roofline;
  }

  // Copies and cycles are those of one core, products those of the device.
  std::optional<Roofline> RooflineOf(const PallasCall& call, const KernelProfile& kernel) const {
    const cost::StepWork work = cost::CountStep(call);
    const int64_t grid_steps = StepsOf(call.grid);
    if (grid_steps == 0 && !call.grid.empty()) return std::nullopt;
    if (work.has_unknown_loops || work.products.empty()) return std::nullopt;
    const double steps = static_cast<double>(std::max<int64_t>(grid_steps, 1) * kernel.calls);
    return MakeRoofline(work.flops() * steps, work.products.front().dtype,
                        kernel.dma_bytes * (chip_.megacore ? chip_.cores_per_device : 1), kernel.cycles);
  }

  void AddTotals() {
    Totals& totals = report_.totals;
    for (const KernelProfile& kernel : report_.kernels) {
      totals.cycles += kernel.cycles;
      totals.dma_bytes += kernel.dma_bytes;
      totals.dma_wait_cycles += kernel.dma_wait_cycles;
    }
    for (const LineProfile& line : report_.lines) {
      if (line.line > 0) totals.attributed_cycles += line.cycles;
      totals.spills += line.spills;
      totals.casts += line.casts;
      totals.relayouts += line.relayouts;
      for (const auto& [unit, slots] : line.slots) totals.slots[unit] += slots;
    }
  }

  void FinishLines() {
    std::map<std::string, std::vector<std::string_view>> texts;
    for (const SourceText& source : report_.sources) {
      std::vector<std::string_view>& lines = texts[source.path];
      std::string_view rest = source.text;
      while (!rest.empty()) {
        const size_t end = rest.find('\n');
        lines.push_back(rest.substr(0, end));
        rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
      }
    }
    for (LineProfile& line : report_.lines) {
      if (report_.totals.cycles > 0) line.share = line.cycles / report_.totals.cycles;
      MarkInserted(&line);
      const auto text = texts.find(line.file);
      if (text == texts.end() || line.line <= 0 || static_cast<size_t>(line.line) > text->second.size()) continue;
      std::string_view words = text->second[static_cast<size_t>(line.line) - 1];
      while (!words.empty() && (words.front() == ' ' || words.front() == '\t')) words.remove_prefix(1);
      while (!words.empty() && (words.back() == ' ' || words.back() == '\r')) words.remove_suffix(1);
      line.text = std::string(words);
    }
  }

  void FinishKernels() {
    for (KernelProfile& kernel : report_.kernels) {
      if (report_.totals.cycles > 0) kernel.share = kernel.cycles / report_.totals.cycles;
      if (!cost_.replayed) continue;
      const double bandwidth = cost_.timing.bytes_per_cycle;
      kernel.floor_cycles =
          std::max(kernel.products * cost_.timing.cycles_per_product, bandwidth > 0 ? kernel.dma_bytes / bandwidth : 0);
      if (kernel.floor_cycles > 0) kernel.headroom = kernel.cycles / kernel.floor_cycles;
    }
    if (cost_.replayed && input_.work.flops) {
      report_.roofline =
          MakeRoofline(*input_.work.flops, input_.work.flop_dtype,
                       report_.totals.dma_bytes * (chip_.megacore ? chip_.cores_per_device : 1), report_.totals.cycles);
    }
  }

  cost::DetailedCost cost_;
  const cost::Chip& chip_;
  const ProfileInput& input_;
  const SourceOps source_ops_;
  std::vector<const PallasCall*> calls_;
  std::vector<bool> taken_;
  std::vector<const PallasCall*> kernel_calls_;  // by kernel of the report; null when not matched
  ProfileReport report_;
};

}  // namespace

ProfileReport BuildReport(cost::DetailedCost cost, const cost::Chip& chip, const ProfileInput& input) {
  return Builder(std::move(cost), chip, input).Run();
}

}  // namespace kernelwright::profile
