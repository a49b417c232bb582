// From what a worker says to diagnostics: errors of the user's code through the catalogue, and jobs that ended without
// a verdict. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/agents/check_targets.h"
#include "daemon/agents/toolchain.h"
#include "daemon/diagnose/diagnostic.h"

namespace kernelwright::agents {

// What surrounds an error.
struct ErrorContext {
  const std::map<std::string, std::string>* texts = nullptr;  // of the user's files, by path
  const CheckTarget* target = nullptr;
  std::string file;                // the entry file
  std::vector<PallasCall> calls;   // seen while tracing
  std::vector<std::string> chips;  // that it holds for
  diagnose::Stage stage = diagnose::Stage::kTrace;
};

// The error whole, at the user's innermost line; the function's name when no frame is the user's.
diagnose::Diagnostic UnknownError(const CodeError& error, const ErrorContext& context);

// At least one diagnostic for an error of the user's code.
std::vector<diagnose::Diagnostic> DiagnosticsOf(const CodeError& error, const ErrorContext& context);

// A job whose process crashed, at the function's name. Other outcomes are no fault of the code: see StatusOfJob.
diagnose::Diagnostic CrashDiagnostic(const JobReport& report, const ErrorContext& context);

// Ok for a job that is done or crashed; else why it has no verdict (cancelled, limit, environment).
Status StatusOfJob(const JobReport& report, const std::string& what, const std::string& file);

}  // namespace kernelwright::agents
