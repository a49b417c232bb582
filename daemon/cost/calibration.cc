// A pattern search over few figures in logarithmic steps: the replay has no derivatives, and a figure must stay within
// what is physically plausible for a chip whatever the pairs say.
#include "daemon/cost/calibration.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

namespace kernelwright::cost {
namespace {

constexpr size_t kLeastPairs = 6;
constexpr size_t kPairsPerFigure = 3;
constexpr double kImplausible = 5;    // measured against estimated
constexpr double kLargestTerm = 0.6;  // of one pair in the sum: an outlier must not pull the fit
constexpr double kSensitivity = 0.005;
constexpr double kFirstStep = 0.2;
constexpr double kLastStep = 0.006;

struct Knob {
  const char* name;
  double low;  // factors on the value that it has now
  double high;
  std::function<double*(Chip*)> at;  // null when the chip has no such figure
};

double* Optional(std::optional<Figure>* figure) { return *figure ? &(*figure)->value : nullptr; }

const std::vector<Knob>& Knobs() {
  static const std::vector<Knob> knobs = {
      {"clock_ghz", 0.6, 1.5, [](Chip* c) { return &c->clock_ghz.value; }},
      {"bandwidth_fraction", 0.5, 1.11, [](Chip* c) { return &c->bandwidth_fraction.value; }},
      {"mxu_cycles_per_vmatmul", 0.7, 1.6, [](Chip* c) { return Optional(&c->mxu_cycles_per_vmatmul); }},
      {"dma_latency_us", 0.3, 4, [](Chip* c) { return &c->dma_latency_us.value; }},
      {"kernel_overhead_us", 0.1, 8, [](Chip* c) { return Optional(&c->kernel_overhead_us); }},
      {"program_overhead_us", 0.1, 8, [](Chip* c) { return Optional(&c->program_overhead_us); }},
      {"xlu_cycles_per_transpose", 0.3, 3, [](Chip* c) { return Optional(&c->xlu_cycles_per_transpose); }},
      {"xlu_cycles_per_lane_move", 0.3, 3, [](Chip* c) { return Optional(&c->xlu_cycles_per_lane_move); }},
      {"cycles_per_strided_load", 0.3, 4, [](Chip* c) { return Optional(&c->cycles_per_strided_load); }},
      {"cycles_per_empty_bundle", 0.3, 4, [](Chip* c) { return Optional(&c->cycles_per_empty_bundle); }},
  };
  return knobs;
}

using Pairs = std::vector<const MeasuredProgram*>;

// The time in ms; nothing when it is refused.
std::optional<double> Time(const MeasuredProgram& program, const Chip& chip) {
  const auto time = program.program.Milliseconds(chip);
  if (const auto* milliseconds = std::get_if<double>(&time)) return *milliseconds;
  return std::nullopt;
}

double Distance(const Chip& chip, const Pairs& pairs) {
  double sum = 0;
  for (const MeasuredProgram* pair : pairs) {
    const auto time = Time(*pair, chip);
    sum += time && *time > 0 ? std::min(std::abs(std::log(*time / pair->milliseconds)), kLargestTerm) : kLargestTerm;
  }
  return pairs.empty() ? 0 : sum / static_cast<double>(pairs.size());
}

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::llround(q * static_cast<double>(values.size() - 1)))];
}

std::vector<double> Errors(const Chip& chip, const Pairs& pairs) {
  std::vector<double> errors;
  for (const MeasuredProgram* pair : pairs) {
    if (const auto time = Time(*pair, chip)) errors.push_back(std::abs(*time / pair->milliseconds - 1));
  }
  return errors;
}

// The figures that the pairs depend on, most important first, as many as the pairs can tell.
std::vector<const Knob*> Choose(const Chip& chip, const Pairs& pairs) {
  std::vector<std::pair<double, const Knob*>> ranked;
  const auto times = [&](const Chip& with) {
    std::vector<double> out;
    for (const MeasuredProgram* pair : pairs) out.push_back(Time(*pair, with).value_or(1));
    return out;
  };
  const std::vector<double> now = times(chip);
  for (const Knob& knob : Knobs()) {
    Chip moved = chip;
    double* value = knob.at(&moved);
    if (value == nullptr || *value <= 0) continue;
    *value *= knob.high < 1.2 ? 0.8 : 1.25;
    const std::vector<double> then = times(moved);
    double change = 0;
    for (size_t i = 0; i < now.size(); ++i) change += std::abs(std::log(then[i] / now[i]));
    change /= static_cast<double>(now.size());
    if (change > kSensitivity) ranked.emplace_back(change, &knob);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<const Knob*> chosen;
  for (const auto& [change, knob] : ranked) {
    if (chosen.size() < pairs.size() / kPairsPerFigure) chosen.push_back(knob);
  }
  return chosen;
}

Chip Fit(const Chip& chip, const Pairs& pairs, const std::vector<const Knob*>& knobs) {
  Chip best = chip;
  double distance = Distance(best, pairs);
  for (double step = kFirstStep; step > kLastStep;) {
    bool moved = false;
    for (const Knob* knob : knobs) {
      for (const double factor : {std::exp(step), std::exp(-step)}) {
        Chip tried = best;
        double* value = knob->at(&tried);
        const double origin = *knob->at(const_cast<Chip*>(&chip));
        *value = std::clamp(*value * factor, origin * knob->low, origin * knob->high);
        const double reached = Distance(tried, pairs);
        if (reached < distance * (1 - 1e-6)) {
          best = std::move(tried);
          distance = reached;
          moved = true;
          break;
        }
      }
    }
    if (!moved) step /= 2;
  }
  return best;
}

Status Wrong(std::string what) {
  return {ErrorKind::kUsage, std::move(what), "calibrate",
          "Give device times of at least six different programs on this chip, in milliseconds; docs/cost-model.md says "
          "how."};
}

}  // namespace

CalibrationResult Compare(const Chip& chip, const std::vector<MeasuredProgram>& programs) {
  CalibrationResult result;
  result.chip = chip;
  std::vector<double> errors;
  for (const MeasuredProgram& program : programs) {
    PairOutcome outcome;
    outcome.name = program.name;
    outcome.measured = program.milliseconds;
    const auto time = program.program.Milliseconds(chip);
    if (const auto* refusal = std::get_if<Refusal>(&time)) {
      outcome.left_out = "no estimate: " + refusal->reason;
    } else {
      outcome.before = outcome.after = std::get<double>(time);
      const double ratio = outcome.before / outcome.measured;
      if (!std::isfinite(ratio) || outcome.measured <= 0 || outcome.before <= 0) {
        outcome.left_out = "not a time";
      } else if (ratio > kImplausible || ratio < 1 / kImplausible) {
        outcome.left_out = "measured and estimated differ by more than a factor of five";
      } else {
        errors.push_back(std::abs(ratio - 1));
      }
    }
    result.pairs.push_back(std::move(outcome));
  }
  result.error_before = result.error_after = Quantile(std::move(errors), 0.5);
  return result;
}

Expected<CalibrationResult> Calibrate(const Chip& chip, const std::vector<MeasuredProgram>& programs) {
  CalibrationResult result = Compare(chip, programs);
  Pairs used;
  size_t implausible = 0;
  for (size_t i = 0; i < programs.size(); ++i) {
    if (result.pairs[i].left_out.empty()) {
      used.push_back(&programs[i]);
    } else if (!result.pairs[i].left_out.starts_with("no estimate")) {
      ++implausible;
    }
  }
  if (implausible * 3 > programs.size()) {
    return Fail(Wrong(std::to_string(implausible) + " of " + std::to_string(programs.size()) +
                      " measured times are not plausible for " + chip.name));
  }
  if (used.size() < kLeastPairs) {
    return Fail(Wrong("only " + std::to_string(used.size()) + " pairs can be used; fewer than six say too little"));
  }
  const std::vector<const Knob*> knobs = Choose(chip, used);
  if (knobs.empty()) return Fail(Wrong("no figure of " + chip.name + " changes these estimates"));

  // Each half by the figures of the other one.
  Pairs halves[2];
  for (size_t i = 0; i < used.size(); ++i) halves[i % 2].push_back(used[i]);
  std::vector<double> held_out;
  for (int side = 0; side < 2; ++side) {
    const std::vector<const Knob*> fewer(
        knobs.begin(), knobs.begin() + static_cast<std::ptrdiff_t>(std::min(
                                           knobs.size(), std::max<size_t>(1, halves[side].size() / kPairsPerFigure))));
    const Chip fitted = Fit(chip, halves[side], fewer);
    for (const double error : Errors(fitted, halves[1 - side])) held_out.push_back(error);
  }
  result.error_held_out = Quantile(held_out, 0.5);
  result.worst_held_out = Quantile(held_out, 0.9);

  result.chip = Fit(chip, used, knobs);
  for (const Knob* knob : knobs) {
    Chip before = chip;
    result.figures.push_back({knob->name, *knob->at(&before), *knob->at(&result.chip)});
  }
  for (size_t i = 0; i < programs.size(); ++i) {
    if (result.pairs[i].left_out.empty()) result.pairs[i].after = Time(programs[i], result.chip).value_or(0);
  }
  result.error_after = Quantile(Errors(result.chip, used), 0.5);
  return result;
}

Expected<std::string> WriteCalibration(std::string_view chips_json, const CalibrationResult& result,
                                       const std::string& source) {
  using Json = nlohmann::ordered_json;
  Json root = Json::parse(chips_json, nullptr, false);
  if (!root.is_object() || !root.contains("chips")) {
    return Fail(ErrorKind::kEnvironment, "the text is not a chip table", "chip table");
  }
  for (Json& chip : root["chips"]) {
    if (chip.value("name", "") != result.chip.name) continue;
    for (const FittedFigure& figure : result.figures) {
      chip["figures"][figure.name] = {
          {"value", std::round(figure.after * 1e4) / 1e4}, {"source", source}, {"state", "calibrated"}};
    }
    const double spread = std::clamp(std::round(result.worst_held_out * 100) / 100, 0.1, 0.9);
    chip["figures"]["interval_fraction"] = {
        {"value", spread}, {"source", "90th percentile of the error held out; " + source}, {"state", "calibrated"}};
    chip["calibration"] = result.pairs.size() >= 12 && result.error_held_out <= 0.15 ? "calibrated" : "partly";
    return root.dump(1) + "\n";
  }
  return Fail(ErrorKind::kUsage, "the chip table has no chip '" + result.chip.name + "'", "chip table");
}

}  // namespace kernelwright::cost
