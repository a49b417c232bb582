#include "daemon/service/marshal_profile.h"

#include <gtest/gtest.h>

namespace kernelwright::service {
namespace {

TEST(MarshalProfileTest, RequestSurvivesTheWire) {
  agents::ProfileRequest request;
  request.file = "/a/k.py";
  request.function = "C.f";
  request.inputs = "x=f32[8]";
  request.chips = {"v5e", "v6e"};
  request.against_file = "/a/other.py";
  request.against_function = "g";
  request.against_chip = "v5p";
  request.want_html = true;
  request.python = "/p";
  request.timeout_seconds = 1.5;
  request.budget_seconds = 60;
  request.sandbox = "landlock";
  request.working_directory = "/a";
  request.environment = {{"PATH", "/bin"}};
  const agents::ProfileRequest back = FromProto(ToProto(request));
  EXPECT_EQ(back.file, request.file);
  EXPECT_EQ(back.function, request.function);
  EXPECT_EQ(back.inputs, request.inputs);
  EXPECT_EQ(back.chips, request.chips);
  EXPECT_EQ(back.against_file, request.against_file);
  EXPECT_EQ(back.against_function, request.against_function);
  EXPECT_EQ(back.against_chip, request.against_chip);
  EXPECT_EQ(back.want_html, request.want_html);
  EXPECT_EQ(back.python, request.python);
  EXPECT_EQ(back.timeout_seconds, request.timeout_seconds);
  EXPECT_EQ(back.budget_seconds, request.budget_seconds);
  EXPECT_EQ(back.sandbox, request.sandbox);
  EXPECT_EQ(back.working_directory, request.working_directory);
  EXPECT_EQ(back.environment, request.environment);
}

TEST(MarshalProfileTest, ReplySurvivesTheWire) {
  const agents::ProfileReply back = FromProto(ToProto(agents::ProfileReply{"{}", "<html>", 3}));
  EXPECT_EQ(back.result_json, "{}");
  EXPECT_EQ(back.html, "<html>");
  EXPECT_EQ(back.exit_code, 3);
}

}  // namespace
}  // namespace kernelwright::service
