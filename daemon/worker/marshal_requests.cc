// Requests between worker.proto and core values, and the parsing of whole messages.
#include <google/protobuf/io/coded_stream.h>

#include <chrono>
#include <limits>
#include <utility>

#include "daemon/base/hash.h"
#include "daemon/worker/marshal_ir.h"
#include "daemon/worker/marshal_jobs.h"

namespace kernelwright::worker {
namespace {

constexpr int kRecursionLimit = 1000;

Status WrongKind(const char* wanted) {
  return {ErrorKind::kInternal, std::string("a job of another kind came where a ") + wanted + " job was expected",
          "worker protocol"};
}

Expected<std::vector<kernels::InputSpec>> InputsFromProto(
    const google::protobuf::RepeatedPtrField<v1::InputSpec>& protos) {
  std::vector<kernels::InputSpec> inputs;
  for (const v1::InputSpec& proto : protos) {
    Expected<kernels::InputSpec> input = FromProto(proto);
    if (!input) return Fail(input.error());
    inputs.push_back(std::move(*input));
  }
  return inputs;
}

}  // namespace

bool ParseMessage(std::string_view bytes, google::protobuf::MessageLite& message) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) return false;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(kRecursionLimit);
  return message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

v1::InputSpec ToProto(const kernels::InputSpec& input) {
  v1::InputSpec proto;
  proto.set_path(input.PathText());
  switch (input.kind) {
    case kernels::InputSpec::Kind::kTensor: {
      v1::TensorInput& tensor = *proto.mutable_tensor();
      tensor.mutable_type()->set_dtype(input.dtype);
      tensor.mutable_type()->mutable_dims()->Assign(input.dims.begin(), input.dims.end());
      if (input.range) {
        tensor.set_has_range(true);
        tensor.set_low(input.range->first);
        tensor.set_high(input.range->second);
      }
      break;
    }
    case kernels::InputSpec::Kind::kStatic:
      proto.set_static_json(input.static_json);
      break;
    case kernels::InputSpec::Kind::kPrngKey:
      proto.set_prng_key(true);
      break;
  }
  return proto;
}

Expected<kernels::InputSpec> FromProto(const v1::InputSpec& proto) {
  // The text form of an input that has nothing but a name lends its parser for the path.
  Expected<std::vector<kernels::InputSpec>> named = kernels::ParseInputs(proto.path() + "=prng", "worker protocol");
  if (!named || named->size() != 1) {
    return Fail(ErrorKind::kInternal, "the worker named an input `" + proto.path() + "`, which is not a path",
                "worker protocol", "Give the inputs with --inputs.");
  }
  kernels::InputSpec input;
  input.path = std::move(named->front().path);
  switch (proto.kind_case()) {
    case v1::InputSpec::kStaticJson:
      input.kind = kernels::InputSpec::Kind::kStatic;
      input.static_json = proto.static_json();
      break;
    case v1::InputSpec::kPrngKey:
      input.kind = kernels::InputSpec::Kind::kPrngKey;
      break;
    case v1::InputSpec::kTensor:
    case v1::InputSpec::KIND_NOT_SET:
      input.dtype = proto.tensor().type().dtype();
      input.dims.assign(proto.tensor().type().dims().begin(), proto.tensor().type().dims().end());
      if (proto.tensor().has_range()) input.range.emplace(proto.tensor().low(), proto.tensor().high());
      break;
  }
  return input;
}

v1::Source ToProto(const agents::Source& source) {
  v1::Source proto;
  proto.set_file(source.file);
  proto.set_function(source.function);
  for (const agents::FileText& file : source.files) {
    v1::FileText& to = *proto.add_files();
    to.set_path(file.path);
    to.set_text(file.text);
    to.set_sha256(Sha256Hex(file.text));
  }
  return proto;
}

agents::Source FromProto(const v1::Source& proto) {
  agents::Source source{.file = proto.file(), .function = proto.function(), .files = {}};
  for (const v1::FileText& file : proto.files()) source.files.push_back({.path = file.path(), .text = file.text()});
  return source;
}

v1::Limits ToProto(const agents::Limits& limits) {
  v1::Limits proto;
  const int64_t deadline = limits.deadline.count();
  constexpr int64_t kLongest = std::numeric_limits<uint32_t>::max();
  proto.set_deadline_milliseconds(static_cast<uint32_t>(deadline < 0 ? 0 : deadline > kLongest ? kLongest : deadline));
  proto.set_memory_bytes(limits.memory_bytes);
  proto.set_file_bytes(limits.file_bytes);
  return proto;
}

agents::Limits FromProto(const v1::Limits& proto) {
  return {.deadline = std::chrono::milliseconds(proto.deadline_milliseconds()),
          .memory_bytes = proto.memory_bytes(),
          .file_bytes = proto.file_bytes()};
}

v1::CodeError ToProto(const CodeError& error) {
  v1::CodeError proto;
  proto.set_stage(error.stage);
  proto.set_type(error.type);
  proto.set_message(error.message);
  proto.set_cause(error.cause);
  for (const SourceSpan& frame : error.frames) *proto.add_frames() = ToProto(frame);
  proto.set_traceback(error.traceback);
  return proto;
}

CodeError FromProto(const v1::CodeError& proto) {
  CodeError error{.stage = proto.stage(),
                  .type = proto.type(),
                  .message = proto.message(),
                  .cause = proto.cause(),
                  .frames = {},
                  .traceback = proto.traceback()};
  for (const v1::SourceSpan& frame : proto.frames()) error.frames.push_back(FromProto(frame));
  return error;
}

v1::Artefact ToProto(const agents::Artefact& artefact) {
  v1::Artefact proto;
  proto.set_chip(artefact.chip);
  proto.set_exported(artefact.exported);
  proto.set_sha256(artefact.sha256);
  if (artefact.error) *proto.mutable_error() = ToProto(*artefact.error);
  return proto;
}

agents::Artefact FromProto(v1::Artefact&& proto) {
  agents::Artefact artefact;
  artefact.chip = proto.chip();
  artefact.exported = std::move(*proto.mutable_exported());
  artefact.sha256 = proto.sha256();
  if (proto.has_error()) artefact.error = FromProto(proto.error());
  return artefact;
}

v1::Job ToProto(const agents::TraceRequest& request) {
  v1::Job job;
  *job.mutable_limits() = ToProto(request.limits);
  v1::TraceJob& trace = *job.mutable_trace();
  *trace.mutable_source() = ToProto(request.source);
  for (const kernels::InputSpec& input : request.inputs) *trace.add_inputs() = ToProto(input);
  for (const std::string& chip : request.chips) trace.add_chips(chip);
  trace.set_want_program(request.want_program);
  trace.set_want_artefacts(request.want_artefacts);
  return job;
}

Expected<agents::TraceRequest> TraceRequestFromProto(v1::Job&& proto) {
  if (!proto.has_trace()) return Fail(WrongKind("trace"));
  const v1::TraceJob& trace = proto.trace();
  Expected<std::vector<kernels::InputSpec>> inputs = InputsFromProto(trace.inputs());
  if (!inputs) return Fail(inputs.error());
  return agents::TraceRequest{.source = FromProto(trace.source()),
                              .inputs = std::move(*inputs),
                              .chips = {trace.chips().begin(), trace.chips().end()},
                              .want_program = trace.want_program(),
                              .want_artefacts = trace.want_artefacts(),
                              .limits = FromProto(proto.limits())};
}

v1::Job ToProto(const agents::CompileRequest& request) {
  v1::Job job;
  *job.mutable_limits() = ToProto(request.limits);
  *job.mutable_compile()->mutable_artefact() = ToProto(request.artefact);
  job.mutable_compile()->set_want_dumps(request.want_dumps);
  return job;
}

Expected<agents::CompileRequest> CompileRequestFromProto(v1::Job&& proto) {
  if (!proto.has_compile()) return Fail(WrongKind("compile"));
  return agents::CompileRequest{.artefact = FromProto(std::move(*proto.mutable_compile()->mutable_artefact())),
                                .want_dumps = proto.compile().want_dumps(),
                                .limits = FromProto(proto.limits())};
}

v1::Job ToProto(const agents::JudgeRequest& request) {
  v1::Job job;
  *job.mutable_limits() = ToProto(request.limits);
  v1::JudgeJob& judge = *job.mutable_judge();
  *judge.mutable_candidate() = ToProto(request.candidate);
  *judge.mutable_reference() = ToProto(request.reference);
  for (const agents::CheckShape& shape : request.shapes) {
    v1::CheckShape& to = *judge.add_shapes();
    to.set_name(shape.name);
    for (const kernels::InputSpec& input : shape.inputs) *to.add_inputs() = ToProto(input);
  }
  judge.mutable_seeds()->Assign(request.seeds.begin(), request.seeds.end());
  judge.mutable_tolerance()->set_reference_factor(request.tolerance.reference_factor);
  judge.mutable_tolerance()->set_floor_relative(request.tolerance.floor_relative);
  judge.set_claims_kernel(request.claims_kernel);
  judge.set_chip(request.chip);
  judge.set_reference_only(request.reference_only);
  for (const std::string& gate : request.only_gates) judge.add_only_gates(gate);
  return job;
}

Expected<agents::JudgeRequest> JudgeRequestFromProto(v1::Job&& proto) {
  if (!proto.has_judge()) return Fail(WrongKind("judge"));
  const v1::JudgeJob& judge = proto.judge();
  agents::JudgeRequest request;
  request.candidate = FromProto(judge.candidate());
  request.reference = FromProto(judge.reference());
  for (const v1::CheckShape& shape : judge.shapes()) {
    Expected<std::vector<kernels::InputSpec>> inputs = InputsFromProto(shape.inputs());
    if (!inputs) return Fail(inputs.error());
    request.shapes.push_back({.name = shape.name(), .inputs = std::move(*inputs)});
  }
  request.seeds.assign(judge.seeds().begin(), judge.seeds().end());
  request.tolerance = {.reference_factor = judge.tolerance().reference_factor(),
                       .floor_relative = judge.tolerance().floor_relative()};
  request.claims_kernel = judge.claims_kernel();
  request.chip = judge.chip();
  request.reference_only = judge.reference_only();
  request.only_gates.assign(judge.only_gates().begin(), judge.only_gates().end());
  request.limits = FromProto(proto.limits());
  return request;
}

v1::Job ProbeToProto(const std::vector<std::string>& chips, const agents::Limits& limits) {
  v1::Job job;
  *job.mutable_limits() = ToProto(limits);
  v1::ProbeJob& probe = *job.mutable_probe();
  for (const std::string& chip : chips) probe.add_chips(chip);
  return job;
}

}  // namespace kernelwright::worker
