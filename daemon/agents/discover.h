// Finds what can be tuned in a function by tracing it again and again with one place in the source changed: which
// places set which blocks, grids and scratch buffers, and which have to change together (daemon/kernels/params.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/agents/frozen_reference.h"
#include "daemon/agents/toolchain.h"
#include "daemon/kernels/compiler_params.h"
#include "daemon/kernels/params.h"
#include "daemon/kernels/tunables.h"

namespace kernelwright::agents {

struct Discovery {
  std::vector<std::unique_ptr<kernels::SourceFile>> files;
  std::vector<PallasCall> base;                // the original's kernels
  std::vector<std::vector<SourceSpan>> spans;  // of each of them
  std::vector<kernels::TunableSite> sites;
  std::vector<kernels::Parameter> parameters;
  std::vector<kernels::CompilerParamsSite> params_sites;  // compiler_params in the source
  std::vector<int> params_site_of_call;                   // per call: index into params_sites, or -1
  std::vector<std::string> notes;                         // what moves something but cannot be tuned, and why
  int traces = 0;
};

// Kernels of a program with the spans of their operations, in program order.
struct LocatedCalls {
  std::vector<PallasCall> calls;
  std::vector<std::vector<SourceSpan>> spans;
};
LocatedCalls LocateCalls(const Graph& graph);

// Texts of the original's files with edits applied.
Expected<std::vector<FileText>> EditedFiles(const Source& original, const std::vector<kernels::TextEdit>& edits);

// `traced`: of the original at its full inputs, with program and closure. `progress(done, total)` is called from one
// thread at a time. A Status error means that a worker failed or `stop` was requested.
Expected<Discovery> DiscoverParameters(const Source& original, const std::vector<kernels::InputSpec>& inputs,
                                       const TraceReport& traced, const std::string& chip, Toolchain& toolchain,
                                       const Limits& limits, int parallel,
                                       const std::function<void(size_t, size_t)>& progress, std::stop_token stop);

}  // namespace kernelwright::agents
