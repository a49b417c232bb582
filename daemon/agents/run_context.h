// What all stages of one run share: the request, the worker, the journal and the frozen record. Drivers other than
// optimize (an autonomous loop, a search over a graph of variants) make one and use the same stages.
#pragma once

#include <mutex>
#include <stop_token>
#include <string>

#include "daemon/agents/engine.h"
#include "daemon/agents/frozen_reference.h"
#include "daemon/agents/journal.h"
#include "daemon/agents/run_events.h"
#include "daemon/agents/toolchain.h"
#include "daemon/base/deadline.h"
#include "daemon/cost/estimate.h"

namespace kernelwright::agents {

struct RunContext {
  const RunRequest& request;
  Journal& journal;
  const std::stop_token stop;
  std::string build;  // identity of this build
  int parallel = 1;   // jobs side by side
  Deadline budget;    // of the whole run
  Limits compile_limits;
  Limits check_limits;
  std::shared_ptr<Toolchain> toolchain;
  FrozenReference frozen;
  cost::Work work;  // of the algorithm, from the traced original
  std::mutex mutex = {};

  // A store that cannot take an event (full disk) will refuse the next evaluation too, which ends the run.
  void Emit(const std::string& kind, const nlohmann::json& payload) { (void)journal.Emit(kind, PayloadText(payload)); }
  bool out_of_time() const { return stop.stop_requested() || budget.expired(); }
};

}  // namespace kernelwright::agents
