// Rules that rewrite an existing Pallas kernel: each looks at one kernel of the program, as source and as traced graph,
// and proposes edits with its reason, its evidence and what it does to the values, or says why it does not apply.
// A proposal is only a candidate: the loop compiles, checks and estimates it. Pure: values in, values out.
#pragma once

#include <string>
#include <vector>

#include "daemon/kernels/proposal.h"

namespace kernelwright::rewrite {

// What every rule says about every kernel of the program: for each pair one or more proposals, or one refusal.
// Proposals that do more to the values than `context.allowed` are refused. Each proposal's edits are made from the
// context's texts; to apply a second one, apply the first, parse and trace again, and ask again.
kernels::Proposals ProposeRewrites(const kernels::ProposalContext& context);

// Names of the rules, in the order in which they are asked.
std::vector<std::string> RuleNames();

}  // namespace kernelwright::rewrite
