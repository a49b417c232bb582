// See check_errors.h.
#include "daemon/agents/check_errors.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace kernelwright::agents {
namespace {

using diagnose::Diagnostic;
using diagnose::Place;

constexpr size_t kHeadlineBytes = 300;

Place PlaceOf(const SourceSpan& span) { return {span.file, span.line, span.column, span.end_line, span.end_column}; }

// The innermost frame in a file of the user's: the closure's files when they are known, else what is no library.
const SourceSpan* UserFrame(const CodeError& error, const ErrorContext& context) {
  for (const SourceSpan& frame : error.frames) {
    if (frame.line > 0 && context.texts != nullptr && context.texts->contains(frame.file)) return &frame;
  }
  for (const SourceSpan& frame : error.frames) {
    if (frame.line > 0 && frame.file.find("site-packages") == std::string::npos &&
        frame.file.find("/lib/python3") == std::string::npos && frame.file.starts_with('/')) {
      return &frame;
    }
  }
  return nullptr;
}

std::string Headline(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  std::string line(text.substr(begin, text.find('\n', begin) - begin));
  const size_t rest = text.find_first_not_of(" \t\r\n", begin + line.size());
  if (line.ends_with(':') && rest != std::string_view::npos) {
    line += ' ';
    line += text.substr(rest, text.find('\n', rest) - rest);
  }
  if (line.size() > kHeadlineBytes) {
    size_t cut = kHeadlineBytes;
    while (cut > 0 && (static_cast<unsigned char>(line[cut]) & 0xC0) == 0x80) --cut;
    line = line.substr(0, cut) + " …";
  }
  return line;
}

std::string RawText(const CodeError& error) {
  std::string raw = error.type.empty() ? error.message : error.type + ": " + error.message;
  if (!error.cause.empty() && error.message.find(error.cause) == std::string::npos) {
    raw += "\ncaused by: " + error.cause;
  }
  return raw;
}

Diagnostic FromContext(const ErrorContext& context) {
  Diagnostic diagnostic;
  diagnostic.stage = context.stage;
  diagnostic.chips = context.chips;
  diagnostic.place = context.target != nullptr ? context.target->place : Place{context.file, 0, 0, 0, 0};
  return diagnostic;
}

Diagnostic InputsError(const CodeError& error, const ErrorContext& context) {
  Diagnostic diagnostic = FromContext(context);
  diagnostic.id = kBadInputsId;
  diagnostic.name = "inputs-do-not-fit";
  if (context.target != nullptr) diagnostic.place = context.target->inputs_place;
  diagnostic.message = "the inputs do not fit the function: " + Headline(error.message);
  diagnostic.cause = "The function is called with the inputs that its comment, --inputs or the module states.";
  diagnostic.advice = "Name each parameter that has no default once: `# kernelwright: x=bf16[4096,4096] n=8`.";
  diagnostic.page = "docs/check.md#inputs";
  diagnostic.raw = RawText(error);
  return diagnostic;
}

Diagnostic ImportError(const CodeError& error, const ErrorContext& context) {
  Diagnostic diagnostic = UnknownError(error, context);
  diagnostic.id = kImportId;
  diagnostic.name = "import-failed";
  diagnostic.message = "the file cannot be imported: " + diagnostic.message;
  diagnostic.cause = "A function is traced by importing its file with the interpreter of the check.";
  diagnostic.advice = "Mend the line, or choose the interpreter that has the package with --python.";
  diagnostic.page = "docs/check.md#import";
  return diagnostic;
}

}  // namespace

Diagnostic UnknownError(const CodeError& error, const ErrorContext& context) {
  Diagnostic diagnostic = FromContext(context);
  diagnostic.id = kUnknownId;
  diagnostic.name = "unknown";
  if (const SourceSpan* frame = UserFrame(error, context)) diagnostic.place = PlaceOf(*frame);
  std::string line = Headline(error.message.empty() ? error.cause : error.message);
  if (line.empty()) line = "raised without a message";
  diagnostic.message = error.type.empty() ? line : error.type + ": " + line;
  diagnostic.raw = RawText(error);
  return diagnostic;
}

std::vector<Diagnostic> DiagnosticsOf(const CodeError& error, const ErrorContext& context) {
  if (error.stage == "inputs" || error.stage == "resolve") {
    const bool unknown = error.type == "InputError" && context.target != nullptr && context.target->inputs.empty();
    if (unknown) return {NoInputs(context.target->function, context.target->place)};
    return {InputsError(error, context)};
  }
  if (error.stage == "import") return {ImportError(error, context)};
  return {UnknownError(error, context)};
}

Diagnostic CrashDiagnostic(const JobReport& report, const ErrorContext& context) {
  Diagnostic diagnostic = FromContext(context);
  diagnostic.id = kCrashId;
  diagnostic.name = "process-crashed";
  const bool compiling = context.stage == diagnose::Stage::kCompile;
  diagnostic.message = (compiling ? "the TPU compiler aborted: " : "the process crashed: ") + Headline(report.detail);
  diagnostic.cause = compiling ? "The compiler met a case that it does not check for and ended its process."
                               : "What the file does while it is imported, traced or run ended its process.";
  diagnostic.advice = compiling
                          ? "Look at the last lines of its text; smaller blocks or another form of the expression "
                            "often avoid it."
                          : "Look at what the module does when it is imported.";
  diagnostic.page = "docs/check.md#crash";
  diagnostic.raw = report.detail;
  return diagnostic;
}

Status StatusOfJob(const JobReport& report, const std::string& what, const std::string& file) {
  switch (report.outcome) {
    case JobOutcome::kDone:
    case JobOutcome::kCrashed:
      return {};
    case JobOutcome::kCancelled:
      return Status(ErrorKind::kCancelled, "the check was cancelled", file);
    case JobOutcome::kDeadline:
      return Status(ErrorKind::kLimit, what + " did not end in time: " + Headline(report.detail), file,
                    "Raise the limit with --timeout.");
    case JobOutcome::kMemory:
      return Status(ErrorKind::kLimit, what + " used too much memory: " + Headline(report.detail), file,
                    "Check at smaller inputs, or on a machine with more memory.");
    case JobOutcome::kDisk:
      return Status(ErrorKind::kEnvironment, "no disk space is left for the worker: " + Headline(report.detail), file,
                    "Free space in the temporary folder.");
    case JobOutcome::kSandbox:
      return Status(ErrorKind::kEnvironment, "the worker could not be isolated: " + Headline(report.detail), file,
                    "Run `kernelwright doctor`, or choose with --sandbox.");
  }
  return {};
}

}  // namespace kernelwright::agents
