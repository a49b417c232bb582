// The `compiler_params` of each pallas_call in the user's source: what is written there now (dimension semantics, VMEM
// limit), and the edits that set or add them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/kernels/edits.h"
#include "daemon/kernels/program.h"
#include "daemon/kernels/reach.h"

namespace kernelwright::kernels {

struct CompilerParamsSite {
  enum class State {
    kAbsent,   // the call has no compiler_params; they can be added
    kWritten,  // compiler_params=pltpu.CompilerParams(…), in place
    kFixed,    // given in a way that cannot be edited here: a variable, a dict, **kwargs
  };
  std::string file;
  std::string base_hash;
  SourcePosition position;  // of the pallas_call
  ByteRange call;           // the call expression pallas_call(…)
  int line = 0;             // first and last line of the call, to match it with a traced operation
  int end_line = 0;
  std::string function;  // qualified name of the function around it
  State state = State::kAbsent;

  // kWritten: what is there. A value that is not a literal (a name, an expression) has a range but no value and is
  // not edited.
  std::optional<ByteRange> semantics_range;
  std::vector<std::string> semantics;  // "parallel", "arbitrary"; empty when not a literal
  std::optional<ByteRange> limit_range;
  std::optional<int64_t> limit;  // bytes; 0 for None
  std::string limit_text;

  // How to write a new argument: at this byte, with this text before it.
  uint32_t insert_at = 0;
  std::string insert_before;            // ", " or a line break with indentation
  std::string params_type;              // "pltpu.CompilerParams", as this file can name it (with the import below)
  std::optional<TextEdit> import_edit;  // import to add for params_type
};

struct CompilerParamsChange {
  std::optional<std::vector<std::string>> semantics;  // one per grid axis
  std::optional<int64_t> vmem_limit_bytes;
};

// One entry per pallas_call in the reached functions, in source order per file.
std::vector<CompilerParamsSite> FindCompilerParams(const Reached& reached);

// The site whose call contains one of the operation's spans, innermost frame first; -1 when none does.
int MatchCompilerParams(const std::vector<CompilerParamsSite>& sites, const std::vector<SourceSpan>& spans);

// Edits that make the change: values are replaced, missing arguments and the import are added. Empty when the site
// cannot take the change (kFixed, or a value that is not a literal).
std::vector<TextEdit> CompilerParamsEdits(const CompilerParamsSite& site, const CompilerParamsChange& change);

}  // namespace kernelwright::kernels
