// Between the profile's messages and the engine's values.
#pragma once

#include "daemon/agents/profile_request.h"
#include "kernelwright/v1/profile.pb.h"

namespace kernelwright::service {

v1::ProfileRequest ToProto(const agents::ProfileRequest& request);
agents::ProfileRequest FromProto(const v1::ProfileRequest& request);

v1::ProfileReply ToProto(const agents::ProfileReply& reply);
agents::ProfileReply FromProto(v1::ProfileReply reply);

}  // namespace kernelwright::service
