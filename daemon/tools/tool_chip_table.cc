// chip_table: the figures of a chip that plans rest on, each with how it is known.
#include "daemon/base/text.h"
#include "daemon/tools/registry.h"
#include "fmt/core.h"

namespace kernelwright::tools {
namespace {

std::string FigureLine(const std::string& name, const cost::Figure& figure, double scale, const char* unit) {
  return fmt::format("{}: {:g} {} ({})\n", name, figure.value / scale, unit, cost::FigureStateName(figure.state));
}

std::string Describe(const cost::Chip& chip) {
  constexpr double kMib = 1024.0 * 1024.0;
  std::string text =
      fmt::format("{} ({}), model {}\n", chip.name, chip.device_kind, cost::CalibrationName(chip.calibration));
  text += fmt::format("cores per device: {}{}; MXUs per core: {} of {}x{}, native types {}\n", chip.cores_per_device,
                      chip.megacore ? " (a parallel grid axis is split over them)" : "", chip.mxu_count, chip.mxu_size,
                      chip.mxu_size, Join(chip.native_mxu_dtypes, ", "));
  text += FigureLine("clock", chip.clock_ghz, 1, "GHz");
  text += FigureLine("HBM bandwidth per core, peak", chip.hbm_gbps, 1, "GB/s");
  text += FigureLine("share of it that long copies reach", chip.bandwidth_fraction, 1, "");
  text += FigureLine("VMEM", chip.vmem_bytes, kMib, "MiB");
  text += FigureLine("VMEM that a kernel may use by default", chip.vmem_default_limit_bytes, kMib, "MiB");
  text += FigureLine("SMEM", chip.smem_bytes, kMib, "MiB");
  for (const auto& [dtype, peak] : chip.peak_tflops) {
    text += FigureLine("peak per core, " + dtype, peak, 1, "TFLOP/s");
    text += fmt::format("  ridge: {:.0f} FLOP per byte of HBM traffic\n", peak.value * 1e3 / chip.hbm_gbps.value);
  }
  text +=
      fmt::format("issue slots per cycle: {} vector arithmetic, {} load, {} store, {} transcendental, {} cross-lane\n",
                  chip.valu_slots, chip.load_slots, chip.store_slots, chip.eup_slots, chip.xlu_slots);
  text += fmt::format("vector register: {} sublanes x {} lanes x 32 bit\n", chip.sublanes, chip.lanes);
  return text;
}

class ChipTableTool : public Tool {
 public:
  explicit ChipTableTool(const cost::ChipTable& chips) : chips_(chips) {}

  const models::ToolSpec& spec() const override { return spec_; }

  Expected<ToolOutput> Run(const Json& arguments, const std::stop_token&) override {
    const Expected<const cost::Chip*> chip = chips_.Get(TextArgument(arguments, "chip"));
    if (!chip) return ToolError(chip.error());
    return ToolOutput{.text = Describe(**chip), .data = {{"chip", (*chip)->name}}};
  }

 private:
  const cost::ChipTable& chips_;
  const models::ToolSpec spec_{
      "chip_table", "Figures of a TPU: memory sizes, bandwidth, peaks, issue slots; each with how it is known.",
      ObjectSchema({{"chip", StringField("v5e, v5p, v6e or tpu7x")}}, {"chip"})};
};

}  // namespace

std::vector<std::unique_ptr<Tool>> MakeChipTable(const ToolServices& services) {
  if (services.chips == nullptr) return {};
  return OneTool<ChipTableTool>(*services.chips);
}

}  // namespace kernelwright::tools
