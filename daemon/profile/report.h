// The static profile of one compiled program on one chip, as a plain value: where the cycles go by source line and by
// kernel, what bounds a step, what is in VMEM, and what to do about it. Made by BuildReport, printed as JSON and HTML.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/cost/chips.h"
#include "daemon/cost/estimate.h"

namespace kernelwright::profile {

// A source line. All amounts are weighted by how often the schedule's bundles ran; a bundle that several lines share
// is split equally. Without a time (a refusal) each bundle counts once.
struct LineProfile {
  std::string file;  // empty with line 0
  int line = 0;      // 0: what the compiler gives no line
  std::string text;  // the line itself, without its indentation; empty when the file is not known
  double cycles = 0;
  double share = 0;                     // of the program's cycles
  std::map<std::string, double> slots;  // unit -> issue slots used
  double spills = 0;                    // vector registers stored and loaded again because there were too few
  double fills = 0;                     // the loads among them
  double dma_bytes = 0;                 // of copies from and to HBM started here
  double dma_wait_cycles = 0;           // waiting for copies
  double casts = 0;                     // operations that change a vector's type
  double relayouts = 0;                 // operations that move data across lanes and sublanes
  bool casts_inserted = false;          // the source has no conversion on this line: the compiler added them
  bool relayouts_inserted = false;      // likewise for transposes, rotations, broadcasts
  int live_registers = 0;               // most vector registers in use at once, of kVectorRegisters
};

inline constexpr int kVectorRegisters = 64;

// A piece of VMEM that a kernel holds.
struct VmemRegion {
  std::string kind;  // "input window", "output window", "scratch", "internal scratch", "spill slots", "other"
  std::string what;  // "input 0", "scratch 1"
  std::string shape;
  int64_t bytes = 0;  // all buffers
  int buffers = 1;
};

struct VmemMap {
  std::vector<VmemRegion> regions;  // largest first
  int64_t total = 0;
  int64_t limit = 0;  // the kernel's vmem_limit_bytes, else the chip's default
  int64_t physical = 0;
};

// What the units do during a settled step, in equal slices of time.
struct Timeline {
  struct Copy {
    double start = 0;  // cycles from the start
    double done = 0;
    double bytes = 0;
  };
  double cycles = 0;  // whole length
  int steps = 1;      // that it shows: more than one where long and short steps alternate
  double slice_cycles = 0;
  // Unit -> busy part of each slice, 0 to 1: issue slots used of those there are. "wait" is time spent waiting.
  std::map<std::string, std::vector<double>> units;
  std::vector<int> lines;  // source line with most bundles in each slice, 0 for none
  std::vector<Copy> copies;
};

// One round of a kernel's outermost loop when it has settled: for a grid, one grid step. The mean of the steps that the
// timeline shows.
struct Step {
  double cycles = 0;  // as replayed
  double busy_cycles = 0;
  double wait_cycles = 0;
  double dma_bytes = 0;
  double dma_cycles = 0;  // that the bytes take at the bandwidth that long copies reach
  double products = 0;
  double mxu_cycles = 0;                // that the products take at least
  std::map<std::string, double> units;  // unit -> share of its issue slots used in busy cycles
  double scalar_only_share = 0;         // busy cycles with nothing but scalar work or nothing at all
  cost::Bound bound = cost::Bound::kUnknown;
  Timeline timeline;
};

// A kernel's place under the chip's roof. Figures of the whole device.
struct Roofline {
  double flops = 0;
  double bytes = 0;
  double intensity = 0;         // flops / bytes
  double achieved = 0;          // flop/s
  double peak = 0;              // flop/s of the operands' type
  double bandwidth = 0;         // bytes/s
  double attainable_share = 0;  // achieved / min(peak, intensity * bandwidth)
  std::string dtype;
};

struct KernelProfile {
  std::string name;  // HLO name
  bool is_pallas = false;
  bool is_runtime = false;  // the top-level program around the kernels
  std::string file;
  int line = 0;  // where it is called
  int64_t bundles = 0;
  int64_t calls = 0;
  double cycles = 0;
  double share = 0;
  double dma_wait_cycles = 0;
  double dma_bytes = 0;
  double spills = 0;
  double casts = 0;
  double relayouts = 0;
  double products = 0;
  double f32_products = 0;      // with 32-bit float operands
  double mxu_added_cycles = 0;  // by which the products' bound exceeds the schedule
  int64_t loop_iterations = 0;
  int live_registers = 0;
  cost::Bound bound = cost::Bound::kUnknown;
  std::vector<int64_t> grid;  // as the user wrote it, else as the compiler prints it
  int64_t grid_steps = 0;     // of one call on one core; 0 when not known
  VmemMap vmem;
  std::optional<Step> step;
  std::optional<Roofline> roofline;
  // Least cycles that its products at the peak rate and the bytes it moves allow, and how much faster that would be.
  double floor_cycles = 0;
  double headroom = 0;  // cycles / floor_cycles; 0 when not known
  std::vector<LineProfile> lines;
};

// A piece of advice from a rule, with the numbers that it rests on.
struct Advice {
  std::string id;      // of the rule: "casts", "dma_wait", …
  std::string kernel;  // HLO name
  std::string file;
  std::vector<int> lines;
  std::string title;  // one line
  std::string text;   // what is seen, and what to do
  double share = 0;   // of the program's cycles that it is about: an upper bound of the gain
  std::map<std::string, double> evidence;
};

struct Totals {
  double cycles = 0;
  double attributed_cycles = 0;  // on lines above 0
  double dma_bytes = 0;
  double dma_wait_cycles = 0;
  double spills = 0;
  double casts = 0;
  double relayouts = 0;
  std::map<std::string, double> slots;
};

struct SourceText {
  std::string path;
  std::string text;
};

struct ProfileReport {
  std::string file;
  std::string function;
  std::string inputs;
  std::string chip;
  cost::CostResult cost;       // a time, or why there is none
  bool static_counts = false;  // no time: each bundle counts once
  std::vector<LineProfile> lines;
  std::vector<KernelProfile> kernels;
  Totals totals;
  std::vector<Advice> advice;  // most important first
  std::vector<SourceText> sources;
  std::optional<Roofline> roofline;  // of the whole program
  double cycles_per_ms = 0;

  const cost::Estimate* estimate() const { return std::get_if<cost::Estimate>(&cost); }
};

}  // namespace kernelwright::profile
