// The candidates of a retune on one chip: legal values of the discovered parameters, with the compiler parameters they
// need, ranked by the analytic cost model. Pure.
#pragma once

#include <string>
#include <vector>

#include "daemon/agents/candidate_search.h"
#include "daemon/agents/discover.h"
#include "daemon/agents/run_result.h"
#include "daemon/cost/chips.h"

namespace kernelwright::agents {

struct RetuneCandidate {
  SearchPoint point;                     // a value per parameter; the last tells whether semantics were changed
  std::string what;                      // "bm=512 bn=1024, vmem_limit_bytes=64 MiB"
  std::vector<kernels::TextEdit> edits;  // from the original
  std::vector<PallasCall> calls;         // as they will be traced
};

struct RetuneSpace {
  std::vector<RetuneCandidate> candidates;  // best ranked first, the original not among them
  double original_ranked_ms = 0;            // 0 when the analytic model refuses
  size_t considered = 0;
  size_t illegal = 0;
  size_t too_large = 0;
};

Expected<RetuneSpace> BuildRetuneSpace(const Discovery& discovery, const cost::Chip& chip);

// One step per parameter, and one for compiler parameters where candidates change them. `original`: its cost.
std::vector<PlanStep> MakeRetunePlan(const Discovery& discovery, const RetuneSpace& space, const cost::Chip& chip,
                                     const cost::CostResult& original);

}  // namespace kernelwright::agents
