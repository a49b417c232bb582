// See doctor.h. A missing part is an item of its own with status "error"; what depends on it is then left out.
#include "daemon/agents/doctor.h"

#include <algorithm>

#include "daemon/base/units.h"

namespace kernelwright::agents {
namespace {

void AddVersions(const WorkerIdentity& identity, std::vector<DoctorItem>& items) {
  for (const char* name : {"python", "jax", "jaxlib", "libtpu", "numpy"}) {
    const auto found = identity.versions.find(name);
    if (found == identity.versions.end()) {
      items.push_back({name, "warning", "not reported", "Update the worker's environment: scripts/setup."});
      continue;
    }
    const bool untested = std::string(name) == "jax" && found->second != kTestedJax;
    items.push_back({name, untested ? "warning" : "ok", found->second + (untested ? " (untested)" : ""),
                     untested ? std::string("The tests run jax ") + kTestedJax + "." : ""});
  }
}

void AddChips(const DoctorOptions& options, const cost::ChipTable& chips, Toolchain& toolchain, std::stop_token stop,
              std::vector<DoctorItem>& items) {
  std::vector<std::string> names;
  for (const std::string& name : options.chips) {
    if (name != "all") names.push_back(name);
  }
  if (names.empty()) {
    for (const cost::Chip& chip : chips.chips()) names.push_back(chip.name);
  }
  Limits limits;
  limits.deadline = std::chrono::minutes(2);
  auto report = toolchain.Probe(names, limits, stop);
  if (!report || report->outcome != JobOutcome::kDone) {
    items.push_back({"chips", "error",
                     report ? JobOutcomeName(report->outcome) + (": " + report->detail) : report.error().ToString(),
                     "Check that libtpu is installed in this interpreter: pip install libtpu."});
    return;
  }
  for (const ChipProbe& probe : report->chips) {
    items.push_back({"chip " + probe.chip, probe.compiles ? "ok" : "warning",
                     probe.compiles ? "compiles, " + FormatDuration(std::chrono::milliseconds(probe.milliseconds))
                                    : probe.detail.substr(0, probe.detail.find('\n')),
                     probe.compiles ? "" : "Another libtpu version may know this chip."});
  }
}

}  // namespace

Expected<std::vector<DoctorItem>> RunDoctor(const DoctorOptions& options, ToolchainProvider& toolchains,
                                            const cost::ChipTable& chips, store::Store& store, std::stop_token stop) {
  std::vector<DoctorItem> items;
  const Status integrity = store.CheckIntegrity();
  items.push_back({"store", integrity.ok() ? "ok" : "error",
                   integrity.ok() ? store.path().string() : integrity.message(), integrity.remedy()});
  if (auto interrupted = store.FindInterrupted(); interrupted && !interrupted->empty()) {
    items.push_back({"interrupted runs", "warning", std::to_string(interrupted->size()),
                     "Take one up: kernelwright runs resume " + interrupted->back().id});
  }

  ToolchainOptions request;
  request.python = options.python;
  request.file = options.file;
  request.working_directory = options.working_directory;
  request.environment = options.environment;
  request.sandbox = options.sandbox;
  auto toolchain = toolchains.Get(request, stop);
  if (!toolchain) {
    if (toolchain.error().kind() == ErrorKind::kCancelled) return Fail(toolchain.error());
    items.push_back({"interpreter", "error", toolchain.error().message(), toolchain.error().remedy()});
    return items;
  }
  const WorkerIdentity& identity = (*toolchain)->identity();
  items.push_back({"interpreter", "ok", identity.python, ""});
  AddVersions(identity, items);
  const bool strong = identity.sandbox == "bubblewrap" && identity.private_namespaces;
  items.push_back({"sandbox", strong ? "ok" : "warning",
                   identity.sandbox + (identity.private_namespaces ? ", private namespaces" : ""),
                   strong ? "" : identity.sandbox_detail});
  items.push_back({"worker start", "ok", FormatDuration(std::chrono::milliseconds(identity.start_milliseconds)), ""});
  AddChips(options, chips, **toolchain, stop, items);
  if (stop.stop_requested()) return Fail(ErrorKind::kCancelled, "doctor was cancelled");
  return items;
}

}  // namespace kernelwright::agents
