// A version of the program whose structure was changed (or the original): its files, its trace, what can be tuned in
// it, and the steps that led to it. A variant claims nothing; attempts made from it are evaluated like all others.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/agents/discover.h"
#include "daemon/agents/retune_space.h"
#include "daemon/agents/run_context.h"
#include "daemon/kernels/proposal.h"

namespace kernelwright::agents {

struct Variant {
  std::vector<kernels::Proposal> steps;  // from the original, in order; empty: the original
  std::string what;                      // of the steps: "lift to 1 kernel over whole rows"
  Source source;
  TraceReport traced;                                       // at the full inputs
  std::vector<kernels::InputSpec> check_inputs;             // the full inputs, as reduced shapes are made from them
  std::optional<Discovery> discovery;                       // see Discover
  std::map<std::string, RetuneSpace> spaces;                // by chip
  std::vector<std::unique_ptr<kernels::SourceFile>> files;  // parsed; see ParseFiles

  std::vector<PallasCall> Calls() const;
  // Whether the code rounds its grids up, so that partial blocks must be right.
  bool RoundsUp() const;
};

// The variant that `proposal` makes of `parent`, traced on `chip`. kUserCode when it cannot be traced, with the reason;
// kConflict when its edits do not fit. Other errors: no verdict (cancelled, worker failed).
Expected<Variant> MakeVariant(RunContext& run, const Variant& parent, const kernels::Proposal& proposal,
                              const std::string& chip);

// Finds what can be tuned in it, once. `progress(done, total)`.
Status Discover(RunContext& run, Variant& variant, const std::string& chip,
                const std::function<void(size_t, size_t)>& progress);

// Legal values on a chip, ranked; made once. The variant must be discovered.
Expected<const RetuneSpace*> SpaceOf(Variant& variant, const cost::Chip& chip);

// Parses the variant's files, once.
void ParseFiles(Variant& variant);

// Reduced shapes for a kernel with these blocks, best first.
std::vector<CheckShape> ShapesOf(const RunContext& run, const Variant& variant, const std::vector<PallasCall>& calls);

// Files of `parent` with the proposal's edits and new files.
Expected<std::vector<FileText>> ProposedFiles(const Source& parent, const kernels::Proposal& proposal);

}  // namespace kernelwright::agents
