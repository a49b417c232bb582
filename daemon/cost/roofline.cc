// The constants below were set against bundle counts of matmul kernels from 128 to 1024 blocks on v5e, v6e and tpu7x
// (within about 20 %); they need not be better, because the compiler's own schedule decides between the best.
#include "daemon/cost/roofline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "daemon/cost/dtype.h"
#include "daemon/cost/index_map.h"

namespace kernelwright::cost {
namespace {

constexpr double kStepOverheadCycles = 150;  // pipeline bookkeeping and filling of the units
constexpr double kOverlapLoss = 0.6;         // part of the smaller units' time that does not hide behind the largest
constexpr double kRegisterElements = 1024;   // 8 x 128 lanes of 32 bits
constexpr double kRegisterBytes = 4096;
constexpr double kVectorPasses = 1.0;
constexpr double kLatencyFill = 2;  // a first and a last copy are exposed

double RoundUp(double value, double multiple) { return std::ceil(value / multiple) * multiple; }

double ProductCycles(const Product& p, const Chip& chip) {
  const double size = chip.mxu_size;
  // The array is filled with a tile of the right operand, then rows of the left one stream through; with fewer rows
  // than the tile has, the filling is what takes the time.
  const double tiles = RoundUp(p.k, size) / size * RoundUp(p.n, size) / size;
  const double rows = std::max(RoundUp(p.m, 8), size);
  const auto peak = chip.peak_tflops.find(p.dtype);
  const double tflops = peak != chip.peak_tflops.end() ? peak->second.value : chip.peak_tflops.begin()->second.value;
  const double flops_per_cycle = tflops * 1e3 / chip.clock_ghz.value;
  return p.batch * p.times * tiles * rows * 2 * size * size / flops_per_cycle;
}

struct Traffic {
  double bytes = 0;
  double changes = 0;
};

// Bytes that the pipeline moves for one operand over the whole grid.
Expected<Traffic> OperandTraffic(const BlockMapping& block, const std::vector<int64_t>& grid) {
  Traffic traffic;
  const auto bits = DtypeBits(block.array.dtype);
  if (!bits) return Fail(ErrorKind::kLimit, "an operand of type " + block.array.dtype + " has no known size");
  double bytes = *bits / 8.0;
  const std::string& space = block.memory_space;
  if (!block.has_index_map) {
    if (!space.empty() && space != "vmem") return traffic;  // left in place: what the kernel copies itself is not seen
    for (const int64_t dim : block.array.dims) bytes *= static_cast<double>(dim);
    return Traffic{bytes, 1};
  }
  if (!space.empty() && space != "vmem" && space != "smem") return traffic;
  for (size_t i = 0; i < block.block.size(); ++i) {
    const auto size = static_cast<double>(std::max<int64_t>(block.block[i].size, 1));
    bytes *= size;
    if (i >= block.array.dims.size()) continue;
    const auto extent = static_cast<double>(block.array.dims[i]);
    if (extent < 0) return Fail(ErrorKind::kLimit, "an operand has a dynamic shape");
    // The last block of a dimension is clipped to the operand.
    if (block.block[i].kind == BlockDim::Kind::kBlocked) bytes *= extent / RoundUp(extent, size);
  }
  const auto map = IndexMap::Compile(block.index_map, grid.size());
  if (!map) return Fail(map.error());
  const auto changes = CountBlockChanges(*map, grid);
  if (!changes) return Fail(changes.error());
  traffic.changes = static_cast<double>(*changes);
  traffic.bytes = bytes * traffic.changes;
  return traffic;
}

}  // namespace

StepCycles EstimateStep(const StepWork& work, const Chip& chip) {
  StepCycles c;
  for (const Product& p : work.products) c.mxu += ProductCycles(p, chip) / 1.0;
  c.vector = kVectorPasses * work.vector_elements / kRegisterElements / chip.valu_slots;
  c.transcendental = work.transcendental / kRegisterElements / chip.eup_slots;
  c.lane = work.lane_elements / kRegisterElements / chip.xlu_slots;
  c.load = work.loaded_bytes / kRegisterBytes / chip.load_slots;
  c.store = work.stored_bytes / kRegisterBytes / chip.store_slots;
  const std::array units = {c.mxu, c.vector, c.transcendental, c.lane, c.load, c.store};
  double sum = 0;
  for (const double u : units) sum += u;
  const double largest = *std::max_element(units.begin(), units.end());
  c.total = largest + kOverlapLoss * (sum - largest) + kStepOverheadCycles;
  return c;
}

CostResult RankEstimate(const PallasCall& call, const Chip& chip) {
  Evidence evidence;
  evidence.chip = chip.name;
  evidence.method = "analytic";
  const auto refuse = [&](std::string reason) {
    Refusal refusal;
    refusal.reason = std::move(reason);
    refusal.evidence = evidence;
    return CostResult(std::move(refusal));
  };
  double steps = 1;
  for (const int64_t extent : call.grid) {
    if (extent <= 0) return refuse("the grid of " + call.name + " is not fixed");
    steps *= static_cast<double>(extent);
  }
  double bytes = 0;
  double busiest = 1;  // changes of the operand that changes most often
  for (const BlockMapping& block : call.blocks) {
    const auto traffic = OperandTraffic(block, call.grid);
    if (!traffic) return refuse(block.origin + ": " + traffic.error().message());
    bytes += traffic->bytes;
    busiest = std::max(busiest, traffic->changes);
  }
  // Two cores of one device share a parallel axis: each does its half, with its own bandwidth.
  double share = 1;
  if (chip.megacore) {
    for (size_t i = 0; i < call.dimension_semantics.size() && i < call.grid.size(); ++i) {
      if (call.dimension_semantics[i] != "parallel" || call.grid[i] < 2) continue;
      const auto extent = static_cast<double>(call.grid[i]);
      share = std::ceil(extent / chip.cores_per_device) / extent;
      break;
    }
  }
  const StepWork work = CountStep(call);
  const StepCycles step = EstimateStep(work, chip);
  const double bytes_per_cycle = chip.bytes_per_cycle() * chip.bandwidth_fraction.value;
  const double latency = chip.dma_latency_us.value * chip.clock_ghz.value * 1e3;
  double cycles = 0;
  double wait = 0;
  if (call.grid.empty()) {
    wait = bytes / bytes_per_cycle + kLatencyFill * latency;
    cycles = step.total + wait;
  } else {
    // A copy is started one step ahead: two steps cover one computation, one transfer and its latency.
    const double transfer = bytes / busiest / bytes_per_cycle;
    const double moving = std::max({step.total, transfer, (step.total + transfer + latency) / 2});
    cycles = share * (busiest * moving + (steps - busiest) * step.total) + transfer + kLatencyFill * latency;
    wait = cycles - share * steps * step.total;
  }
  Estimate estimate;
  estimate.evidence = std::move(evidence);
  estimate.confidence = Confidence::kLow;
  estimate.total_cycles = cycles;
  estimate.milliseconds = cycles / chip.cycles_per_ms();
  estimate.low_milliseconds = estimate.milliseconds * (1 - chip.interval_fraction.value);
  estimate.high_milliseconds = estimate.milliseconds * (1 + chip.interval_fraction.value);
  estimate.dma_bytes = bytes;
  estimate.dma_wait_share = std::max(0.0, wait / cycles);
  if (bytes * share / bytes_per_cycle > 0.85 * cycles) {
    estimate.bound = Bound::kMemory;
  } else if (wait > 0.25 * cycles) {
    estimate.bound = Bound::kLatency;
  } else {
    estimate.bound = step.mxu >= step.vector + step.transcendental + step.lane ? Bound::kCompute : Bound::kVector;
  }
  if (work.has_unknown_loops) estimate.warnings.emplace_back("a loop without a fixed count was counted once");
  Work floor;
  if (const double flops = steps * work.flops(); flops > 0) {
    floor.flops = flops;
    floor.flop_dtype = work.products[0].dtype;
  }
  estimate.floor_milliseconds = FloorMilliseconds(floor, chip);
  if (estimate.milliseconds > 0) {
    estimate.roofline_fraction = std::min(1.0, estimate.floor_milliseconds / estimate.milliseconds);
  }
  KernelCost kernel;
  kernel.name = call.name;
  kernel.calls = 1;
  kernel.cycles = cycles;
  kernel.dma_wait_cycles = std::max(0.0, wait);
  kernel.dma_bytes = bytes;
  kernel.loop_iterations = static_cast<int64_t>(steps);
  kernel.bound = estimate.bound;
  estimate.kernels.push_back(std::move(kernel));
  return estimate;
}

}  // namespace kernelwright::cost
