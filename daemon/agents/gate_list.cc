// The list of gates and the rule that a claim needs all of its gates; see gate_list.h.
#include "daemon/agents/gate_list.h"

#include <algorithm>
#include <utility>

namespace kernelwright::agents {

const std::vector<GateInfo>& AllGates() {
  static const std::vector<GateInfo> gates = {
      {"G10", "source", "the edit adds nothing that could cheat: no host access, callbacks, caches, patched modules",
       true, true, false},
      {"G11", "lint", "blocks, semantics and limits are legal before any compile", true, true, false},
      {"G20", "program", "a kernel is called; no callback, no large constant, no narrower accumulation", true, true,
       true},
      {"G21", "ghost", "every kernel's result reaches the output", true, true, true},
      {"G22", "identity", "what was checked, compiled and shown has one hash", true, true, false},
      {"G23", "compile", "the real compiler accepts it for the chip", true, true, false},
      {"G30", "oracle", "the frozen reference ran, in a process of its own", true, true, false},
      {"G31", "interpreter", "no race, no read out of bounds, no uninitialised value, under two schedules", true, true,
       false},
      {"G40", "inputs", "several distributions and shapes were drawn by the judge", true, true, false},
      {"G41", "fresh inputs", "every timed call had new values", false, true, false},
      {"G42", "purity", "inputs are unchanged after the call", true, true, false},
      {"G43", "values", "the error is within the reference's own", true, true, false},
      {"G44", "poison", "freed memory was overwritten before the call", false, true, false},
      {"G45", "types", "output tree, shapes, types and weak types are the reference's", true, true, false},
      {"G46", "precision", "products and accumulations are as wide as the reference's", true, true, false},
      {"G50", "private results", "results came over the private pipe with its nonce", true, true, false},
      {"G51", "clean clock", "the clock is outside the candidate's process", false, true, false},
      {"G52", "no leftovers", "no thread or process outlived the call", true, true, false},
      {"G53", "roofline floor", "the measured time is not below what the chip can do", false, true, false},
      {"G54", "schedule floor", "the estimate is not below what the chip can do", true, false, false},
  };
  return gates;
}

const GateInfo* FindGate(std::string_view id) {
  const std::vector<GateInfo>& gates = AllGates();
  auto found = std::find_if(gates.begin(), gates.end(), [&](const GateInfo& gate) { return gate.id == id; });
  return found == gates.end() ? nullptr : &*found;
}

ClaimVerdict JudgeClaim(Claim claim, bool claims_kernel, const std::vector<GateResult>& results) {
  ClaimVerdict verdict{true, "", ""};
  bool failed = false;  // a failure says more than what was not run because of it
  for (const GateInfo& gate : AllGates()) {
    if (!(claim == Claim::kEstimated ? gate.for_estimated : gate.for_measured)) continue;
    if (gate.kernels_only && !claims_kernel) continue;
    bool seen = false;
    for (const GateResult& result : results) {
      if (result.gate != gate.id) continue;
      seen = true;
      if (result.status == GateStatus::kPass) continue;
      const bool is_failure = result.status == GateStatus::kFail;
      if (verdict.holds || (is_failure && !failed)) verdict = {false, std::string(gate.id), result.reason};
      failed = failed || is_failure;
    }
    if (!seen && verdict.holds) verdict = {false, std::string(gate.id), "the gate was not run"};
  }
  return verdict;
}

GateResult Pass(std::string gate) { return {std::move(gate), GateStatus::kPass, ""}; }
GateResult FailGate(std::string gate, std::string reason) {
  return {std::move(gate), GateStatus::kFail, std::move(reason)};
}
GateResult NotRun(std::string gate, std::string reason) {
  return {std::move(gate), GateStatus::kNotRun, std::move(reason)};
}

}  // namespace kernelwright::agents
