// Field by field between protobuf and values; see marshal.h.
#include "daemon/service/marshal.h"

#include <string>

#include "google/protobuf/util/json_util.h"

namespace kernelwright::service {

v1::StartRunRequest ToProto(const agents::RunRequest& request) {
  v1::StartRunRequest result;
  result.set_kind(request.kind);
  result.set_file(request.file);
  result.set_function(request.function);
  result.set_inputs(request.inputs);
  result.mutable_chips()->Assign(request.chips.begin(), request.chips.end());
  result.set_reference_file(request.reference_file);
  result.set_reference_function(request.reference_function);
  result.set_python(request.python);
  result.set_budget_seconds(request.budget_seconds);
  result.set_max_compiles(request.max_compiles);
  result.set_timeout_seconds(request.timeout_seconds);
  result.set_sandbox(request.sandbox);
  result.set_working_directory(request.working_directory);
  result.mutable_environment()->insert(request.environment.begin(), request.environment.end());
  result.set_client(request.client);
  result.set_lift_into(request.lift_into);
  result.set_exactness(request.exactness);
  return result;
}

agents::RunRequest FromProto(const v1::StartRunRequest& request) {
  agents::RunRequest result;
  result.kind = request.kind();
  result.file = request.file();
  result.function = request.function();
  result.inputs = request.inputs();
  result.chips.assign(request.chips().begin(), request.chips().end());
  result.reference_file = request.reference_file();
  result.reference_function = request.reference_function();
  result.python = request.python();
  result.budget_seconds = request.budget_seconds();
  result.max_compiles = request.max_compiles();
  result.timeout_seconds = request.timeout_seconds();
  result.sandbox = request.sandbox();
  result.working_directory = request.working_directory();
  result.environment.insert(request.environment().begin(), request.environment().end());
  result.client = request.client();
  result.lift_into = request.lift_into();
  result.exactness = request.exactness();
  return result;
}

v1::RunRecord ToProto(const agents::RunInfo& run) {
  v1::RunRecord result;
  result.set_run(run.run);
  result.set_kind(run.kind);
  result.set_status(run.status);
  result.set_file(run.file);
  result.set_function(run.function);
  result.mutable_chips()->Assign(run.chips.begin(), run.chips.end());
  result.set_created_unix_ms(run.created_ms);
  result.set_updated_unix_ms(run.updated_ms);
  result.set_candidates(run.candidates);
  result.set_speedup(run.speedup);
  result.set_result_json(run.result_json);
  result.set_exit_code(static_cast<uint32_t>(run.exit_code));
  return result;
}

agents::RunInfo FromProto(const v1::RunRecord& run) {
  agents::RunInfo result;
  result.run = run.run();
  result.kind = run.kind();
  result.status = run.status();
  result.file = run.file();
  result.function = run.function();
  result.chips.assign(run.chips().begin(), run.chips().end());
  result.created_ms = run.created_unix_ms();
  result.updated_ms = run.updated_unix_ms();
  result.candidates = run.candidates();
  result.speedup = run.speedup();
  result.result_json = run.result_json();
  result.exit_code = static_cast<int>(run.exit_code());
  return result;
}

v1::PruneRequest ToProto(const agents::PruneOptions& options) {
  v1::PruneRequest result;
  result.set_older_than_seconds(options.older_than_seconds);
  result.set_keep(options.keep);
  result.set_dry_run(options.dry_run);
  return result;
}

agents::PruneOptions FromProto(const v1::PruneRequest& options) {
  return {options.older_than_seconds(), options.keep(), options.dry_run()};
}

v1::PruneReply ToProto(const agents::PruneResult& result) {
  v1::PruneReply reply;
  reply.set_runs(result.runs);
  reply.set_freed_bytes(result.freed_bytes);
  return reply;
}

agents::PruneResult FromProto(const v1::PruneReply& result) { return {result.runs(), result.freed_bytes()}; }

v1::DoctorRequest ToProto(const agents::DoctorOptions& options) {
  v1::DoctorRequest result;
  result.set_file(options.file);
  result.set_python(options.python);
  result.mutable_chips()->Assign(options.chips.begin(), options.chips.end());
  result.set_working_directory(options.working_directory);
  result.mutable_environment()->insert(options.environment.begin(), options.environment.end());
  result.set_sandbox(options.sandbox);
  return result;
}

agents::DoctorOptions FromProto(const v1::DoctorRequest& options) {
  agents::DoctorOptions result;
  result.file = options.file();
  result.python = options.python();
  result.chips.assign(options.chips().begin(), options.chips().end());
  result.working_directory = options.working_directory();
  result.environment.insert(options.environment().begin(), options.environment().end());
  result.sandbox = options.sandbox();
  return result;
}

v1::DoctorItem ToProto(const agents::DoctorItem& item) {
  v1::DoctorItem result;
  result.set_name(item.name);
  result.set_status(item.status);
  result.set_value(item.value);
  result.set_remedy(item.remedy);
  return result;
}

agents::DoctorItem FromProto(const v1::DoctorItem& item) {
  return {item.name(), item.status(), item.value(), item.remedy()};
}

Expected<v1::Event> ToProto(const agents::RunEvent& event) {
  v1::Event result;
  result.set_sequence(event.sequence);
  result.set_run(event.run);
  result.set_time_unix_ms(event.time_ms);
  const google::protobuf::FieldDescriptor* field = v1::Event::descriptor()->FindFieldByName(event.kind);
  if (field == nullptr || field->containing_oneof() == nullptr) return result;
  google::protobuf::Message* payload = result.GetReflection()->MutableMessage(&result, field);
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto parsed = google::protobuf::util::JsonStringToMessage(event.payload_json, payload, options);
  if (!parsed.ok()) {
    return Fail(ErrorKind::kInternal, "event " + std::to_string(event.sequence) + " of kind " + event.kind +
                                          " cannot be read: " + std::string(parsed.message()));
  }
  return result;
}

Expected<agents::RunEvent> FromProto(const v1::Event& event) {
  agents::RunEvent result;
  result.sequence = event.sequence();
  result.run = event.run();
  result.time_ms = event.time_unix_ms();
  if (event.kind_case() == v1::Event::KIND_NOT_SET) return result;
  const auto* field = v1::Event::descriptor()->FindFieldByNumber(event.kind_case());
  result.kind = field->name();
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  const auto printed = google::protobuf::util::MessageToJsonString(event.GetReflection()->GetMessage(event, field),
                                                                   &result.payload_json, options);
  if (!printed.ok()) {
    return Fail(ErrorKind::kInternal, "event " + std::to_string(event.sequence()) + " cannot be written as JSON");
  }
  return result;
}

}  // namespace kernelwright::service
