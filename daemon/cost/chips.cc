// Reading the chip table. Every field is required and range checked here, once, so that the model can divide by any of
// them; an edited file fails with the name of the field instead of giving a wrong time.
#include "daemon/cost/chips.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace kernelwright::cost {
namespace {

using Json = nlohmann::json;

constexpr const char* kRemedy = "Correct the chip table (agents/chips.json)";

class Reader {
 public:
  Reader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  const Status& status() const { return status_; }

  void Text(const char* field, std::string* out) {
    const Json* value = Member(field);
    if (value == nullptr) return;
    if (!value->is_string() || value->get_ref<const std::string&>().empty()) {
      return Problem(field, "must be a text that is not empty");
    }
    *out = value->get<std::string>();
  }

  void Flag(const char* field, bool* out) {
    const Json* value = Member(field);
    if (value == nullptr) return;
    if (!value->is_boolean()) return Problem(field, "must be true or false");
    *out = value->get<bool>();
  }

  void Integer(const char* field, int low, int high, int* out) {
    const Json* value = Member(field);
    if (value == nullptr) return;
    if (!value->is_number_integer()) return Problem(field, "must be an integer");
    const auto number = value->get<int64_t>();
    if (number < low || number > high) {
      return Problem(field, "must lie between " + std::to_string(low) + " and " + std::to_string(high));
    }
    *out = static_cast<int>(number);
  }

  void Texts(const char* field, std::vector<std::string>* out) {
    const Json* value = Member(field);
    if (value == nullptr) return;
    if (!value->is_array()) return Problem(field, "must be a list of texts");
    for (const Json& item : *value) {
      if (!item.is_string()) return Problem(field, "must be a list of texts");
      out->push_back(item.get<std::string>());
    }
  }

  void Number(const char* field, double low, double high, Figure* out) {
    const Json* value = Member(field);
    if (value == nullptr) return;
    Reader figure(*value, path_ + "." + field);
    figure.FigureBody(low, high, out);
    if (status_.ok()) status_ = figure.status();
  }

  void FigureBody(double low, double high, Figure* out) {
    if (!json_.is_object()) return Problem("", "must be an object with value, source and state");
    const Json* value = Member("value");
    if (value == nullptr) return;
    if (!value->is_number()) return Problem("value", "must be a number");
    out->value = value->get<double>();
    if (!std::isfinite(out->value) || out->value < low || out->value > high) {
      return Problem("value", "is out of range");
    }
    Text("source", &out->source);
    std::string state;
    Text("state", &state);
    if (state == "calibrated") {
      out->state = FigureState::kCalibrated;
    } else if (state == "documented") {
      out->state = FigureState::kDocumented;
    } else if (state == "derived") {
      out->state = FigureState::kDerived;
    } else if (state == "assumed") {
      out->state = FigureState::kAssumed;
    } else {
      Problem("state", "must be calibrated, documented, derived or assumed");
    }
  }

  const Json* Member(const char* field) {
    if (!status_.ok()) return nullptr;
    if (!json_.is_object() || !json_.contains(field)) {
      Problem(field, "is missing");
      return nullptr;
    }
    return &json_.at(field);
  }

  void Problem(const std::string& field, const std::string& what) {
    if (!status_.ok()) return;
    status_ = Status(ErrorKind::kEnvironment, (field.empty() ? path_ : path_ + "." + field) + " " + what, "chip table",
                     kRemedy);
  }

 private:
  const Json& json_;
  std::string path_;
  Status status_;
};

Status ReadFigures(const Json& json, const std::string& path, Chip* chip) {
  Reader reader(json, path);
  reader.Number("clock_ghz", 0.1, 10, &chip->clock_ghz);
  reader.Number("hbm_gbps", 1, 1e6, &chip->hbm_gbps);
  reader.Number("bandwidth_fraction", 0.1, 1, &chip->bandwidth_fraction);
  reader.Number("dma_latency_us", 0, 100, &chip->dma_latency_us);
  reader.Number("loop_iteration_us", 0, 100, &chip->loop_iteration_us);
  reader.Number("interval_fraction", 0.01, 0.99, &chip->interval_fraction);
  reader.Number("hbm_bytes", 1e6, 1e15, &chip->hbm_bytes);
  reader.Number("vmem_bytes", 1e5, 1e12, &chip->vmem_bytes);
  reader.Number("vmem_default_limit_bytes", 1e5, 1e12, &chip->vmem_default_limit_bytes);
  reader.Number("smem_bytes", 1e3, 1e12, &chip->smem_bytes);
  reader.Number("internal_scratch_bytes", 0, 1e9, &chip->internal_scratch_bytes);
  if (json.is_object() && json.contains("branch_delay_slots")) {
    Figure figure;
    reader.Number("branch_delay_slots", 0, 16, &figure);
    chip->branch_delay_slots = static_cast<int>(figure.value);
    const Json& shortened = json.at("branch_delay_slots");
    if (shortened.contains("shortened")) {
      if (!shortened.at("shortened").is_boolean())
        reader.Problem("branch_delay_slots.shortened", "must be true or false");
      chip->shortens_branch_slots = shortened.at("shortened") == true;
    }
  }
  const auto optional = [&](const char* name, double high, std::optional<Figure>* out) {
    if (!json.is_object() || !json.contains(name)) return;
    Figure figure;
    reader.Number(name, 0, high, &figure);
    *out = figure;
  };
  optional("mxu_cycles_per_vmatmul", 1000, &chip->mxu_cycles_per_vmatmul);
  optional("xlu_cycles_per_transpose", 1000, &chip->xlu_cycles_per_transpose);
  optional("xlu_cycles_per_lane_move", 1000, &chip->xlu_cycles_per_lane_move);
  optional("cycles_per_empty_bundle", 1000, &chip->cycles_per_empty_bundle);
  optional("cycles_per_strided_load", 1000, &chip->cycles_per_strided_load);
  optional("program_overhead_us", 1000, &chip->program_overhead_us);
  optional("kernel_overhead_us", 1000, &chip->kernel_overhead_us);
  return reader.status();
}

Status ReadChip(const Json& json, const std::string& path, Chip* chip) {
  Reader reader(json, path);
  reader.Text("name", &chip->name);
  reader.Text("topology", &chip->topology);
  reader.Text("device_kind", &chip->device_kind);
  std::string calibration;
  reader.Text("calibration", &calibration);
  if (calibration == "calibrated") {
    chip->calibration = Calibration::kCalibrated;
  } else if (calibration == "partly") {
    chip->calibration = Calibration::kPartly;
  } else if (calibration == "uncalibrated") {
    chip->calibration = Calibration::kUncalibrated;
  } else {
    reader.Problem("calibration", "must be calibrated, partly or uncalibrated");
  }
  reader.Integer("cores_per_device", 1, 64, &chip->cores_per_device);
  reader.Flag("megacore", &chip->megacore);
  reader.Integer("mxu_count", 1, 64, &chip->mxu_count);
  reader.Integer("mxu_size", 8, 4096, &chip->mxu_size);
  reader.Texts("native_mxu_dtypes", &chip->native_mxu_dtypes);
  const Json* figures = reader.Member("figures");
  const Json* peaks = reader.Member("peak_tflops");
  const Json* slots = reader.Member("slots");
  const Json* tiling = reader.Member("tiling");
  if (!reader.status().ok()) return reader.status();

  if (Status status = ReadFigures(*figures, path + ".figures", chip); !status.ok()) return status;
  if (!peaks->is_object() || peaks->empty()) reader.Problem("peak_tflops", "must be an object that is not empty");
  if (!reader.status().ok()) return reader.status();
  for (const auto& [dtype, unused] : peaks->items()) {
    Reader peak(*peaks, path + ".peak_tflops");
    peak.Number(dtype.c_str(), 0.1, 1e6, &chip->peak_tflops[dtype]);
    if (!peak.status().ok()) return peak.status();
  }
  Reader slot(*slots, path + ".slots");
  slot.Integer("valu", 1, 64, &chip->valu_slots);
  slot.Integer("load", 1, 64, &chip->load_slots);
  slot.Integer("store", 1, 64, &chip->store_slots);
  slot.Integer("eup", 1, 64, &chip->eup_slots);
  slot.Integer("xlu", 1, 64, &chip->xlu_slots);
  if (!slot.status().ok()) return slot.status();
  Reader tile(*tiling, path + ".tiling");
  tile.Integer("lanes", 8, 4096, &chip->lanes);
  tile.Integer("sublanes", 1, 256, &chip->sublanes);
  tile.Flag("hbm_packs_16bit_rows", &chip->hbm_packs_16bit_rows);
  return tile.status();
}

}  // namespace

const char* FigureStateName(FigureState state) {
  switch (state) {
    case FigureState::kCalibrated:
      return "calibrated";
    case FigureState::kDocumented:
      return "documented";
    case FigureState::kDerived:
      return "derived";
    case FigureState::kAssumed:
      break;
  }
  return "assumed";
}

const char* CalibrationName(Calibration calibration) {
  switch (calibration) {
    case Calibration::kCalibrated:
      return "calibrated";
    case Calibration::kPartly:
      return "partly";
    case Calibration::kUncalibrated:
      break;
  }
  return "uncalibrated";
}

std::optional<double> Chip::DevicePeakFlops(std::string_view dtype) const {
  const auto it = peak_tflops.find(std::string(dtype));
  if (it == peak_tflops.end()) return std::nullopt;
  return it->second.value * 1e12 * cores_per_device;
}

const Chip* ChipTable::Find(std::string_view name) const {
  for (const Chip& chip : chips_) {
    if (chip.name == name || chip.device_kind == name) return &chip;
  }
  return nullptr;
}

Expected<const Chip*> ChipTable::Get(std::string_view name) const {
  if (const Chip* chip = Find(name)) return chip;
  std::string known;
  for (const Chip& chip : chips_) known += (known.empty() ? "" : ", ") + chip.name;
  return Fail(ErrorKind::kUsage, "no chip is called '" + std::string(name) + "'", "--chip", "Choose one of " + known);
}

Expected<ChipTable> ParseChips(std::string_view json) {
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) {
    return Fail(ErrorKind::kEnvironment, "the text is not valid JSON", "chip table", kRemedy);
  }
  Reader top(root, "root");
  int version = 0;
  top.Integer("version", 1, 1, &version);
  const Json* list = top.Member("chips");
  if (!top.status().ok()) return Fail(top.status());
  if (!list->is_array() || list->empty()) {
    return Fail(ErrorKind::kEnvironment, "root.chips must be a list that is not empty", "chip table", kRemedy);
  }
  std::vector<Chip> chips;
  std::set<std::string> names;
  for (size_t i = 0; i < list->size(); ++i) {
    Chip chip;
    if (Status status = ReadChip((*list)[i], "chips[" + std::to_string(i) + "]", &chip); !status.ok()) {
      return Fail(std::move(status));
    }
    if (!names.insert(chip.name).second) {
      return Fail(ErrorKind::kEnvironment, "chips[" + std::to_string(i) + "].name '" + chip.name + "' is there twice",
                  "chip table", kRemedy);
    }
    chips.push_back(std::move(chip));
  }
  return ChipTable(std::move(chips));
}

}  // namespace kernelwright::cost
