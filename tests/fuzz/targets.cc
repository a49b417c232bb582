// Each target reads the text and then uses the result the way the product does, so that wrong indices show too. The
// replay is run twice, with and without steady states, and must come to the same end.
#include "tests/fuzz/targets.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "daemon/compiler/allocations.h"
#include "daemon/compiler/bundles.h"
#include "daemon/compiler/dump_name.h"
#include "daemon/compiler/hlo.h"
#include "daemon/compiler/schedule_analysis.h"
#include "daemon/compiler/utilization.h"
#include "daemon/cost/attribution.h"
#include "daemon/cost/hlo_evaluator.h"
#include "daemon/cost/replay.h"

namespace kernelwright::fuzz {
namespace {

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

void RunBundles(std::string_view text) {
  const auto program = compiler::ParseBundles(std::string(text));
  if (!program) {
    Require(!program.error().message().empty(), "an error says something");
    return;
  }
  uint32_t operations = 0;
  for (size_t bundle = 0; bundle < program->bundle_count(); ++bundle) {
    for (uint32_t i = program->op_begin(bundle); i < program->op_end(bundle); ++i, ++operations) {
      const compiler::BundleOp& op = program->ops()[i];
      Require(!program->op_text(op).empty(), "an operation has a text");
      (void)compiler::IsVectorSpill(program->op_text(op));
      for (uint32_t at = 0; at < op.location_count; ++at) {
        const auto& location = program->locations()[program->op_locations()[op.location_begin + at]];
        Require(location.file < program->files().size(), "a location names a file");
      }
    }
  }
  Require(operations == program->ops().size(), "every operation lies in one bundle");
  uint64_t counted = 0;
  for (const compiler::Opcode& opcode : program->opcodes()) counted += opcode.count;
  Require(counted == operations || program->opcodes().size() == 0xffff, "opcodes are counted");
  for (const auto& region : program->regions()) {
    Require(region.bundle < program->bundle_count(), "a region starts at a bundle");
    Require(program->FindRegion(region.region) >= 0, "a region that starts is found");
  }
}

void RunUtilization(std::string_view text) {
  const auto table = compiler::ParseUtilization(text);
  if (!table || table->units.empty()) return;
  Require(table->busy.size() == table->bundles() * table->units.size(), "rows are whole");
  for (const auto& unit : table->units) Require(table->Column(unit) >= 0, "a unit has a column");
}

void RunScheduleAnalysis(std::string_view text) {
  const auto analysis = compiler::ParseScheduleAnalysis(text);
  if (analysis) Require(analysis->total_bundles >= 0, "totals are not negative");
}

void RunAllocations(std::string_view text) {
  for (const compiler::Allocation& allocation : compiler::ParseAllocations(text)) {
    Require(!allocation.name.empty(), "an allocation has a name");
  }
  // Names of files, one a line, are text of the same kind.
  (void)compiler::ParseDumpName(text.substr(0, text.find('\n')));
}

void RunHlo(std::string_view text) {
  const auto module = compiler::ParseHlo(text);
  if (!module) return;
  cost::HloEvaluator evaluator(*module, [](size_t, const cost::ArrayType& type) -> std::optional<cost::IntArray> {
    return cost::IntArray{type, std::vector<int64_t>(static_cast<size_t>(type.elements()), 1)};
  });
  size_t asked = 0;
  for (const auto& computation : module->computations) {
    for (const auto& instruction : computation.instructions) {
      if (++asked > 50) return;
      Require(module->Find(instruction.name) != nullptr, "an instruction is found");
      (void)module->Signature(instruction.name);
      for (size_t i = 0; i < instruction.operands.size() && i < 4; ++i) {
        const auto value = evaluator.Operand(instruction.name, i);
        if (value) (void)cost::LayOut(*value);
      }
    }
  }
}

cost::ReplayResult Replay(const compiler::BundleProgram& source, cost::BranchShadow shadow, bool steady,
                          std::vector<cost::ScalarProgram>* programs) {
  cost::ScalarMemory memory;
  programs->clear();
  programs->push_back(cost::DecodeScalarProgram(source, "kernel", 0, &memory, shadow));
  const std::vector<std::vector<int>> callees = {std::vector<int>(programs->front().callees.size(), 0)};
  cost::ReplayTiming timing;
  timing.bytes_per_cycle = 500;
  timing.dma_latency_cycles = 700;
  timing.local_bytes_per_cycle = 2000;
  timing.local_latency_cycles = 200;
  cost::ReplayOptions options;
  options.detect_steady_state = steady;
  options.max_operations = 200000;
  options.record_rounds = 2;
  return cost::Replay(*programs, callees, 0, &memory, timing, options);
}

void RunReplay(std::string_view text) {
  const auto source = compiler::ParseBundles(std::string(text));
  if (!source) return;
  const bool shortened = text.size() % 2 == 1;
  const cost::BranchShadow shadow = shortened ? cost::BranchShadow{6, true} : cost::BranchShadow{};
  std::vector<cost::ScalarProgram> programs;
  const cost::ReplayResult full = Replay(*source, shadow, false, &programs);
  const cost::ReplayResult fast = Replay(*source, shadow, true, &programs);
  // What is executed is limited, so the fast one may get further; what the full one ends with it must end with as well.
  if (full.refusal) {
    Require(!full.refusal->reason.empty(), "a refusal has a reason");
    return;
  }
  Require(!fast.refusal, "a steady state refuses nothing");
  Require(fast.ticks == full.ticks, "a steady state takes the same time");
  Require(fast.programs[0].block_counts == full.programs[0].block_counts, "and executes the same blocks");
  Require(fast.programs[0].dma_bytes == full.programs[0].dma_bytes, "and moves the same bytes");
  (void)cost::AttributeProgram(programs[0], fast.programs[0], "k.py", 1);
}

constexpr std::array<std::string_view, 1> kBundleSeeds = {"-final_bundles.txt"};
constexpr std::array<std::string_view, 1> kUtilizationSeeds = {"-static-per-bundle-utilization.txt"};
constexpr std::array<std::string_view, 1> kAnalysisSeeds = {"-schedule-analysis_final_bundles.txt"};
constexpr std::array<std::string_view, 1> kAllocationSeeds = {"-registers-and-allocations.txt"};
constexpr std::array<std::string_view, 1> kHloSeeds = {"TLP-hlo.txt"};

constexpr std::array kTargets = {
    Target{"bundles", kBundleSeeds, RunBundles},
    Target{"utilization", kUtilizationSeeds, RunUtilization},
    Target{"schedule_analysis", kAnalysisSeeds, RunScheduleAnalysis},
    Target{"allocations", kAllocationSeeds, RunAllocations},
    Target{"hlo", kHloSeeds, RunHlo},
    Target{"replay", kBundleSeeds, RunReplay},
};

}  // namespace

std::span<const Target> Targets() { return kTargets; }

const Target* FindTarget(std::string_view name) {
  for (const Target& target : kTargets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

}  // namespace kernelwright::fuzz
