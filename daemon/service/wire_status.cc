// Mapping of errors to gRPC and back; see wire_status.h.
#include "daemon/service/wire_status.h"

#include "kernelwright/v1/session.pb.h"

namespace kernelwright::service {
namespace {

grpc::StatusCode CodeOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kOk:
      return grpc::StatusCode::OK;
    case ErrorKind::kUserCode:
    case ErrorKind::kUsage:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case ErrorKind::kEnvironment:
    case ErrorKind::kConflict:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case ErrorKind::kCancelled:
      return grpc::StatusCode::CANCELLED;
    case ErrorKind::kLimit:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case ErrorKind::kNotFound:
      return grpc::StatusCode::NOT_FOUND;
    case ErrorKind::kInternal:
      return grpc::StatusCode::INTERNAL;
  }
  return grpc::StatusCode::INTERNAL;
}

}  // namespace

ErrorKind ErrorKindFromName(const std::string& name) {
  for (const ErrorKind kind : {ErrorKind::kUserCode, ErrorKind::kUsage, ErrorKind::kEnvironment, ErrorKind::kCancelled,
                               ErrorKind::kLimit, ErrorKind::kConflict, ErrorKind::kNotFound}) {
    if (ErrorKindName(kind) == name) return kind;
  }
  return ErrorKind::kInternal;
}

grpc::Status ToWire(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  v1::ErrorDetail detail;
  detail.set_kind(std::string(ErrorKindName(status.kind())));
  detail.set_message(status.message());
  detail.set_where(status.where());
  detail.set_remedy(status.remedy());
  return {CodeOf(status.kind()), status.ToString(), detail.SerializeAsString()};
}

Status FromWire(const grpc::Status& status, const std::string& call) {
  if (status.ok()) return {};
  v1::ErrorDetail detail;
  if (!status.error_details().empty() && detail.ParseFromString(status.error_details()) && !detail.kind().empty()) {
    return Status(ErrorKindFromName(detail.kind()), detail.message(), detail.where(), detail.remedy());
  }
  switch (status.error_code()) {
    case grpc::StatusCode::CANCELLED:
      return Status(ErrorKind::kCancelled, call + " was cancelled");
    case grpc::StatusCode::UNAUTHENTICATED:
      return Status(ErrorKind::kEnvironment, "the daemon refused the token of its discovery file", "",
                    "It was restarted meanwhile: run the command again.");
    case grpc::StatusCode::UNIMPLEMENTED:
      return Status(ErrorKind::kEnvironment, "the daemon does not know the call " + call, "",
                    "It is of another version: run 'kernelwright stop', then the command again.");
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Status(ErrorKind::kLimit, "the daemon did not answer " + call + " in time", "",
                    "Run 'kernelwright doctor', or use --in-process.");
    case grpc::StatusCode::UNAVAILABLE:
      return Status(ErrorKind::kInternal, "the connection to the daemon was lost during " + call, "",
                    "What was stored is kept. Run the command again; 'kernelwright runs list' shows interrupted runs.");
    default:
      return Status(ErrorKind::kInternal, call + " failed: " + status.error_message());
  }
}

}  // namespace kernelwright::service
