// Names of the enumerations in toolchain.h.
#include "daemon/agents/toolchain.h"

namespace kernelwright::agents {

const char* JobOutcomeName(JobOutcome outcome) {
  switch (outcome) {
    case JobOutcome::kDone:
      return "done";
    case JobOutcome::kCancelled:
      return "cancelled";
    case JobOutcome::kDeadline:
      return "deadline";
    case JobOutcome::kMemory:
      return "memory";
    case JobOutcome::kCrashed:
      return "crashed";
    case JobOutcome::kDisk:
      return "disk";
    case JobOutcome::kSandbox:
      return "sandbox";
  }
  return "crashed";
}

const char* GateStatusName(GateStatus status) {
  switch (status) {
    case GateStatus::kPass:
      return "pass";
    case GateStatus::kFail:
      return "fail";
    case GateStatus::kNotRun:
      return "not_run";
  }
  return "not_run";
}

}  // namespace kernelwright::agents
