// The cost interface: what every estimator returns, a time with its interval and evidence, or a refusal with its
// reason. Estimators are functions over values: dumps or a program graph in, CostResult out; no files, no processes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kernelwright::cost {

// The class of evidence of a number (docs/evidence.md). The classes never mix.
enum class EvidenceClass { kCompiled, kChecked, kEstimated, kMeasured };

// "compiled", "checked", "estimated", "measured".
const char* EvidenceClassName(EvidenceClass evidence);

// How far an estimate is to be trusted: set by the chip's calibration state and by cross-checks.
enum class Confidence { kLow, kMedium, kHigh };
const char* ConfidenceName(Confidence confidence);  // "low", "medium", "high"

// What produced a number, so that it can be repeated. Shown with the number everywhere.
struct Evidence {
  EvidenceClass evidence_class = EvidenceClass::kEstimated;
  std::string chip;                             // "v5e"
  std::map<std::string, std::string> versions;  // jax, jaxlib, libtpu, kernelwright
  std::string method;                           // "replay", "roofline", …
};

// What bounds a kernel's time.
enum class Bound { kUnknown, kCompute, kMemory, kLatency, kVector, kScalar };
const char* BoundName(Bound bound);  // "unknown", "compute", "memory", "latency", "vector", "scalar"

// Cost of one source line. Sums over lines equal the kernel's totals; line 0 holds what the compiler gives no line.
struct LineCost {
  std::string file;
  int line = 0;
  double cycles = 0;                    // weighted by how often its bundles ran
  std::map<std::string, double> slots;  // unit name (MXU, VPU, XLU, EUP, load, store, scalar) -> issue slots used
  double spills = 0;                    // vector spills and fills executed
  double dma_bytes = 0;
};

// One compiled unit (a Pallas kernel or an XLA fusion) inside the program.
struct KernelCost {
  std::string name;            // HLO name, "mm.1"
  int64_t bundles = 0;         // static length of its schedule
  int64_t calls = 0;           // times the program called it
  double cycles = 0;           // total over all calls, after lower bounds were applied
  double dma_wait_cycles = 0;  // part of it spent waiting for copies
  double dma_bytes = 0;        // bytes moved from and to HBM
  int64_t loop_iterations = 0;
  Bound bound = Bound::kUnknown;
};

struct Estimate {
  double milliseconds = 0;
  double low_milliseconds = 0;  // interval from the chip's calibration state
  double high_milliseconds = 0;
  Confidence confidence = Confidence::kMedium;
  Evidence evidence;
  Bound bound = Bound::kUnknown;
  double floor_milliseconds = 0;  // max(flops / peak, bytes / bandwidth) of the algorithm; 0 when unknown
  double roofline_fraction = 0;   // floor / time, 0…1; 0 when the floor is unknown
  double dma_bytes = 0;
  double total_cycles = 0;
  std::vector<KernelCost> kernels;
  std::vector<LineCost> lines;
  std::vector<std::string> warnings;    // what lowers the confidence, in words
  bool below_floor = false;             // less than 0.95 of floor_milliseconds: not to be believed as it is
  double cross_check_milliseconds = 0;  // the same time by the simple formula (docs/cost-model.md); 0 when not made
  double dma_wait_share = 0;            // part of the time spent waiting for copies
};

// Why there is no number. `instruction` is the text of the bundle operation that stopped the estimate, if one did.
struct Refusal {
  std::string reason;
  std::string instruction;
  Evidence evidence;
};

using CostResult = std::variant<Estimate, Refusal>;

struct Chip;

// Work that the algorithm must do at least, from the program graph and the arguments; either part may be unknown.
struct Work {
  std::optional<double> flops;  // multiply and add count as two
  std::optional<double> bytes;  // inputs read once plus outputs written once
  std::string flop_dtype;       // operand type of the products: "bfloat16", "float32", "int8", …
};

// Least time that `work` can take on `chip`, in ms: max(flops / peak, bytes / bandwidth) of a device. 0 when unknown.
double FloorMilliseconds(const Work& work, const Chip& chip);

// True when a time is below 0.95 of the floor, which no machine can reach: the estimate or the work is wrong.
bool BelowFloor(double milliseconds, const Work& work, const Chip& chip);

}  // namespace kernelwright::cost
