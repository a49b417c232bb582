// calibrate: fits the figures of a chip to times that were measured on it, and writes a chip table that can be used.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <variant>

#include "daemon/base/files.h"
#include "daemon/base/gzip.h"
#include "daemon/cli/context.h"
#include "daemon/cli/paths.h"
#include "daemon/cost/calibration.h"
#include "fmt/core.h"

namespace kernelwright::cli {
namespace {

using nlohmann::json;

constexpr size_t kMostDumpBytes = size_t{1} << 30;
constexpr const char* kForm =
    "Write [{\"program\": \"folder of dumps\", \"chip\": \"v5e\", \"ms\": 1.25}, …]; docs/cost-model.md says how to "
    "make the "
    "dumps.";

struct Flags {
  std::string pairs;
  std::string write;
  std::string table;
  bool compare = false;
};

struct Pair {
  std::string program;
  std::string chip;
  double milliseconds = 0;
};

Expected<std::vector<Pair>> ReadPairs(const std::string& path) {
  auto text = ReadFile(path);
  if (!text) return Fail(text.error());
  const json root = json::parse(*text, nullptr, false);
  const json* list = root.is_object() && root.contains("pairs") ? &root["pairs"] : &root;
  if (!list->is_array() || list->empty()) {
    return Fail(ErrorKind::kUsage, "the file holds no list of pairs", path, kForm);
  }
  // Times from the host hold the dispatch of a call; it is taken off.
  const double offset = root.is_object() && root.contains("offset_ms") && root["offset_ms"].is_number()
                            ? root["offset_ms"].get<double>()
                            : 0;
  std::vector<Pair> pairs;
  for (const json& entry : *list) {
    const std::string where = path + ", pair " + std::to_string(pairs.size() + 1);
    if (!entry.is_object() || !entry.contains("program") || !entry["program"].is_string() || !entry.contains("ms") ||
        !entry["ms"].is_number()) {
      return Fail(ErrorKind::kUsage, "a pair needs a program and ms", where, kForm);
    }
    Pair pair{entry["program"].get<std::string>(), entry.value("chip", std::string()),
              entry["ms"].get<double>() - offset};
    if (pair.milliseconds <= 0) return Fail(ErrorKind::kUsage, "ms must be above zero", where, kForm);
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

Expected<cost::Dumps> ReadDumps(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return Fail(ErrorKind::kNotFound, "a program is a folder of the compiler's dumps; there is none", folder.string(),
                kForm);
  }
  cost::Dumps dumps;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    const bool packed = name.ends_with(".gz");
    if (packed) name.resize(name.size() - 3);
    if (!name.ends_with(".txt")) continue;
    auto text = ReadFile(entry.path(), kMostDumpBytes);
    if (!text) return Fail(text.error());
    if (packed) {
      text = GzipDecompress(*text, kMostDumpBytes);
      if (!text) return Fail(text.error());
    }
    dumps.push_back({std::move(name), *std::move(text)});
  }
  std::sort(dumps.begin(), dumps.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return dumps;
}

json ToJson(const cost::CalibrationResult& result, bool fitted) {
  json figures = json::array();
  for (const cost::FittedFigure& figure : result.figures) {
    figures.push_back({{"name", figure.name}, {"before", figure.before}, {"after", figure.after}});
  }
  json pairs = json::array();
  for (const cost::PairOutcome& pair : result.pairs) {
    json entry = {{"program", pair.name}, {"measured_ms", pair.measured}};
    if (pair.before > 0) entry["estimate_before_ms"] = pair.before;
    if (pair.after > 0) entry["estimate_after_ms"] = pair.after;
    if (!pair.left_out.empty()) entry["left_out"] = pair.left_out;
    pairs.push_back(std::move(entry));
  }
  json out = {{"schema", kSchemaVersion},
              {"chip", result.chip.name},
              {"pairs", pairs},
              {"figures", figures},
              {"median_error_before", result.error_before}};
  if (fitted) {
    out["median_error_after"] = result.error_after;
    out["median_error_held_out"] = result.error_held_out;
    out["percentile_90_held_out"] = result.worst_held_out;
  }
  return out;
}

std::string ToText(const cost::CalibrationResult& result, bool fitted) {
  std::string text =
      fmt::format("{} on {}\n\n", fitted ? "Calibration" : "Estimates against measured times", result.chip.name);
  text += fmt::format("{:>12} {:>12}{}  program\n", "measured ms", "estimate", fitted ? "      fitted" : "");
  for (const cost::PairOutcome& pair : result.pairs) {
    const std::string before = pair.before > 0 ? fmt::format("{:.4g}", pair.before) : "–";
    const std::string after = pair.after > 0 ? fmt::format("{:.4g}", pair.after) : "–";
    text += fmt::format("{:>12.4g} {:>12}{}  {}{}\n", pair.measured, before, fitted ? fmt::format("{:>12}", after) : "",
                        pair.name, pair.left_out.empty() ? "" : " (left out: " + pair.left_out + ")");
  }
  text += fmt::format("\nmedian error {:.1f} %", 100 * result.error_before);
  if (fitted) {
    text += fmt::format(
        " before, {:.1f} % after; {:.1f} % where each half is estimated by the other half's figures "
        "(90th percentile {:.1f} %)\n\n",
        100 * result.error_after, 100 * result.error_held_out, 100 * result.worst_held_out);
    for (const cost::FittedFigure& figure : result.figures) {
      text += fmt::format("  {:<26} {:.4g} → {:.4g}\n", figure.name, figure.before, figure.after);
    }
  } else {
    text += "\n";
  }
  return text;
}

Expected<int> Run(Context* context, const Flags& flags) {
  auto pairs = ReadPairs(flags.pairs);
  if (!pairs) return Fail(pairs.error());
  std::string wanted = context->common.chips.empty() ? pairs->front().chip : context->common.chips.front();
  if (wanted.empty())
    return Fail(ErrorKind::kUsage, "no pair names its chip", flags.pairs, "Add --chip, or \"chip\" to the pairs.");
  auto installed = FindEngineOptions();
  if (!installed) return Fail(installed.error());
  const std::filesystem::path table_path =
      flags.table.empty() ? installed->agents_folder / "chips.json" : std::filesystem::path(flags.table);
  auto table_text = ReadFile(table_path);
  if (!table_text) return Fail(table_text.error());
  auto table = cost::ParseChips(*table_text);
  if (!table) return Fail(table.error());
  auto chip = table->Get(wanted);
  if (!chip) return Fail(chip.error());

  const std::filesystem::path base = std::filesystem::path(flags.pairs).parent_path();
  std::vector<cost::MeasuredProgram> programs;
  std::vector<cost::PairOutcome> unread;
  for (const Pair& pair : *pairs) {
    if (!pair.chip.empty() && pair.chip != (*chip)->name) continue;
    auto dumps = ReadDumps(base / pair.program);
    if (!dumps) return Fail(dumps.error());
    auto program = cost::PreparedProgram::Read(*std::move(dumps), **chip);
    if (const auto* refusal = std::get_if<cost::Refusal>(&program)) {
      unread.push_back({pair.program, pair.milliseconds, 0, 0, "no estimate: " + refusal->reason});
      continue;
    }
    programs.push_back({pair.program, pair.milliseconds, std::get<cost::PreparedProgram>(std::move(program))});
  }
  cost::CalibrationResult result;
  if (flags.compare) {
    result = cost::Compare(**chip, programs);
  } else {
    auto fitted = cost::Calibrate(**chip, programs);
    if (!fitted) return Fail(fitted.error());
    result = *std::move(fitted);
  }
  result.pairs.insert(result.pairs.end(), unread.begin(), unread.end());
  if (!flags.write.empty()) {
    if (flags.compare) return Fail(ErrorKind::kUsage, "--compare fits nothing that could be written", "--write");
    const std::string source = fmt::format(
        "`kernelwright calibrate` on {} measured programs of {}, median error held out {:.1f} %", programs.size(),
        std::filesystem::path(flags.pairs).filename().string(), 100 * result.error_held_out);
    auto text = cost::WriteCalibration(*table_text, result, source);
    if (!text) return Fail(text.error());
    if (auto checked = cost::ParseChips(*text); !checked) return Fail(checked.error());
    if (Status written = WriteFileAtomically(flags.write, *text); !written.ok()) return Fail(written);
    context->output.Note("kernelwright: the chip table is in " + flags.write +
                         "; use it with KERNELWRIGHT_CHIPS=" + flags.write);
  }
  if (context->output.json()) {
    context->output.OutJson(ToJson(result, !flags.compare));
  } else {
    context->output.Out(ToText(result, !flags.compare));
  }
  return 0;
}

}  // namespace

void AddCalibrate(CLI::App* program, Context* context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program->add_subcommand(
      "calibrate", "Fit the figures of a chip to times that were measured on it, and say how good they are");
  command
      ->add_option("pairs", flags->pairs,
                   "JSON list of {program, chip, ms}; a program is a folder of the compiler's dumps")
      ->required()
      ->type_name("PAIRS.json");
  command
      ->add_option("--write", flags->write, "Write the chip table with the fitted figures; KERNELWRIGHT_CHIPS takes it")
      ->type_name("CHIPS.json");
  command->add_option("--chips", flags->table, "Start from this chip table instead of the shipped one")
      ->type_name("CHIPS.json");
  command->add_flag("--compare", flags->compare, "Only compare the estimates with the times; fit nothing");
  AddCommonOptions(command, context,
                   "  kernelwright calibrate pairs.json --chip v5e\n"
                   "  kernelwright calibrate pairs.json --chip v5e --write my_chips.json\n"
                   "  kernelwright calibrate pairs.json --compare --json");
  command->callback([=] { context->command = [=] { return Run(context, *flags); }; });
}

}  // namespace kernelwright::cli
