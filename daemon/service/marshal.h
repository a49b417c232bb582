// Between the messages of session.proto and run.proto and the engine's values. Nothing else in the daemon knows both.
#pragma once

#include "daemon/agents/engine.h"
#include "daemon/base/status.h"
#include "kernelwright/v1/session.pb.h"

namespace kernelwright::service {

v1::StartRunRequest ToProto(const agents::RunRequest& request);
agents::RunRequest FromProto(const v1::StartRunRequest& request);

v1::RunRecord ToProto(const agents::RunInfo& run);
agents::RunInfo FromProto(const v1::RunRecord& run);

v1::PruneRequest ToProto(const agents::PruneOptions& options);
agents::PruneOptions FromProto(const v1::PruneRequest& options);

v1::PruneReply ToProto(const agents::PruneResult& result);
agents::PruneResult FromProto(const v1::PruneReply& result);

v1::DoctorRequest ToProto(const agents::DoctorOptions& options);
agents::DoctorOptions FromProto(const v1::DoctorRequest& options);

v1::DoctorItem ToProto(const agents::DoctorItem& item);
agents::DoctorItem FromProto(const v1::DoctorItem& item);

// The payload becomes the typed message that `kind` names; fields that this build does not know are left out. An event
// of a kind that this build does not know keeps its number and has no payload: a reader's place must still advance.
// kInternal when the payload is not JSON of that message.
Expected<v1::Event> ToProto(const agents::RunEvent& event);

// Every field of the payload is written, also those with their default value. `kind` is empty for an unknown kind.
Expected<agents::RunEvent> FromProto(const v1::Event& event);

}  // namespace kernelwright::service
