// Chips as data: every figure that the cost model uses, with where it came from and how far it can be trusted.
// The text is agents/chips.json; the caller reads it, so that a user or `calibrate` can supply another one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::cost {

// How a figure is known. Only kCalibrated was fitted to times measured on that chip.
enum class FigureState { kCalibrated, kDocumented, kDerived, kAssumed };
const char* FigureStateName(FigureState state);  // "calibrated", "documented", "derived", "assumed"

struct Figure {
  double value = 0;
  std::string source;
  FigureState state = FigureState::kAssumed;
};

// How well the chip's model as a whole was compared with measured times.
enum class Calibration { kCalibrated, kPartly, kUncalibrated };
const char* CalibrationName(Calibration calibration);  // "calibrated", "partly", "uncalibrated"

// All figures are per TensorCore unless they say otherwise.
struct Chip {
  std::string name;         // "v5e"
  std::string topology;     // name that libtpu takes: "v5e:1x1"
  std::string device_kind;  // "TPU v5 lite"
  Calibration calibration = Calibration::kUncalibrated;
  int cores_per_device = 1;  // 2 where one JAX device drives two cores (megacore)
  bool megacore = false;     // a "parallel" grid axis is split over the cores
  int mxu_count = 0;
  int mxu_size = 0;  // edge of the systolic array: 128 or 256
  std::vector<std::string> native_mxu_dtypes;

  Figure clock_ghz;
  Figure hbm_gbps;            // peak, 1e9 bytes a second
  Figure bandwidth_fraction;  // share of the peak that long copies reach
  Figure dma_latency_us;      // from the end of a transfer to the wait that sees it
  Figure loop_iteration_us;   // overhead of a grid step in the cross-check
  Figure interval_fraction;   // half width of the interval around an estimate, 0.2 = ±20 %
  Figure hbm_bytes;
  Figure vmem_bytes;  // physical
  Figure vmem_default_limit_bytes;
  Figure smem_bytes;
  Figure internal_scratch_bytes;                 // VMEM that the compiler takes for itself in each kernel
  std::optional<Figure> mxu_cycles_per_vmatmul;  // lower bound of time by products issued
  // Only of chips whose schedules leave waiting for units to the hardware; all units of a kind at work.
  std::optional<Figure> xlu_cycles_per_transpose;
  std::optional<Figure> xlu_cycles_per_lane_move;
  std::optional<Figure> cycles_per_empty_bundle;
  std::optional<Figure> cycles_per_strided_load;
  std::optional<Figure> program_overhead_us;  // around every program, whatever it does
  std::optional<Figure> kernel_overhead_us;   // of every kernel and fusion that a program runs
  std::map<std::string, Figure> peak_tflops;  // by operand dtype

  int branch_delay_slots = 4;          // bundles that still run behind a branch
  bool shortens_branch_slots = false;  // empty ones at the end are printed as one

  // Issue slots per cycle of the units.
  int valu_slots = 0;
  int load_slots = 0;
  int store_slots = 0;
  int eup_slots = 0;
  int xlu_slots = 0;

  // Vector layout.
  int lanes = 128;
  int sublanes = 8;
  bool hbm_packs_16bit_rows = false;  // 16-bit arrays in HBM use packed rows (16) instead of 8 in the second-last tile

  double bytes_per_cycle() const { return hbm_gbps.value / clock_ghz.value; }  // peak
  double cycles_per_ms() const { return clock_ghz.value * 1e6; }
  // Peak of the device (all its cores) in flop/s for a dtype, or nothing when the MXU has no figure for it.
  std::optional<double> DevicePeakFlops(std::string_view dtype) const;
  double DeviceBandwidth() const { return hbm_gbps.value * 1e9 * cores_per_device; }  // bytes/s
};

class ChipTable {
 public:
  explicit ChipTable(std::vector<Chip> chips) : chips_(std::move(chips)) {}
  const std::vector<Chip>& chips() const { return chips_; }
  // By name ("v5e") or device kind ("TPU v5 lite"); null when there is none.
  const Chip* Find(std::string_view name) const;
  // As Find, with an error that lists the known names.
  Expected<const Chip*> Get(std::string_view name) const;

 private:
  std::vector<Chip> chips_;
};

// Parses and validates the JSON text. An error names the chip and the field.
Expected<ChipTable> ParseChips(std::string_view json);

}  // namespace kernelwright::cost
