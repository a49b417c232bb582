// What judges texts, kernels and errors in a check: the catalogue, the lints and the fixes of daemon/diagnose behind
// one interface, so that the order of a check can be tested without them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/agents/check_errors.h"
#include "daemon/base/status.h"
#include "daemon/cost/chips.h"
#include "daemon/diagnose/diagnostic.h"
#include "daemon/kernels/syntax.h"

namespace kernelwright::agents {

// Newest version of jax that the tables know: what is assumed as long as no worker has said its version.
inline constexpr const char* kNewestJax = "0.10.2";

class CheckRules {
 public:
  virtual ~CheckRules() = default;

  // Names that this version of jax does not have any more.
  virtual std::vector<diagnose::Diagnostic> LintApi(const kernels::SourceFile& source,
                                                    const std::string& jax_version) const = 0;
  // Blocks, grids and memory of the kernels, for one chip.
  virtual std::vector<diagnose::Diagnostic> LintBlocks(const ErrorContext& context, const cost::Chip& chip) const = 0;
  // Kernel bodies: what shows without running them, for one chip. `calls` of the context have their graphs.
  virtual std::vector<diagnose::Diagnostic> LintKernels(const ErrorContext& context, const cost::Chip& chip) const = 0;
  // What an error means; empty when it is our own doing and no verdict on the code.
  virtual std::vector<diagnose::Diagnostic> Explain(const CodeError& error, const ErrorContext& context) const = 0;
  // The catalogue's words for an entry that has no error text: everything but place, stage and chips.
  virtual diagnose::Diagnostic Make(const std::string& id) const = 0;
  // Edits that may mend the diagnostic, not proven yet.
  virtual std::vector<diagnose::Fix> ProposeFixes(const diagnose::Diagnostic& diagnostic, const ErrorContext& context,
                                                  const std::vector<const cost::Chip*>& chips) const = 0;
};

// The rules of this build. `agents_folder` holds diagnostics.json and api_names.json.
Expected<std::unique_ptr<CheckRules>> MakeCheckRules(const std::string& agents_folder);

}  // namespace kernelwright::agents
