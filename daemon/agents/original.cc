// See original.h. The texts of all user files that the trace used are read once, checked against the hashes that the
// worker saw, and used from memory from then on: edits on disk during a run change nothing in it.
#include "daemon/agents/original.h"

#include <algorithm>
#include <utility>

#include "daemon/base/files.h"
#include "daemon/base/hash.h"
#include "daemon/kernels/captures.h"
#include "daemon/kernels/notebook.h"
#include "daemon/kernels/syntax.h"

namespace kernelwright::agents {
namespace {

tl::unexpected<OriginalFailure> Failed(Status status, std::optional<CodeError> code = std::nullopt) {
  return tl::unexpected<OriginalFailure>({std::move(status), std::move(code)});
}

// The user's frame that an error should point at: the innermost one in a file that is not a library's.
std::string WhereOf(const CodeError& error, const std::string& fallback) {
  for (const SourceSpan& frame : error.frames) {
    if (frame.line > 0 && frame.file.find("site-packages") == std::string::npos &&
        frame.file.find("/lib/python3") == std::string::npos) {
      return frame.file + ":" + std::to_string(frame.line);
    }
  }
  return fallback;
}

Status StatusOfError(const CodeError& error, const std::string& file, const std::string& function) {
  const std::string what = (error.type.empty() ? "" : error.type + ": ") + error.message;
  const std::string where = WhereOf(error, file);
  if (error.stage == "import") {
    return Status(ErrorKind::kUserCode, "the file cannot be imported: " + what, where,
                  "Fix the import, or choose the interpreter that has the package with --python.");
  }
  if (error.stage == "resolve") {
    return Status(ErrorKind::kUsage, what, where, "Name a function of the file: FILE.py::function.");
  }
  if (error.stage == "inputs") {
    return Status(ErrorKind::kUsage, what, where,
                  "Give the inputs: --inputs 'x=bf16[4096,4096] …', or above the function a comment "
                  "`# kernelwright: x=bf16[4096,4096] …`.");
  }
  return Status(ErrorKind::kUserCode, function + " cannot be traced: " + what, where,
                "Fix the error, or check that the inputs are those the function takes.");
}

Status StatusOfOutcome(const JobReport& report, const std::string& file) {
  switch (report.outcome) {
    case JobOutcome::kCancelled:
      return Status(ErrorKind::kCancelled, "cancelled while tracing", file);
    case JobOutcome::kDeadline:
      return Status(ErrorKind::kLimit, "importing and tracing did not end in time: " + report.detail, file,
                    "Raise the limit with --timeout.");
    case JobOutcome::kMemory:
      return Status(ErrorKind::kLimit, "importing and tracing used too much memory: " + report.detail, file,
                    "Make the module smaller, or import less.");
    case JobOutcome::kDisk:
      return Status(ErrorKind::kEnvironment, "no disk space is left for the worker: " + report.detail, file,
                    "Free space in the temporary folder.");
    case JobOutcome::kSandbox:
      return Status(ErrorKind::kEnvironment, "the worker could not be isolated: " + report.detail, file,
                    "Run `kernelwright doctor`, or choose with --sandbox.");
    case JobOutcome::kCrashed:
    case JobOutcome::kDone:
      break;
  }
  return Status(ErrorKind::kUserCode, "importing and tracing crashed the process: " + report.detail, file,
                "Look at what the module does when it is imported.");
}

std::optional<OriginalFailure> FailureOf(const TraceReport& report, const std::string& file,
                                         const std::string& function) {
  if (report.outcome != JobOutcome::kDone) return OriginalFailure{StatusOfOutcome(report, file), std::nullopt};
  if (report.error) return OriginalFailure{StatusOfError(*report.error, file, function), report.error};
  return std::nullopt;
}

// Adds the texts of the other user files that the trace used.
Status AddClosure(const TraceReport& report, Source& source) {
  for (const ClosureFile& closure : report.closure) {
    if (!closure.is_user_file) continue;
    const bool known = std::any_of(source.files.begin(), source.files.end(),
                                   [&](const FileText& file) { return file.path == closure.path; });
    if (known) continue;
    auto text = ReadFile(closure.path);
    if (!text) return text.error();
    if (Sha256Hex(*text) != closure.sha256) {
      return Status(ErrorKind::kConflict, "the file changed while it was read", closure.path, "Run the command again.");
    }
    source.files.push_back({closure.path, *std::move(text)});
  }
  return {};
}

bool SameTypes(const std::vector<TensorType>& a, const std::vector<TensorType>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const TensorType& x, const TensorType& y) { return x.dtype == y.dtype && x.dims == y.dims; });
}

}  // namespace

OrFailure<Entry> ReadEntry(const RunRequest& request, const std::string& captures) {
  Entry entry;
  auto real = RealPath(request.file);
  if (!real) return Failed(real.error());
  entry.file = real->string();
  if (kernels::Notebook::IsNotebook(entry.file)) {
    return Failed(Status(ErrorKind::kUsage, "notebooks can be checked but not optimized", request.file,
                         "Move the function into a Python file and import it in the notebook."));
  }
  auto text = ReadFile(entry.file, size_t{16} << 20);
  if (!text) return Failed(text.error());
  entry.text = *std::move(text);

  const kernels::SourceFile source(entry.file, entry.text);
  if (Status syntax = source.CheckSyntax(); !syntax.ok()) {
    CodeError code;
    code.stage = "syntax";
    code.type = "SyntaxError";
    code.message = source.errors().front().message;
    const kernels::SourcePosition at = source.errors().front().position;
    code.frames.push_back({entry.file, at.line, at.column, at.line, at.column + 1, ""});
    return Failed(syntax, code);
  }
  auto function = request.function.empty() ? source.DefaultFunction() : source.FindFunction(request.function);
  if (!function) return Failed(function.error());
  entry.function = function->qualified_name;

  if (!request.inputs.empty()) {
    auto inputs = kernels::ParseInputs(request.inputs, "--inputs");
    if (!inputs) return Failed(inputs.error());
    entry.inputs = *std::move(inputs);
    entry.inputs_origin = "--inputs";
  } else if (function->inputs) {
    const kernels::InputsResult parsed = kernels::ParseInputsText(function->inputs->text);
    if (const auto* error = std::get_if<kernels::InputsError>(&parsed)) {
      const kernels::SourcePosition at = source.Position(function->inputs->FileOffset(error->offset));
      return Failed(Status(ErrorKind::kUsage, error->message,
                           entry.file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column),
                           error->remedy));
    }
    entry.inputs = std::get<std::vector<kernels::InputSpec>>(parsed);
    entry.inputs_origin = "comment";
  } else if (!kernels::SuppliesInputs(source)) {
    auto captured = kernels::CapturedInputs(captures, entry.file, entry.function);
    if (!captured) return Failed(captured.error());
    if (*captured) {
      entry.inputs = **std::move(captured);
      entry.inputs_origin = "capture";
    }
  }
  return entry;
}

OrFailure<Original> TraceOriginal(const RunRequest& request, const Entry& entry, const std::string& chip,
                                  Toolchain& toolchain, const Limits& limits, std::stop_token stop) {
  Original original;
  FrozenReference& frozen = original.frozen;
  frozen.original = {entry.file, entry.function, {{entry.file, entry.text}}};
  auto report = toolchain.Trace({frozen.original, entry.inputs, {chip}, true, false, limits}, stop);
  if (!report) return Failed(report.error());
  if (auto failure = FailureOf(*report, entry.file, entry.function)) return tl::unexpected(*std::move(failure));
  if (Status closed = AddClosure(*report, frozen.original); !closed.ok()) return Failed(closed);
  frozen.inputs = report->inputs.empty() ? entry.inputs : report->inputs;
  frozen.inputs_origin = entry.inputs_origin.empty() ? report->inputs_origin : entry.inputs_origin;
  original.traced = *std::move(report);

  frozen.reference = frozen.original;
  if (!request.reference_file.empty()) {
    RunRequest reference_request = request;
    reference_request.file = request.reference_file;
    reference_request.function = request.reference_function;
    reference_request.inputs.clear();
    auto reference = ReadEntry(reference_request, "");
    if (!reference) return tl::unexpected(reference.error());
    frozen.reference = {reference->file, reference->function, {{reference->file, reference->text}}};
    auto traced = toolchain.Trace({frozen.reference, frozen.inputs, {chip}, false, false, limits}, stop);
    if (!traced) return Failed(traced.error());
    if (auto failure = FailureOf(*traced, reference->file, reference->function)) {
      return tl::unexpected(*std::move(failure));
    }
    if (Status closed = AddClosure(*traced, frozen.reference); !closed.ok()) return Failed(closed);
    if (!SameTypes(traced->outputs, original.traced.outputs)) {
      return Failed(Status(ErrorKind::kUsage,
                           "the reference's results have other shapes or types than those of " + entry.function,
                           reference->file, "Give a reference that takes the same inputs and returns the same types."));
    }
  }
  return original;
}

OrFailure<TraceReport> TraceFrozen(const FrozenReference& frozen, const std::string& chip, Toolchain& toolchain,
                                   const Limits& limits, std::stop_token stop) {
  auto report = toolchain.Trace({frozen.original, frozen.inputs, {chip}, true, false, limits}, stop);
  if (!report) return Failed(report.error());
  if (auto failure = FailureOf(*report, frozen.original.file, frozen.original.function)) {
    return tl::unexpected(*std::move(failure));
  }
  return *std::move(report);
}

}  // namespace kernelwright::agents
