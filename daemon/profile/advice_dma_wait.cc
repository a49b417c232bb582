// Steps that wait for copies: because copies are short and wait for their latency, or because the bytes take the time.
#include <algorithm>

#include "daemon/profile/advice.h"

namespace kernelwright::profile {
namespace {

constexpr double kLeastWait = 0.1;  // of a step
constexpr double kMebibyte = 1024.0 * 1024.0;

int64_t WindowBytes(const VmemMap& vmem) {
  int64_t bytes = 0;
  for (const VmemRegion& region : vmem.regions) {
    if (region.kind == "input window" || region.kind == "output window") bytes += region.bytes;
  }
  return bytes;
}

// Bytes of the operands, each once: what no choice of blocks can avoid. 0 when not known.
double OperandBytes(const PallasCall* call) {
  if (call == nullptr) return 0;
  double bytes = 0;
  for (const BlockMapping& block : call->blocks) {
    double elements = 1;
    for (const int64_t dim : block.array.dims) elements *= static_cast<double>(dim);
    const std::string& dtype = block.array.dtype;
    bytes += elements * (dtype.ends_with("64") ? 8 : dtype.ends_with("32") ? 4 : dtype.ends_with("16") ? 2 : 1);
  }
  return bytes;
}

}  // namespace

std::vector<Advice> AdviseDmaWait(const KernelView& view) {
  const KernelProfile& kernel = view.kernel;
  if (kernel.cycles <= 0) return {};
  const double wait_share = kernel.dma_wait_cycles / kernel.cycles;
  const double step_wait = kernel.step && kernel.step->cycles > 0 ? kernel.step->wait_cycles / kernel.step->cycles : 0;
  const double shown = kernel.step ? step_wait : wait_share;
  if (std::max(wait_share, step_wait) < kLeastWait) return {};
  const auto lines = view.LinesWith([](const LineProfile& line) { return line.dma_wait_cycles; });
  Advice advice = view.Make("dma_wait", wait_share, lines);
  advice.title = "copies are waited for during " + Percent(shown) + (kernel.step ? " of each step" : " of the time");
  advice.evidence = {{"wait_share", wait_share}, {"step_wait_share", step_wait}, {"dma_bytes", kernel.dma_bytes}};

  if (!kernel.is_pallas) {
    advice.text = "XLA makes this unit, which moves " + Amount(kernel.dma_bytes / kMebibyte) +
                  " MiB through HBM; a kernel that does its work together with that of its neighbours need not.";
    return {advice};
  }
  const cost::Bound bound = kernel.step ? kernel.step->bound : kernel.bound;
  if (kernel.step) {
    advice.text = "A step computes for " + Amount(kernel.step->busy_cycles) + " cycles, its " +
                  Amount(kernel.step->dma_bytes / 1024) + " KiB take " + Amount(kernel.step->dma_cycles) +
                  " cycles to move, and it lasts " + Amount(kernel.step->cycles) + ". ";
    advice.evidence["step_cycles"] = kernel.step->cycles;
    advice.evidence["step_busy_cycles"] = kernel.step->busy_cycles;
    advice.evidence["step_dma_cycles"] = kernel.step->dma_cycles;
  }
  if (bound == cost::Bound::kLatency) {
    advice.text += "The latency of a copy sets the pace, not the bandwidth: fewer and larger steps hide it. ";
  }
  const int64_t windows = WindowBytes(kernel.vmem);
  const double needed = static_cast<double>(kernel.vmem.total + windows);
  const double moved = kernel.dma_bytes * (view.chip.megacore ? view.chip.cores_per_device : 1);
  const double least = OperandBytes(view.call);
  advice.evidence["vmem_bytes"] = static_cast<double>(kernel.vmem.total);
  advice.evidence["vmem_limit_bytes"] = static_cast<double>(kernel.vmem.limit);
  const bool reread = least > 0 && moved > 1.5 * least;
  if (reread) {
    advice.text += "Operands are moved " + Amount(moved / least) + " times over; larger blocks reuse more of each. ";
    advice.evidence["traffic_factor"] = moved / least;
  }
  if (bound == cost::Bound::kMemory && !reread && least > 0) {
    advice.text +=
        "Each byte is moved about once: the kernel is at the memory's speed, and only fewer bytes (a "
        "narrower type, a fusion with its neighbours) make it faster.";
    return {advice};
  }
  if (windows > 0 && needed <= static_cast<double>(kernel.vmem.limit)) {
    advice.text += "Blocks twice as large fit: windows and scratch would take " + Amount(needed / kMebibyte) + " of " +
                   Amount(static_cast<double>(kernel.vmem.limit) / kMebibyte) + " MiB of VMEM.";
  } else if (windows > 0 && needed <= 0.9 * static_cast<double>(kernel.vmem.physical)) {
    advice.text += "Blocks twice as large need " + Amount(needed / kMebibyte) +
                   " MiB of VMEM: raise vmem_limit_bytes (now " +
                   Amount(static_cast<double>(kernel.vmem.limit) / kMebibyte) + " MiB; the core has " +
                   Amount(static_cast<double>(kernel.vmem.physical) / kMebibyte) + " MiB).";
  }
  return {advice};
}

}  // namespace kernelwright::profile
