// See marshal_check.h. Names of stages and severities go over the wire as text: an unknown one, of a newer build, is
// read as the last stage and as an information.
#include "daemon/service/marshal_check.h"

#include <array>
#include <string>

#include "daemon/base/text.h"
#include "daemon/service/wire_status.h"

namespace kernelwright::service {
namespace {

using diagnose::Severity;
using diagnose::Stage;

constexpr std::array<Stage, 6> kStages = {Stage::kSyntax, Stage::kApi,     Stage::kTrace,
                                          Stage::kBlocks, Stage::kCompile, Stage::kSemantics};

Stage StageOf(const std::string& name) {
  for (const Stage stage : kStages) {
    if (diagnose::StageName(stage) == name) return stage;
  }
  return Stage::kSemantics;
}

Severity SeverityOf(const std::string& name) {
  for (const Severity severity : {Severity::kError, Severity::kWarning, Severity::kHint}) {
    if (diagnose::SeverityName(severity) == name) return severity;
  }
  return Severity::kInformation;
}

void Write(const diagnose::Place& place, v1::Place* message) {
  message->set_file(SanitizeUtf8(place.file));
  message->set_line(place.line);
  message->set_column(place.column);
  message->set_end_line(place.end_line);
  message->set_end_column(place.end_column);
  message->set_cell(place.cell);
}

diagnose::Place Read(const v1::Place& message) {
  return {message.file(), message.line(), message.column(), message.end_line(), message.end_column(), message.cell()};
}

}  // namespace

v1::CheckRequest ToProto(const agents::CheckRequest& request) {
  v1::CheckRequest message;
  message.set_file(request.file);
  message.set_function(request.function);
  message.set_inputs(request.inputs);
  for (const agents::FileText& file : request.files) {
    v1::UnsavedText* text = message.add_files();
    text->set_path(file.path);
    text->set_text(file.text);
  }
  message.mutable_chips()->Assign(request.chips.begin(), request.chips.end());
  message.set_semantics(request.semantics);
  message.set_fixes(request.fixes);
  message.set_document(request.document);
  message.set_debounce(request.debounce);
  message.set_python(request.python);
  message.set_timeout_seconds(request.timeout_seconds);
  message.set_budget_seconds(request.budget_seconds);
  message.set_sandbox(request.sandbox);
  message.set_working_directory(request.working_directory);
  message.mutable_environment()->insert(request.environment.begin(), request.environment.end());
  return message;
}

agents::CheckRequest FromProto(const v1::CheckRequest& message) {
  agents::CheckRequest request;
  request.file = message.file();
  request.function = message.function();
  request.inputs = message.inputs();
  for (const v1::UnsavedText& file : message.files()) request.files.push_back({file.path(), file.text()});
  request.chips.assign(message.chips().begin(), message.chips().end());
  request.semantics = message.semantics();
  request.fixes = message.fixes();
  request.document = message.document();
  request.debounce = message.debounce();
  request.python = message.python();
  request.timeout_seconds = message.timeout_seconds();
  request.budget_seconds = message.budget_seconds();
  request.sandbox = message.sandbox();
  request.working_directory = message.working_directory();
  request.environment.insert(message.environment().begin(), message.environment().end());
  return request;
}

v1::Diagnostic ToProto(const diagnose::Diagnostic& diagnostic) {
  v1::Diagnostic message;
  message.set_id(diagnostic.id);
  message.set_name(diagnostic.name);
  message.set_severity(std::string(diagnose::SeverityName(diagnostic.severity)));
  message.set_stage(std::string(diagnose::StageName(diagnostic.stage)));
  Write(diagnostic.place, message.mutable_place());
  message.set_message(SanitizeUtf8(diagnostic.message));
  message.set_cause(SanitizeUtf8(diagnostic.cause));
  message.set_advice(SanitizeUtf8(diagnostic.advice));
  message.set_page(diagnostic.page);
  message.mutable_chips()->Assign(diagnostic.chips.begin(), diagnostic.chips.end());
  for (const diagnose::Related& related : diagnostic.related) {
    v1::RelatedPlace* place = message.add_related();
    Write(related.place, place->mutable_place());
    place->set_message(SanitizeUtf8(related.message));
  }
  for (const diagnose::Fix& fix : diagnostic.fixes) {
    v1::Fix* written = message.add_fixes();
    written->set_title(SanitizeUtf8(fix.title));
    for (const kernels::TextEdit& edit : fix.edits) {
      v1::FileEdit* part = written->add_edits();
      part->set_file(edit.file);
      part->set_begin(edit.range.begin);
      part->set_end(edit.range.end);
      part->set_replacement(edit.replacement);
      part->set_base_sha256(edit.base_hash);
    }
    written->mutable_verified()->Assign(fix.verified.begin(), fix.verified.end());
  }
  message.set_raw(SanitizeUtf8(diagnostic.raw));
  return message;
}

diagnose::Diagnostic FromProto(const v1::Diagnostic& message) {
  diagnose::Diagnostic diagnostic;
  diagnostic.id = message.id();
  diagnostic.name = message.name();
  diagnostic.severity = SeverityOf(message.severity());
  diagnostic.stage = StageOf(message.stage());
  diagnostic.place = Read(message.place());
  diagnostic.message = message.message();
  diagnostic.cause = message.cause();
  diagnostic.advice = message.advice();
  diagnostic.page = message.page();
  diagnostic.chips.assign(message.chips().begin(), message.chips().end());
  for (const v1::RelatedPlace& related : message.related()) {
    diagnostic.related.push_back({Read(related.place()), related.message()});
  }
  for (const v1::Fix& fix : message.fixes()) {
    diagnose::Fix read;
    read.title = fix.title();
    for (const v1::FileEdit& edit : fix.edits()) {
      read.edits.push_back({edit.file(), {edit.begin(), edit.end()}, edit.replacement(), edit.base_sha256()});
    }
    read.verified.assign(fix.verified().begin(), fix.verified().end());
    diagnostic.fixes.push_back(std::move(read));
  }
  diagnostic.raw = message.raw();
  return diagnostic;
}

v1::CheckStage ToProto(const agents::CheckStageReport& stage) {
  v1::CheckStage message;
  message.set_stage(std::string(diagnose::StageName(stage.stage)));
  message.set_function(stage.function);
  message.set_chip(stage.chip);
  message.set_status(stage.status);
  message.set_note(SanitizeUtf8(stage.note));
  message.set_cached(stage.cached);
  message.set_milliseconds(stage.milliseconds);
  message.set_since_start_ms(stage.since_start_ms);
  for (const diagnose::Diagnostic& diagnostic : stage.diagnostics) *message.add_diagnostics() = ToProto(diagnostic);
  return message;
}

agents::CheckStageReport FromProto(const v1::CheckStage& message) {
  agents::CheckStageReport stage;
  stage.stage = StageOf(message.stage());
  stage.function = message.function();
  stage.chip = message.chip();
  stage.status = message.status();
  stage.note = message.note();
  stage.cached = message.cached();
  stage.milliseconds = message.milliseconds();
  stage.since_start_ms = message.since_start_ms();
  for (const v1::Diagnostic& diagnostic : message.diagnostics()) stage.diagnostics.push_back(FromProto(diagnostic));
  return stage;
}

v1::CheckResult ToProto(const agents::CheckResult& result) {
  v1::CheckResult message;
  message.set_file(result.file);
  message.mutable_chips()->Assign(result.chips.begin(), result.chips.end());
  for (const agents::CheckedFunction& function : result.functions) {
    v1::CheckedFunction* written = message.add_functions();
    written->set_function(function.function);
    written->set_inputs(function.inputs);
    written->set_inputs_origin(function.inputs_origin);
    written->set_semantics(function.semantics);
  }
  for (const diagnose::Diagnostic& diagnostic : result.diagnostics) *message.add_diagnostics() = ToProto(diagnostic);
  for (const agents::CheckStageReport& stage : result.stages) *message.add_stages() = ToProto(stage);
  for (const agents::CheckChipResult& chip : result.results) {
    v1::CheckChip* written = message.add_results();
    written->set_chip(chip.chip);
    written->set_status(chip.status);
  }
  message.set_python(result.python);
  message.set_sandbox(result.sandbox);
  message.mutable_versions()->insert(result.versions.begin(), result.versions.end());
  message.set_milliseconds(result.milliseconds);
  if (!result.failure.ok()) {
    v1::CheckFailure* failure = message.mutable_failure();
    failure->set_kind(std::string(ErrorKindName(result.failure.kind())));
    failure->set_message(SanitizeUtf8(result.failure.message()));
    failure->set_where(SanitizeUtf8(result.failure.where()));
    failure->set_remedy(SanitizeUtf8(result.failure.remedy()));
  }
  return message;
}

agents::CheckResult FromProto(const v1::CheckResult& message) {
  agents::CheckResult result;
  result.file = message.file();
  result.chips.assign(message.chips().begin(), message.chips().end());
  for (const v1::CheckedFunction& function : message.functions()) {
    result.functions.push_back(
        {function.function(), function.inputs(), function.inputs_origin(), function.semantics()});
  }
  for (const v1::Diagnostic& diagnostic : message.diagnostics()) result.diagnostics.push_back(FromProto(diagnostic));
  for (const v1::CheckStage& stage : message.stages()) result.stages.push_back(FromProto(stage));
  for (const v1::CheckChip& chip : message.results()) result.results.push_back({chip.chip(), chip.status()});
  result.python = message.python();
  result.sandbox = message.sandbox();
  result.versions.insert(message.versions().begin(), message.versions().end());
  result.milliseconds = message.milliseconds();
  if (message.has_failure()) {
    const v1::CheckFailure& failure = message.failure();
    result.failure = Status(ErrorKindFromName(failure.kind()), failure.message(), failure.where(), failure.remedy());
  }
  return result;
}

}  // namespace kernelwright::service
