// Results between worker.proto and core values. A result whose outcome is not DONE has no payload; a DONE result must
// bring the payload of the job that was asked for, else the worker is not to be trusted with the rest.
#include <utility>

#include "daemon/worker/marshal_ir.h"
#include "daemon/worker/marshal_jobs.h"

namespace kernelwright::worker {
namespace {

using agents::JobOutcome;

Status Nonsense(std::string what) {
  return {ErrorKind::kInternal, std::move(what), "worker protocol",
          "The worker's Python package and this program may come from different versions: run scripts/setup."};
}

Expected<JobOutcome> OutcomeFromProto(v1::JobResult::Outcome outcome) {
  switch (outcome) {
    case v1::JobResult::DONE:
      return JobOutcome::kDone;
    case v1::JobResult::CANCELLED:
      return JobOutcome::kCancelled;
    case v1::JobResult::DEADLINE:
      return JobOutcome::kDeadline;
    case v1::JobResult::MEMORY:
      return JobOutcome::kMemory;
    case v1::JobResult::CRASHED:
      return JobOutcome::kCrashed;
    case v1::JobResult::DISK:
      return JobOutcome::kDisk;
    case v1::JobResult::SANDBOX:
      return JobOutcome::kSandbox;
    default:
      return Fail(Nonsense("the worker sent a result with the unknown outcome " + std::to_string(outcome)));
  }
}

v1::JobResult::Outcome OutcomeToProto(JobOutcome outcome) {
  switch (outcome) {
    case JobOutcome::kDone:
      return v1::JobResult::DONE;
    case JobOutcome::kCancelled:
      return v1::JobResult::CANCELLED;
    case JobOutcome::kDeadline:
      return v1::JobResult::DEADLINE;
    case JobOutcome::kMemory:
      return v1::JobResult::MEMORY;
    case JobOutcome::kCrashed:
      return v1::JobResult::CRASHED;
    case JobOutcome::kDisk:
      return v1::JobResult::DISK;
    case JobOutcome::kSandbox:
      return v1::JobResult::SANDBOX;
  }
  return v1::JobResult::CRASHED;
}

// The common part; `has_payload` and `kind` are those of the job that was asked for.
template <typename Report>
Expected<Report> Begin(const v1::JobResult& proto, bool has_payload, const char* kind) {
  Expected<JobOutcome> outcome = OutcomeFromProto(proto.outcome());
  if (!outcome) return Fail(outcome.error());
  if (*outcome == JobOutcome::kDone && !has_payload) {
    return Fail(Nonsense(std::string("the worker finished a ") + kind + " job without its result"));
  }
  Report report;
  report.outcome = *outcome;
  report.detail = proto.detail();
  report.role = proto.role();
  report.milliseconds = proto.milliseconds();
  return report;
}

v1::JobResult Begin(const agents::JobReport& report) {
  v1::JobResult proto;
  proto.set_outcome(OutcomeToProto(report.outcome));
  proto.set_detail(report.detail);
  proto.set_role(report.role);
  proto.set_milliseconds(report.milliseconds);
  return proto;
}

agents::GateStatus GateFromProto(v1::GateResult::Status status) {
  if (status == v1::GateResult::PASS) return agents::GateStatus::kPass;
  if (status == v1::GateResult::FAIL) return agents::GateStatus::kFail;
  return agents::GateStatus::kNotRun;  // also what is not known: never a pass
}

v1::GateResult::Status GateToProto(agents::GateStatus status) {
  switch (status) {
    case agents::GateStatus::kPass:
      return v1::GateResult::PASS;
    case agents::GateStatus::kFail:
      return v1::GateResult::FAIL;
    case agents::GateStatus::kNotRun:
      return v1::GateResult::NOT_RUN;
  }
  return v1::GateResult::NOT_RUN;
}

agents::Comparison ComparisonFromProto(const v1::Comparison& proto) {
  return {.shape = proto.shape(),
          .distribution = proto.distribution(),
          .seed = proto.seed(),
          .output = proto.output(),
          .candidate_error = proto.candidate_error(),
          .reference_error = proto.reference_error(),
          .limit = proto.limit(),
          .pass = proto.pass(),
          .detail = proto.detail()};
}

v1::Comparison ComparisonToProto(const agents::Comparison& comparison) {
  v1::Comparison proto;
  proto.set_shape(comparison.shape);
  proto.set_distribution(comparison.distribution);
  proto.set_seed(comparison.seed);
  proto.set_output(comparison.output);
  proto.set_candidate_error(comparison.candidate_error);
  proto.set_reference_error(comparison.reference_error);
  proto.set_limit(comparison.limit);
  proto.set_pass(comparison.pass);
  proto.set_detail(comparison.detail);
  return proto;
}

}  // namespace

Expected<agents::TraceReport> TraceReportFromProto(v1::JobResult&& proto) {
  Expected<agents::TraceReport> report = Begin<agents::TraceReport>(proto, proto.has_trace(), "trace");
  if (!report || report->outcome != JobOutcome::kDone) return report;
  v1::TraceResult& trace = *proto.mutable_trace();
  if (trace.has_error()) report->error = FromProto(trace.error());
  if (trace.has_program()) report->program = FromProto(trace.program());
  for (v1::Artefact& artefact : *trace.mutable_artefacts()) report->artefacts.push_back(FromProto(std::move(artefact)));
  for (const v1::InputSpec& input : trace.inputs()) {
    Expected<kernels::InputSpec> parsed = FromProto(input);
    if (!parsed) return Fail(parsed.error());
    report->inputs.push_back(std::move(*parsed));
  }
  report->inputs_origin = trace.inputs_origin();
  for (const v1::ClosureFile& file : trace.closure()) {
    report->closure.push_back({.path = file.path(),
                               .sha256 = file.sha256(),
                               .is_user_file = file.is_user_file(),
                               .functions = {file.functions().begin(), file.functions().end()}});
  }
  for (const v1::PallasCall& call : trace.calls_seen()) report->calls_seen.push_back(FromProto(call));
  for (const v1::TensorType& output : trace.outputs()) report->outputs.push_back(FromProto(output));
  report->output_tree = trace.output_tree();
  report->versions.insert(trace.versions().begin(), trace.versions().end());
  return report;
}

v1::JobResult ToProto(const agents::TraceReport& report) {
  v1::JobResult proto = Begin(report);
  if (report.outcome != JobOutcome::kDone) return proto;
  v1::TraceResult& trace = *proto.mutable_trace();
  if (report.error) *trace.mutable_error() = ToProto(*report.error);
  if (report.program) *trace.mutable_program() = ToProto(*report.program);
  for (const agents::Artefact& artefact : report.artefacts) *trace.add_artefacts() = ToProto(artefact);
  for (const kernels::InputSpec& input : report.inputs) *trace.add_inputs() = ToProto(input);
  trace.set_inputs_origin(report.inputs_origin);
  for (const agents::ClosureFile& file : report.closure) {
    v1::ClosureFile& to = *trace.add_closure();
    to.set_path(file.path);
    to.set_sha256(file.sha256);
    to.set_is_user_file(file.is_user_file);
    for (const std::string& function : file.functions) to.add_functions(function);
  }
  for (const PallasCall& call : report.calls_seen) *trace.add_calls_seen() = ToProto(call);
  for (const TensorType& output : report.outputs) *trace.add_outputs() = ToProto(output);
  trace.set_output_tree(report.output_tree);
  trace.mutable_versions()->insert(report.versions.begin(), report.versions.end());
  return proto;
}

Expected<agents::CompileReport> CompileReportFromProto(v1::JobResult&& proto) {
  Expected<agents::CompileReport> report = Begin<agents::CompileReport>(proto, proto.has_compile(), "compile");
  if (!report || report->outcome != JobOutcome::kDone) return report;
  v1::CompileResult& compile = *proto.mutable_compile();
  if (compile.has_error()) report->error = FromProto(compile.error());
  for (v1::Dump& dump : *compile.mutable_dumps()) {
    report->dumps.push_back({.name = dump.name(), .gzip = std::move(*dump.mutable_gzip())});
  }
  report->flops = compile.flops();
  report->bytes_accessed = compile.bytes_accessed();
  report->argument_bytes = compile.argument_bytes();
  report->output_bytes = compile.output_bytes();
  report->temporary_bytes = compile.temporary_bytes();
  report->hlo_gzip = std::move(*compile.mutable_hlo_gzip());
  report->versions.insert(compile.versions().begin(), compile.versions().end());
  report->compile_milliseconds = compile.compile_milliseconds();
  return report;
}

v1::JobResult ToProto(const agents::CompileReport& report) {
  v1::JobResult proto = Begin(report);
  if (report.outcome != JobOutcome::kDone) return proto;
  v1::CompileResult& compile = *proto.mutable_compile();
  if (report.error) *compile.mutable_error() = ToProto(*report.error);
  for (const agents::DumpFile& dump : report.dumps) {
    v1::Dump& to = *compile.add_dumps();
    to.set_name(dump.name);
    to.set_gzip(dump.gzip);
  }
  compile.set_flops(report.flops);
  compile.set_bytes_accessed(report.bytes_accessed);
  compile.set_argument_bytes(report.argument_bytes);
  compile.set_output_bytes(report.output_bytes);
  compile.set_temporary_bytes(report.temporary_bytes);
  compile.set_hlo_gzip(report.hlo_gzip);
  compile.mutable_versions()->insert(report.versions.begin(), report.versions.end());
  compile.set_compile_milliseconds(report.compile_milliseconds);
  return proto;
}

Expected<agents::JudgeReport> JudgeReportFromProto(v1::JobResult&& proto) {
  Expected<agents::JudgeReport> report = Begin<agents::JudgeReport>(proto, proto.has_judge(), "judge");
  if (!report || report->outcome != JobOutcome::kDone) return report;
  const v1::JudgeResult& judge = proto.judge();
  for (const v1::GateResult& gate : judge.gates()) {
    report->gates.push_back({.gate = gate.gate(), .status = GateFromProto(gate.status()), .reason = gate.reason()});
  }
  for (const v1::Comparison& comparison : judge.comparisons()) {
    report->comparisons.push_back(ComparisonFromProto(comparison));
  }
  if (judge.has_candidate_error()) report->candidate_error = FromProto(judge.candidate_error());
  if (judge.has_reference_error()) report->reference_error = FromProto(judge.reference_error());
  report->inputs_sha256 = judge.inputs_sha256();
  return report;
}

v1::JobResult ToProto(const agents::JudgeReport& report) {
  v1::JobResult proto = Begin(report);
  if (report.outcome != JobOutcome::kDone) return proto;
  v1::JudgeResult& judge = *proto.mutable_judge();
  for (const agents::GateResult& gate : report.gates) {
    v1::GateResult& to = *judge.add_gates();
    to.set_gate(gate.gate);
    to.set_status(GateToProto(gate.status));
    to.set_reason(gate.reason);
  }
  for (const agents::Comparison& comparison : report.comparisons) {
    *judge.add_comparisons() = ComparisonToProto(comparison);
  }
  if (report.candidate_error) *judge.mutable_candidate_error() = ToProto(*report.candidate_error);
  if (report.reference_error) *judge.mutable_reference_error() = ToProto(*report.reference_error);
  judge.set_inputs_sha256(report.inputs_sha256);
  return proto;
}

Expected<agents::ProbeReport> ProbeReportFromProto(v1::JobResult&& proto) {
  Expected<agents::ProbeReport> report = Begin<agents::ProbeReport>(proto, proto.has_probe(), "probe");
  if (!report || report->outcome != JobOutcome::kDone) return report;
  for (const v1::ProbeResult::Chip& chip : proto.probe().chips()) {
    report->chips.push_back({.chip = chip.chip(),
                             .compiles = chip.compiles(),
                             .detail = chip.detail(),
                             .milliseconds = chip.milliseconds()});
  }
  return report;
}

v1::JobResult ToProto(const agents::ProbeReport& report) {
  v1::JobResult proto = Begin(report);
  if (report.outcome != JobOutcome::kDone) return proto;
  v1::ProbeResult& probe = *proto.mutable_probe();
  for (const agents::ChipProbe& chip : report.chips) {
    v1::ProbeResult::Chip& to = *probe.add_chips();
    to.set_chip(chip.chip);
    to.set_compiles(chip.compiles);
    to.set_detail(chip.detail);
    to.set_milliseconds(chip.milliseconds);
  }
  return proto;
}

agents::WorkerIdentity FromProto(const v1::HelloReply& proto) {
  agents::WorkerIdentity identity;
  identity.versions.insert(proto.versions().begin(), proto.versions().end());
  identity.python = proto.python();
  switch (proto.sandbox()) {
    case v1::HelloReply::BUBBLEWRAP:
      identity.sandbox = "bubblewrap";
      break;
    case v1::HelloReply::LANDLOCK:
      identity.sandbox = "landlock";
      break;
    default:  // what is not known counts as no sandbox
      identity.sandbox = "none";
      break;
  }
  identity.sandbox_detail = proto.sandbox_detail();
  identity.pid = static_cast<int>(proto.pid());
  identity.start_milliseconds = proto.start_milliseconds();
  identity.private_namespaces = proto.private_namespaces();
  return identity;
}

}  // namespace kernelwright::worker
