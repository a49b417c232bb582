// Golden JSON and HTML of a small report. KW_UPDATE_GOLDEN=1 writes them anew; read the difference before committing
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "daemon/profile/html_text.h"
#include "daemon/profile/profile_test_util.h"
#include "daemon/profile/report_html.h"
#include "daemon/profile/report_json.h"

namespace kernelwright::profile {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

void ExpectGolden(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(KW_SOURCE_DIR) / "daemon/profile/testdata" / name;
  if (std::getenv("KW_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  EXPECT_EQ(text, cost::ReadText(path)) << name;
}

ProfileReport CastsReport() {
  PallasCall call;
  call.name = "casts";
  call.grid = {4};
  Operation exp;
  exp.name = "exp";
  exp.spans = {{"kernel.py", 10, 18, 10, 28, "casts_kernel"}};
  call.kernel.operations = {exp};
  const Program program = ProgramOf(call);
  return Report("v5e", "casts", &program);
}

TEST(ReportJsonTest, Golden) {
  json object = ReportToJson(CastsReport());
  // The slices are compared by the page's golden file, in a form that people can read.
  for (json& kernel : object["kernels"]) {
    if (kernel["step"].is_object()) kernel["step"]["timeline"].erase("units");
    if (kernel["step"].is_object()) kernel["step"]["timeline"].erase("lines");
  }
  ExpectGolden("casts.json", object.dump(1) + "\n");
}

TEST(ReportJsonTest, HasTheFieldsOfTheContract) {
  const json object = ReportToJson(CastsReport());
  for (const char* name :
       {"chip", "estimate_ms", "interval", "confidence", "refusal", "bound", "lines", "kernels", "totals", "advice"}) {
    EXPECT_TRUE(object.contains(name)) << name;
  }
  for (const json& line : object["lines"]) {
    for (const char* name : {"line", "cycles", "share", "slots", "spills", "dma_bytes"}) {
      EXPECT_TRUE(line.contains(name)) << name;
    }
  }
  double cycles = 0;
  for (const json& line : object["lines"]) cycles += line["cycles"].get<double>();
  EXPECT_EQ(cycles, object["totals"]["cycles"].get<double>()) << "as printed";
  EXPECT_EQ(object["evidence"]["class"], "estimated");
  EXPECT_EQ(object["evidence"]["chip"], "v5e");
}

TEST(ReportJsonTest, WhatIsNotKnownIsNull) {
  const json object = ReportToJson(Report("v5e", "when"));
  EXPECT_EQ(object["counts"], "static");
  EXPECT_TRUE(object["estimate_ms"].is_null());
  EXPECT_TRUE(object["interval"].is_null());
  EXPECT_THAT(object["refusal"]["reason"].get<std::string>(), HasSubstr("a branch depends on data"));
  EXPECT_TRUE(object["totals"]["dma_bytes"].is_null());
  for (const json& kernel : object["kernels"]) {
    EXPECT_TRUE(kernel["milliseconds"].is_null());
    EXPECT_TRUE(kernel["step"].is_null());
    EXPECT_TRUE(kernel["headroom"].is_null());
  }
}

TEST(ReportHtmlTest, Golden) { ExpectGolden("casts.html", ReportToHtml({{CastsReport(), std::nullopt}})); }

TEST(ReportHtmlTest, IsSelfContainedAndFollowsTheReadersColours) {
  const Program program = ProgramOf(cost::MatmulCall(256, 256, 256, 128, 128, 128));
  const ProfileReport report = Report("v5e", "mms", &program);
  const std::string html = ReportToHtml({{report, Compare(report, Report("v6e", "mms", &program))}});
  for (const char* outside : {"http://", "https://", "src=", "@import", "url(", "<link"}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(html, HasSubstr("timeline of a step"));
  EXPECT_THAT(html, HasSubstr("roofline of mm.1"));
  EXPECT_THAT(html, HasSubstr("VMEM by allocation"));
  EXPECT_THAT(html, HasSubstr("estimated by replay"));
  EXPECT_THAT(html, HasSubstr("Against mms in kernel.py on v6e"));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(html, Not(HasSubstr("inf\"")));
}

TEST(ReportHtmlTest, TextOfTheUserIsEscaped) {
  ProfileReport report = CastsReport();
  report.function = "<script>alert(1)</script>";
  report.sources[0].text = "x = '<b>&\"'\n" + report.sources[0].text;
  const std::string html = ReportToHtml({{report, std::nullopt}});
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)"));
}

TEST(ReportHtmlTest, ARefusalSaysWhatIsNotKnown) {
  const std::string html = ReportToHtml({{Report("v5e", "when"), std::nullopt}});
  EXPECT_THAT(html, HasSubstr("No time: "));
  EXPECT_THAT(html, HasSubstr("are not known"));
  EXPECT_THAT(html, Not(HasSubstr("timeline of a step")));
}

TEST(HtmlTextTest, Numbers) {
  EXPECT_EQ(Compact(1234567), "1.23 M");
  EXPECT_EQ(Compact(12345), "12.3 k");
  EXPECT_EQ(Compact(42), "42");
  EXPECT_EQ(Bytes(4 << 20), "4.00 MiB");
  EXPECT_EQ(Time(0.043), "43.0 µs");
  EXPECT_EQ(Time(11.84), "11.8 ms");
}

}  // namespace
}  // namespace kernelwright::profile
