// Proves fixes before they are offered: the edited text must trace, compile on every chip asked for and, when the
// kernels were run, pass that as well, and the problem must be gone.
#pragma once

#include <stop_token>
#include <vector>

#include "daemon/agents/check_function.h"
#include "daemon/diagnose/diagnostic.h"

namespace kernelwright::agents {

// Replaces the proposals of each diagnostic by those that hold. `findings`: of the text as it is. When no fix holds
// alone, because there are several errors, they are tried together; each of the errors is then offered all of them.
void OfferFixes(const FunctionCheck& check, const CheckTarget& target, const FunctionFindings& findings,
                std::vector<diagnose::Diagnostic>* diagnostics, const std::stop_token& stop);

// The edits that lead from `old_texts` to `new_texts`, one per changed file: the lines that differ.
std::vector<kernels::TextEdit> EditsBetween(const std::map<std::string, std::string>& old_texts,
                                            const std::map<std::string, std::string>& new_texts);

}  // namespace kernelwright::agents
