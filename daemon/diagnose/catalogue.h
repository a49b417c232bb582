// The catalogue of diagnostics: which text of jax, the TPU compiler or the interpreter means what, with cause, fix and
// example. The entries are data (agents/diagnostics.json); this file knows how to read, match and rank them, so that a
// new entry needs no C++. Format: docs/diagnostics/README.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"
#include "daemon/diagnose/catalogue_pattern.h"
#include "daemon/diagnose/diagnostic.h"
#include "daemon/kernels/code_error.h"

namespace kernelwright::diagnose {

// Where the user's code has to be marked. kFrame: where Python or the compiler was; the others name a part of the
// pallas_call, which the text gives only by number or not at all.
enum class Anchor {
  kFrame,
  kCall,              // the pallas_call
  kBlockSpec,         // BlockSpec of the operand that the text names
  kIndexMap,          // its index map
  kScratch,           // element of scratch_shapes
  kOperand,           // argument that the kernel is called with
  kKernel,            // name of the kernel function
  kKernelParameters,  // its parameters
  kKernelReturn,      // its return statement
  kKernelCapture,     // what its body takes from outside
  kArgument,          // a keyword argument, also one of the grid spec or of the compiler parameters
};

// One way in which an error shows itself. All that is given must hold.
struct Alternative {
  std::vector<Pattern> text;            // in this order in the message, in the cause, or in a callback's last line
  std::vector<std::string> primitives;  // "Unimplemented primitive in Pallas TPU lowering for …: NAME", as a word
  std::vector<std::string> exceptions;  // class of the exception, one of them
  std::vector<std::string> stages;      // of CodeError, one of them
  std::vector<std::string> chips;       // one of them
  std::vector<std::string> traceback;   // all of these in the printed traceback
  std::vector<std::string> source;      // all of these words in the user's function around the pallas_call
  bool empty_message = false;
  Captures set;  // constants for the templates
};

struct FixAdvice {
  std::string kind;  // "auto": a machine can make it; "choose": the user picks; "do": advice
  std::vector<Template> text;
};

struct Entry {
  std::string id;    // "D01"
  std::string name;  // "block-tile"
  std::string title;
  Severity severity = Severity::kError;
  std::string kind;   // T, L, C, I, R, S: where it is found; "L,C" for several
  std::string state;  // now, changed, fixed, doc
  std::map<std::string, std::string> versions;
  std::vector<Alternative> match;  // empty: found by a look at the code, there is no text
  std::vector<std::string> beats;  // ids that yield when both match
  bool hidden = false;             // our own doing, never shown as an error of the kernel
  Anchor anchor = Anchor::kFrame;
  std::string argument;           // of Anchor::kArgument
  std::vector<Template> message;  // the first whose variables are all known; the last has none
  std::string cause;
  FixAdvice fix;
  std::string bad, good;  // a short example
  std::vector<std::string> references;

  std::string Page() const { return "docs/diagnostics/" + id + ".md"; }
  // Text of the first template that can be made.
  std::string Message(const Captures& captures) const;
  std::string Advice(const Captures& captures) const;
};

struct Match {
  const Entry* entry = nullptr;  // lives as long as the catalogue
  Captures captures;
  size_t weight = 0;  // bytes of the error that the entry explains: the most specific entry wins
};

class Catalogue {
 public:
  // Reads and checks agents/diagnostics.json. kUsage names the entry and the field.
  static Expected<Catalogue> Parse(std::string_view json);

  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* Find(std::string_view id) const;  // null when there is none

  // The entry for an error, or nothing: an unknown error is never guessed. `source`: text of the user's function around
  // the pallas_call, which tells apart what jax says in the same words.
  std::optional<Match> Best(const CodeError& error, const std::string& chip, std::string_view source = {}) const;

  // The values of a diagnostic that stages without an error text make (lints): everything but place, stage and chips.
  // An unknown id gives only the id.
  Diagnostic Make(std::string_view id, const Captures& captures = {}) const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace kernelwright::diagnose
