// Names of the enumerations of estimate.h, as shown to users and in JSON.
#include "daemon/cost/estimate.h"

namespace kernelwright::cost {

const char* EvidenceClassName(EvidenceClass evidence) {
  switch (evidence) {
    case EvidenceClass::kCompiled:
      return "compiled";
    case EvidenceClass::kChecked:
      return "checked";
    case EvidenceClass::kMeasured:
      return "measured";
    case EvidenceClass::kEstimated:
      break;
  }
  return "estimated";
}

const char* ConfidenceName(Confidence confidence) {
  switch (confidence) {
    case Confidence::kLow:
      return "low";
    case Confidence::kHigh:
      return "high";
    case Confidence::kMedium:
      break;
  }
  return "medium";
}

const char* BoundName(Bound bound) {
  switch (bound) {
    case Bound::kCompute:
      return "compute";
    case Bound::kMemory:
      return "memory";
    case Bound::kLatency:
      return "latency";
    case Bound::kVector:
      return "vector";
    case Bound::kScalar:
      return "scalar";
    case Bound::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace kernelwright::cost
