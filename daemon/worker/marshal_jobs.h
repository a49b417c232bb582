// Jobs and their results between worker.proto and core values, and parsing of whole messages. Requests go out, replies
// come in; the opposite directions exist for the round-trip tests and for a daemon that relays a worker.
#pragma once

#include <google/protobuf/message_lite.h>

#include <string>
#include <string_view>
#include <vector>

#include "daemon/agents/toolchain.h"
#include "daemon/base/status.h"
#include "daemon/kernels/inputs.h"
#include "kernelwright/v1/worker.pb.h"

namespace kernelwright::worker {

// Fills `message` from bytes; false when they are not a message of that type. Allows deeper nesting than protobuf's
// default of 100: each level of a program graph takes three.
bool ParseMessage(std::string_view bytes, google::protobuf::MessageLite& message);

// Requests.
v1::InputSpec ToProto(const kernels::InputSpec& input);
v1::Source ToProto(const agents::Source& source);
v1::Limits ToProto(const agents::Limits& limits);
v1::CodeError ToProto(const CodeError& error);
v1::Artefact ToProto(const agents::Artefact& artefact);
v1::Job ToProto(const agents::TraceRequest& request);
v1::Job ToProto(const agents::CompileRequest& request);
v1::Job ToProto(const agents::JudgeRequest& request);
v1::Job ProbeToProto(const std::vector<std::string>& chips, const agents::Limits& limits);

// kInternal when a path does not follow the syntax of an input's name.
Expected<kernels::InputSpec> FromProto(const v1::InputSpec& proto);
agents::Source FromProto(const v1::Source& proto);
agents::Limits FromProto(const v1::Limits& proto);
CodeError FromProto(const v1::CodeError& proto);
agents::Artefact FromProto(v1::Artefact&& proto);
// kInternal when the job is of another kind.
Expected<agents::TraceRequest> TraceRequestFromProto(v1::Job&& proto);
Expected<agents::CompileRequest> CompileRequestFromProto(v1::Job&& proto);
Expected<agents::JudgeRequest> JudgeRequestFromProto(v1::Job&& proto);

// Results. kInternal when the outcome is unknown or a finished job brings the payload of another kind.
Expected<agents::TraceReport> TraceReportFromProto(v1::JobResult&& proto);
Expected<agents::CompileReport> CompileReportFromProto(v1::JobResult&& proto);
Expected<agents::JudgeReport> JudgeReportFromProto(v1::JobResult&& proto);
Expected<agents::ProbeReport> ProbeReportFromProto(v1::JobResult&& proto);
v1::JobResult ToProto(const agents::TraceReport& report);
v1::JobResult ToProto(const agents::CompileReport& report);
v1::JobResult ToProto(const agents::JudgeReport& report);
v1::JobResult ToProto(const agents::ProbeReport& report);

agents::WorkerIdentity FromProto(const v1::HelloReply& proto);

}  // namespace kernelwright::worker
