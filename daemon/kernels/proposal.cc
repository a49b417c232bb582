// See proposal.h.
#include "daemon/kernels/proposal.h"

namespace kernelwright::kernels {

const char* ExactnessName(Exactness exactness) {
  switch (exactness) {
    case Exactness::kBitEqual:
      return "bit-equal";
    case Exactness::kReassociation:
      return "reassociation";
    case Exactness::kLowerPrecision:
      return "lower-precision";
  }
  return "";
}

}  // namespace kernelwright::kernels
