// Channels over the private socket; see channel.h.
#include "daemon/service/channel.h"

#include <mutex>

#include "daemon/base/log.h"
#include "grpc/grpc.h"
#include "grpc/support/log.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace kernelwright::service {
namespace {

void ToOurLog(gpr_log_func_args* line) {
  switch (line->severity) {
    case GPR_LOG_SEVERITY_DEBUG:
    case GPR_LOG_SEVERITY_INFO:
      LogDebug("grpc: {}", line->message);
      break;
    case GPR_LOG_SEVERITY_ERROR:
      LogWarning("grpc: {}", line->message);
      break;
  }
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& socket) {
  SetUpGrpc();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

void SetUpGrpc() {
  static std::once_flag once;
  std::call_once(once, [] {
    gpr_set_log_function(ToOurLog);
    grpc_init();
  });
}

}  // namespace kernelwright::service
