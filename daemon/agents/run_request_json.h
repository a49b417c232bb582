// A request as the store keeps it, so that an interrupted run can be taken up by another process.
#pragma once

#include "daemon/agents/engine.h"
#include "daemon/base/json.h"

namespace kernelwright::agents {

Json RunRequestToJson(const RunRequest& request);
// kInternal when it is not what RunRequestToJson makes.
Expected<RunRequest> RunRequestFromJson(const Json& value);

}  // namespace kernelwright::agents
