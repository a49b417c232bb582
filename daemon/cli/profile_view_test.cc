#include "daemon/cli/profile_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelwright::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

json Profiled() {
  return {{"function", "mm"},
          {"file", "/a/k.py"},
          {"inputs", "x=f32[8]"},
          {"results",
           {{{"chip", "v5e"},
             {"counts", "executed"},
             {"error", nullptr},
             {"estimate_ms", 11.5},
             {"interval", {7.5, 15.5}},
             {"confidence", "medium"},
             {"bound", "latency"},
             {"roofline_fraction", 0.06},
             {"refusal", nullptr},
             {"evidence", {{"class", "estimated"}, {"method", "replay"}, {"versions", {{"jax", "0.10.2"}}}}},
             {"lines",
              {{{"file", ""}, {"line", 0}, {"share", 0.75}, {"cycles", 75.0}},
               {{"file", "/a/k.py"},
                {"line", 15},
                {"source", "o[...] = x[...]"},
                {"share", 0.25},
                {"cycles", 25.0},
                {"casts", 128.0},
                {"casts_inserted", true}}}},
             {"kernels",
              {{{"name", "mm.1"},
                {"share", 1.0},
                {"milliseconds", 11.5},
                {"cycles", 100.0},
                {"dma_wait_cycles", 40.0},
                {"dma_bytes", 1048576.0},
                {"bound", "latency"},
                {"grid_steps", 8},
                {"headroom", 3.5}}}},
             {"advice",
              {{{"id", "dma_wait"},
                {"title", "copies are waited for during 40 % of each step"},
                {"text", "Larger blocks fit."},
                {"kernel", "mm.1"},
                {"file", "/a/k.py"},
                {"lines", {15}},
                {"share", 0.4}}}}}}}};
}

TEST(ProfileViewTest, ShowsTimeLinesKernelsAndAdvice) {
  const std::string text = RenderProfile(Profiled(), Style());
  EXPECT_THAT(text, HasSubstr("11.5 ms estimated (7.50 ms … 15.5 ms, medium confidence), bound by latency"));
  EXPECT_THAT(text, HasSubstr("jax 0.10.2"));
  EXPECT_THAT(text, HasSubstr("75 % ████████████████████"));
  EXPECT_THAT(text, HasSubstr("15  o[...] = x[...]  ← 128 casts by the compiler"));
  EXPECT_THAT(text, HasSubstr("8 steps, waits 40 %, 1.0 MiB moved, 3.50x its floor"));
  EXPECT_THAT(text, HasSubstr("k.py:15; about 40 % of the time"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(ProfileViewTest, ARefusalSaysWhatIsNotKnown) {
  json result = Profiled();
  json& chip = result["results"][0];
  chip["counts"] = "static";
  chip["refusal"] = {{"reason", "a branch depends on data"}, {"instruction", "sbr.rel"}};
  chip["estimate_ms"] = nullptr;
  const std::string text = RenderProfile(result, Style());
  EXPECT_THAT(text, HasSubstr("no time: a branch depends on data"));
  EXPECT_THAT(text, HasSubstr("each bundle of the schedule counts once"));
}

TEST(ProfileViewTest, AFailedChipShowsItsError) {
  const json result = {
      {"results", {{{"chip", "v5e"}, {"error", {{"message", "does not compile"}, {"where", "k.py:3"}}}}}}};
  EXPECT_THAT(RenderProfile(result, Style()), HasSubstr("v5e: failed: does not compile\n  k.py:3"));
}

}  // namespace
}  // namespace kernelwright::cli
