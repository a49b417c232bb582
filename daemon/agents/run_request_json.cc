// See run_request_json.h. Missing fields keep their defaults, so that older records can be read.
#include "daemon/agents/run_request_json.h"

namespace kernelwright::agents {

Json RunRequestToJson(const RunRequest& request) {
  return {{"kind", request.kind},
          {"file", request.file},
          {"function", request.function},
          {"inputs", request.inputs},
          {"chips", request.chips},
          {"reference_file", request.reference_file},
          {"reference_function", request.reference_function},
          {"python", request.python},
          {"budget_seconds", request.budget_seconds},
          {"max_compiles", request.max_compiles},
          {"timeout_seconds", request.timeout_seconds},
          {"sandbox", request.sandbox},
          {"working_directory", request.working_directory},
          {"environment", request.environment},
          {"client", request.client},
          {"lift_into", request.lift_into},
          {"exactness", request.exactness}};
}

Expected<RunRequest> RunRequestFromJson(const Json& value) {
  try {
    RunRequest request;
    request.kind = value.at("kind");
    request.file = value.at("file");
    request.function = value.value("function", "");
    request.inputs = value.value("inputs", "");
    request.chips = value.value("chips", std::vector<std::string>());
    request.reference_file = value.value("reference_file", "");
    request.reference_function = value.value("reference_function", "");
    request.python = value.value("python", "");
    request.budget_seconds = value.value("budget_seconds", 0.0);
    request.max_compiles = value.value("max_compiles", 0u);
    request.timeout_seconds = value.value("timeout_seconds", 0.0);
    request.sandbox = value.value("sandbox", "");
    request.working_directory = value.value("working_directory", "");
    request.environment = value.value("environment", std::map<std::string, std::string>());
    request.client = value.value("client", "");
    request.lift_into = value.value("lift_into", "");
    request.exactness = value.value("exactness", "");
    return request;
  } catch (const Json::exception& error) {
    return Fail(ErrorKind::kInternal, std::string("the stored request cannot be read: ") + error.what(), "store");
  }
}

}  // namespace kernelwright::agents
