// The function as the user has it: its file, its inputs, its reference, traced once. Everything wrong with the user's
// input is found here and said with place and remedy, before any candidate exists.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/agents/engine.h"
#include "daemon/agents/frozen_reference.h"
#include "daemon/agents/toolchain.h"

namespace kernelwright::agents {

// Why a run ended before it began. `code` is set when the user's code raised.
struct OriginalFailure {
  Status status;
  std::optional<CodeError> code;
};

template <typename T>
using OrFailure = tl::expected<T, OriginalFailure>;

// What can be said from the file alone.
struct Entry {
  std::string file;  // absolute
  std::string text;
  std::string function;                    // qualified name
  std::vector<kernels::InputSpec> inputs;  // empty: the module is asked
  std::string inputs_origin;               // "--inputs", "comment", "capture"; empty with empty inputs
};

// Reads the file and finds function and inputs. `captures`: folder of recorded calls, or empty. Errors: missing or
// unreadable file, syntax error (with line), no such function (with those that exist), malformed inputs (with column).
OrFailure<Entry> ReadEntry(const RunRequest& request, const std::string& captures);

// What tracing the original gave. `frozen` lacks ladder and seeds, which come later.
struct Original {
  FrozenReference frozen;
  TraceReport traced;
};

// Traces the original at its full inputs on `chip`, and the reference of --reference if there is one. Errors: import
// error, no inputs, trace error, limits, a reference whose results have other types.
OrFailure<Original> TraceOriginal(const RunRequest& request, const Entry& entry, const std::string& chip,
                                  Toolchain& toolchain, const Limits& limits, std::stop_token stop);

// The frozen record is there already (a resumed run): traces its original again for the program graph.
OrFailure<TraceReport> TraceFrozen(const FrozenReference& frozen, const std::string& chip, Toolchain& toolchain,
                                   const Limits& limits, std::stop_token stop);

}  // namespace kernelwright::agents
