// A check's values survive the wire.
#include "daemon/service/marshal_check.h"

#include "gtest/gtest.h"

namespace kernelwright::service {
namespace {

TEST(MarshalCheck, ResultSurvives) {
  agents::CheckResult result;
  result.file = "/k.py";
  result.failure = Status(ErrorKind::kLimit, "too slow", "/k.py", "wait");
  diagnose::Diagnostic diagnostic;
  diagnostic.id = "D01";
  diagnostic.severity = diagnose::Severity::kWarning;
  diagnostic.stage = diagnose::Stage::kBlocks;
  diagnostic.place = {"/k.py", 1, 2, 3, 4, 5};
  diagnostic.fixes = {{"t", {{"/k.py", {1, 2}, "x", "hash"}}, {"v6e"}}};
  result.diagnostics = {diagnostic};
  const agents::CheckResult back = FromProto(ToProto(result));
  EXPECT_EQ(back.failure.kind(), ErrorKind::kLimit);
  ASSERT_EQ(back.diagnostics.size(), 1U);
  EXPECT_EQ(back.diagnostics[0].severity, diagnose::Severity::kWarning);
  EXPECT_EQ(back.diagnostics[0].stage, diagnose::Stage::kBlocks);
  EXPECT_EQ(back.diagnostics[0].place, diagnostic.place);
  EXPECT_EQ(back.diagnostics[0].fixes[0].edits[0].range, (kernels::ByteRange{1, 2}));
}

TEST(MarshalCheck, RequestSurvives) {
  agents::CheckRequest request;
  request.file = "/k.py";
  request.files = {{"/k.py", "text"}};
  request.semantics = false;
  request.document = "d";
  const agents::CheckRequest back = FromProto(ToProto(request));
  EXPECT_EQ(back.files, request.files);
  EXPECT_FALSE(back.semantics);
  EXPECT_EQ(back.document, "d");
}

}  // namespace
}  // namespace kernelwright::service
