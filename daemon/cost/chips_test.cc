#include "daemon/cost/chips.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "daemon/cost/cost_test_util.h"

namespace kernelwright::cost {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Json Table() { return Json::parse(ReadText(std::filesystem::path(KW_SOURCE_DIR) / "agents/chips.json")); }

std::string ErrorOf(const Json& table) {
  const auto parsed = ParseChips(table.dump());
  return parsed ? "" : parsed.error().ToString();
}

TEST(ChipsTest, ShippedTableHoldsTheFiveChips) {
  for (const char* name : {"v4", "v5e", "v5p", "v6e", "tpu7x"}) {
    const Chip& chip = ShippedChip(name);
    EXPECT_FALSE(chip.topology.empty());
    EXPECT_FALSE(chip.clock_ghz.source.empty());
    EXPECT_GT(chip.DevicePeakFlops("bfloat16").value_or(0), 1e14);
  }
  EXPECT_EQ(ShippedChips().Find("TPU v5 lite"), ShippedChips().Find("v5e"));
  EXPECT_NEAR(*ShippedChip("v5p").DevicePeakFlops("bfloat16"), 459e12, 1);
  EXPECT_FALSE(ShippedChip("tpu7x").DevicePeakFlops("int8"));
}

// What the MXU can do at the given clock and what the peak figure says must be the same number.
TEST(ChipsTest, PeakFollowsFromClockAndArrays) {
  for (const char* name : {"v4", "v5e", "v5p", "v6e"}) {
    const Chip& chip = ShippedChip(name);
    const double rows = chip.mxu_size == 256 ? 2 : 1;
    const double derived = chip.clock_ghz.value * 1e9 * chip.mxu_count * rows * 2 * chip.mxu_size * chip.mxu_size;
    EXPECT_NEAR(chip.peak_tflops.at("bfloat16").value * 1e12 / derived, 1, 0.01) << name;
  }
}

TEST(ChipsTest, UnknownChipListsTheKnownOnes) {
  const auto chip = ShippedChips().Get("v9");
  ASSERT_FALSE(chip);
  EXPECT_EQ(chip.error().kind(), ErrorKind::kUsage);
  EXPECT_THAT(chip.error().ToString(), HasSubstr("v5e, v5p, v6e"));
}

TEST(ChipsTest, ErrorsNameTheField) {
  EXPECT_THAT(ParseChips("{").error().ToString(), HasSubstr("not valid JSON"));
  EXPECT_THAT(ParseChips("[]").error().ToString(), HasSubstr("root.version"));
  Json table = Table();
  table["chips"][1]["figures"]["clock_ghz"]["value"] = "fast";
  EXPECT_THAT(ErrorOf(table), HasSubstr("chips[1].figures.clock_ghz.value must be a number"));
  table = Table();
  table["chips"][0]["figures"].erase("hbm_gbps");
  EXPECT_THAT(ErrorOf(table), HasSubstr("chips[0].figures.hbm_gbps is missing"));
  table = Table();
  table["chips"][2]["figures"]["hbm_gbps"]["state"] = "guessed";
  EXPECT_THAT(ErrorOf(table), HasSubstr("hbm_gbps.state"));
  table = Table();
  table["chips"][2]["figures"]["bandwidth_fraction"]["value"] = 0;
  EXPECT_THAT(ErrorOf(table), HasSubstr("bandwidth_fraction.value is out of range"));
  table = Table();
  table["chips"][3]["name"] = "v5e";
  EXPECT_THAT(ErrorOf(table), HasSubstr("is there twice"));
  table = Table();
  table["chips"][0]["mxu_count"] = 0;
  EXPECT_THAT(ErrorOf(table), HasSubstr("chips[0].mxu_count"));
  table = Table();
  table["chips"][0].erase("calibration");
  EXPECT_THAT(ErrorOf(table), HasSubstr("chips[0].calibration"));
  table = Table();
  table["chips"] = Json::array();
  EXPECT_THAT(ErrorOf(table), HasSubstr("root.chips"));
}

// Every single removal of a required member is reported, none is silently accepted or crashes.
TEST(ChipsTest, EveryMemberIsRequired) {
  const Json table = Table();
  for (const auto& [key, value] : table["chips"][1].items()) {
    Json less = table;
    less["chips"][1].erase(key);
    EXPECT_THAT(ErrorOf(less), HasSubstr(key)) << key;
  }
}

}  // namespace
}  // namespace kernelwright::cost
