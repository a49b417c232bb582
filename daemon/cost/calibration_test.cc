#include "daemon/cost/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "daemon/cost/cost_test_util.h"

namespace kernelwright::cost {
namespace {

using ::testing::HasSubstr;

const char* const kPrograms[] = {"add", "mm128", "mms", "loop", "manual", "xlaadd", "when"};

// The golden programs of v5e with the times that another clock and latency would give.
std::vector<MeasuredProgram> Measured(const Chip& truth) {
  std::vector<MeasuredProgram> out;
  for (const char* name : kPrograms) {
    auto program = PreparedProgram::Read(GoldenDumps("v5e", name), ShippedChip("v5e"));
    if (std::holds_alternative<Refusal>(program)) continue;
    const auto time = std::get<PreparedProgram>(program).Milliseconds(truth);
    if (std::holds_alternative<Refusal>(time)) continue;
    out.push_back({name, std::get<double>(time), std::get<PreparedProgram>(std::move(program))});
  }
  return out;
}

TEST(CalibrationTest, APreparedProgramTakesWhatTheEstimateSays) {
  const Chip& chip = ShippedChip("v5e");
  const auto estimate = EstimateFromDumps(GoldenDumps("v5e", "mm128"), chip, {}, {});
  auto program = PreparedProgram::Read(GoldenDumps("v5e", "mm128"), chip);
  ASSERT_TRUE(std::holds_alternative<PreparedProgram>(program));
  for (int again = 0; again < 2; ++again) {
    const auto time = std::get<PreparedProgram>(program).Milliseconds(chip);
    ASSERT_TRUE(std::holds_alternative<double>(time));
    EXPECT_DOUBLE_EQ(std::get<double>(time), std::get<Estimate>(estimate).milliseconds);
  }
}

TEST(CalibrationTest, FindsTheFiguresThatMadeTheTimes) {
  Chip truth = ShippedChip("v5e");
  truth.clock_ghz.value *= 1.2;
  truth.dma_latency_us.value *= 1.5;
  const auto programs = Measured(truth);
  ASSERT_GE(programs.size(), 6u);
  const auto result = Calibrate(ShippedChip("v5e"), programs);
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_GT(result->error_before, 0.05);
  EXPECT_LT(result->error_after, 0.03);
  EXPECT_LE(result->figures.size(), programs.size() / 3);
}

TEST(CalibrationTest, RefusesTooFewAndImplausiblePairs) {
  auto programs = Measured(ShippedChip("v5e"));
  for (MeasuredProgram& program : programs) program.milliseconds *= 50;
  auto result = Calibrate(ShippedChip("v5e"), programs);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("not plausible"));
  auto few = Measured(ShippedChip("v5e"));
  few.erase(few.begin() + 3, few.end());
  result = Calibrate(ShippedChip("v5e"), few);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("only 3 pairs"));
}

TEST(CalibrationTest, TheWrittenTableHoldsTheFigures) {
  Chip truth = ShippedChip("v5e");
  truth.clock_ghz.value *= 1.1;
  const auto result = Calibrate(ShippedChip("v5e"), Measured(truth));
  ASSERT_TRUE(result) << result.error().ToString();
  const std::string shipped = ReadText(std::filesystem::path(KW_SOURCE_DIR) / "agents/chips.json");
  const auto text = WriteCalibration(shipped, *result, "seven programs");
  ASSERT_TRUE(text) << text.error().ToString();
  const auto table = ParseChips(*text);
  ASSERT_TRUE(table) << table.error().ToString();
  const Chip& chip = *table->Find("v5e");
  EXPECT_EQ(chip.calibration, Calibration::kPartly);
  ASSERT_FALSE(result->figures.empty());
  const auto written = nlohmann::json::parse(*text)["chips"];
  for (const auto& entry : written) {
    if (entry["name"] != "v5e") continue;
    for (const FittedFigure& figure : result->figures) {
      EXPECT_NEAR(entry["figures"][figure.name]["value"].get<double>(), figure.after, 1e-3);
      EXPECT_EQ(entry["figures"][figure.name]["source"], "seven programs");
      EXPECT_EQ(entry["figures"][figure.name]["state"], "calibrated");
    }
  }
  EXPECT_EQ(table->Find("v6e")->clock_ghz.value, ShippedChip("v6e").clock_ghz.value);
  EXPECT_FALSE(WriteCalibration("[]", *result, "x"));
}

}  // namespace
}  // namespace kernelwright::cost
