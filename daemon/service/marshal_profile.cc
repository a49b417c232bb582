// Field by field; see marshal_profile.h.
#include "daemon/service/marshal_profile.h"

#include <utility>

namespace kernelwright::service {

v1::ProfileRequest ToProto(const agents::ProfileRequest& request) {
  v1::ProfileRequest message;
  message.set_file(request.file);
  message.set_function(request.function);
  message.set_inputs(request.inputs);
  message.mutable_chips()->Assign(request.chips.begin(), request.chips.end());
  message.set_against_file(request.against_file);
  message.set_against_function(request.against_function);
  message.set_against_chip(request.against_chip);
  message.set_want_html(request.want_html);
  message.set_python(request.python);
  message.set_timeout_seconds(request.timeout_seconds);
  message.set_budget_seconds(request.budget_seconds);
  message.set_sandbox(request.sandbox);
  message.set_working_directory(request.working_directory);
  for (const auto& [name, value] : request.environment) (*message.mutable_environment())[name] = value;
  return message;
}

agents::ProfileRequest FromProto(const v1::ProfileRequest& message) {
  agents::ProfileRequest request;
  request.file = message.file();
  request.function = message.function();
  request.inputs = message.inputs();
  request.chips.assign(message.chips().begin(), message.chips().end());
  request.against_file = message.against_file();
  request.against_function = message.against_function();
  request.against_chip = message.against_chip();
  request.want_html = message.want_html();
  request.python = message.python();
  request.timeout_seconds = message.timeout_seconds();
  request.budget_seconds = message.budget_seconds();
  request.sandbox = message.sandbox();
  request.working_directory = message.working_directory();
  for (const auto& [name, value] : message.environment()) request.environment[name] = value;
  return request;
}

v1::ProfileReply ToProto(const agents::ProfileReply& reply) {
  v1::ProfileReply message;
  message.set_result_json(reply.result_json);
  message.set_html(reply.html);
  message.set_exit_code(static_cast<uint32_t>(reply.exit_code));
  return message;
}

agents::ProfileReply FromProto(v1::ProfileReply message) {
  agents::ProfileReply reply;
  reply.result_json = std::move(*message.mutable_result_json());
  reply.html = std::move(*message.mutable_html());
  reply.exit_code = static_cast<int>(message.exit_code());
  return reply;
}

}  // namespace kernelwright::service
