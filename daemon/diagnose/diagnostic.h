// What is wrong in a user's code, where, for which chips, and what mends it. Plain values that every stage of a check
// produces and that the command line, the daemon's call and the editor show (docs/check.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/kernels/edits.h"

namespace kernelwright::diagnose {

// Stages of a check in their order; each reports as soon as it knows.
enum class Stage { kSyntax, kApi, kTrace, kBlocks, kCompile, kSemantics };
std::string_view StageName(Stage stage);  // "syntax", "api", "trace", "blocks", "compile", "semantics"

enum class Severity { kError, kWarning, kInformation, kHint };
std::string_view SeverityName(Severity severity);  // "error", "warning", "information", "hint"

// A range in a user's file. Lines and columns from 1, columns in characters, the end exclusive; all zero when only the
// file is known. Lines of a notebook are those of the cell, once a check hands them out.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
  int end_line = 0;
  int end_column = 0;
  int cell = 0;  // of a notebook, from 1; else 0
  bool operator==(const Place&) const = default;
};

// Another place that explains a diagnostic: the BlockSpec, the ref's declaration, the caller in a helper module.
struct Related {
  Place place;
  std::string message;
};

// An edit that mends a diagnostic without asking what is meant. `verified` names the chips on which the edited file
// compiled and passed the checks; it is offered only when that covers all chips asked for.
struct Fix {
  std::string title;  // "Round the block up to (8, 128)"
  std::vector<kernels::TextEdit> edits;
  std::vector<std::string> verified;
};

struct Diagnostic {
  std::string id;    // "D01"; "D000" for an error that the catalogue does not know
  std::string name;  // "block-tile"
  Severity severity = Severity::kError;
  Stage stage = Stage::kTrace;
  Place place;
  std::string message;  // what is wrong, in the user's terms: names of refs, shapes, KiB against the chip's limit
  std::string cause;    // why the chip or jax asks for it
  std::string advice;   // what to change, in words
  std::string page;     // "docs/diagnostics/D01.md"; empty for an unknown error
  std::vector<std::string> chips;  // that it holds for, in the order asked; all of them for what no chip decides
  std::vector<Related> related;
  std::vector<Fix> fixes;
  std::string raw;  // the compiler's or jax's text, whole
};

// Diagnostics of one problem on several chips become one with all of them: equal id, place and message.
std::vector<Diagnostic> MergeChips(std::vector<Diagnostic> diagnostics);

// One for each (id, place), the earliest stage first; then by file, line and column. What an earlier stage said is not
// said again by a later one.
std::vector<Diagnostic> Settle(std::vector<Diagnostic> diagnostics);

}  // namespace kernelwright::diagnose
