// What a check asks and answers, as plain values: the same for the command, the daemon's call and an editor
// (docs/check.md). Diagnostics come stage by stage, and once more settled at the end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "daemon/agents/toolchain.h"
#include "daemon/base/status.h"
#include "daemon/diagnose/diagnostic.h"

namespace kernelwright::agents {

// A request for a check; paths are absolute. Mirrors CheckRequest of check.proto.
struct CheckRequest {
  std::string file;                // the user's file; need not exist on disk when `files` has its text
  std::string function;            // qualified name; empty: every function that can be checked
  std::string inputs;              // text of --inputs; empty: comment, module or capture
  std::vector<FileText> files;     // unsaved texts, used instead of what the disk has
  std::vector<std::string> chips;  // "v6e", …, or "all"; empty: the default
  bool semantics = true;           // run the kernels in the interpreter too
  bool fixes = true;               // propose fixes and prove them
  std::string document;            // of an editor: a newer check of the same document ends this one; else empty
  bool debounce = false;           // wait for the user to pause before work that takes a worker
  std::string python;              // interpreter; empty: found as docs/environment.md says
  double timeout_seconds = 0;      // per job; 0: the default
  double budget_seconds = 0;       // of the whole check; 0: no limit
  std::string sandbox;             // auto, bubblewrap, landlock, none; empty: auto
  std::string working_directory;   // of the client
  std::map<std::string, std::string> environment;  // variables that choose an interpreter
};

// A finished stage. Compile is a stage per function and chip, the others of a function or, without one, of the file.
struct CheckStageReport {
  diagnose::Stage stage = diagnose::Stage::kSyntax;
  std::string function;                           // empty for stages of the whole file
  std::string chip;                               // of a compile, else empty
  std::string status = "done";                    // done, skipped, failed (no verdict: crash, limit)
  std::string note;                               // why, when not done
  bool cached = false;                            // the verdict of a compile was known
  double milliseconds = 0;                        // spent on it
  double since_start_ms = 0;                      // of the check, when this stage had its answer
  std::vector<diagnose::Diagnostic> diagnostics;  // what it found, before later stages confirm or drop it
};

// A function that was checked beyond its text.
struct CheckedFunction {
  std::string function;
  std::string inputs;         // in the form of --inputs
  std::string inputs_origin;  // "--inputs", "comment", or the function that supplied them
  bool semantics = false;     // its kernels ran in the interpreter
};

// The verdict for one chip over all functions.
struct CheckChipResult {
  std::string chip;
  std::string status;  // clean, errors, unknown (some function has no verdict for it)
};

struct CheckResult {
  std::string file;
  std::vector<std::string> chips;  // resolved
  std::vector<CheckedFunction> functions;
  std::vector<diagnose::Diagnostic> diagnostics;  // settled: each problem once, in order of place
  std::vector<CheckStageReport> stages;           // in order of their end, without their diagnostics
  std::vector<CheckChipResult> results;
  std::string python;
  std::string sandbox;
  Versions versions;
  double milliseconds = 0;
  // Why some stage has no verdict: environment, limit, cancelled, internal; ok when all have one. What was found
  // before is kept.
  Status failure;

  bool has_errors() const {
    return std::any_of(diagnostics.begin(), diagnostics.end(), [](const diagnose::Diagnostic& diagnostic) {
      return diagnostic.severity == diagnose::Severity::kError;
    });
  }
};

// These stand here because commands ask them too, which are built without the loop.

// 4 when it was cancelled, 1 when there are errors, else the failure's code, else 0.
inline int CheckExitCode(const CheckResult& result) {
  if (result.failure.kind() == ErrorKind::kCancelled) return ExitCode(ErrorKind::kCancelled);
  if (result.has_errors()) return ExitCode(ErrorKind::kUserCode);
  return result.failure.ok() ? 0 : ExitCode(result.failure.kind());
}
// "clean", "errors", "cancelled", "incomplete".
inline std::string CheckStatusName(const CheckResult& result) {
  if (result.failure.kind() == ErrorKind::kCancelled) return "cancelled";
  if (result.has_errors()) return "errors";
  return result.failure.ok() ? "clean" : "incomplete";
}

using OnCheckStage = std::function<void(const CheckStageReport&)>;

}  // namespace kernelwright::agents
