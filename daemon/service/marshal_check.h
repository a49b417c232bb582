// Between the messages of check.proto and the engine's values.
#pragma once

#include "daemon/agents/check.h"
#include "kernelwright/v1/check.pb.h"

namespace kernelwright::service {

v1::CheckRequest ToProto(const agents::CheckRequest& request);
agents::CheckRequest FromProto(const v1::CheckRequest& request);

v1::CheckStage ToProto(const agents::CheckStageReport& stage);
agents::CheckStageReport FromProto(const v1::CheckStage& stage);

v1::CheckResult ToProto(const agents::CheckResult& result);
agents::CheckResult FromProto(const v1::CheckResult& result);

v1::Diagnostic ToProto(const diagnose::Diagnostic& diagnostic);
diagnose::Diagnostic FromProto(const v1::Diagnostic& diagnostic);

}  // namespace kernelwright::service
