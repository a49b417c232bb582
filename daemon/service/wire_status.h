// Errors across the wire: our Status as a gRPC status with an ErrorDetail, and back, so that a client shows the same
// words, place and remedy as the place where the error arose.
#pragma once

#include <string>

#include "daemon/base/status.h"
#include "grpcpp/support/status.h"

namespace kernelwright::service {

grpc::Status ToWire(const Status& status);

// A status without detail comes from the transport itself; `call` says what was tried.
Status FromWire(const grpc::Status& status, const std::string& call);

// The inverse of ErrorKindName; kInternal for names of later versions.
ErrorKind ErrorKindFromName(const std::string& name);

}  // namespace kernelwright::service
