// See discover.h. Probes are independent and run side by side; hypotheses of one group are tried in order.
#include "daemon/agents/discover.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "daemon/agents/parallel.h"

namespace kernelwright::agents {
namespace {

constexpr size_t kMaxSites = 48;  // probed places; beyond, the least likely ones are left out with a note
constexpr int kMaxPriority = 2;   // hardly-a-size places are not probed

void Locate(const Graph& graph, LocatedCalls& located) {
  for (const Operation& operation : graph.operations) {
    for (const PallasCall& call : operation.pallas) {
      located.calls.push_back(call);
      located.spans.push_back(operation.spans);
    }
    for (const Graph& region : operation.regions) Locate(region, located);
  }
}

class Discoverer {
 public:
  Discoverer(const Source& original, const std::vector<kernels::InputSpec>& inputs, const std::string& chip,
             Toolchain& toolchain, const Limits& limits, int parallel, std::stop_token stop)
      : original_(original),
        inputs_(inputs),
        chip_(chip),
        toolchain_(toolchain),
        limits_(limits),
        parallel_(parallel),
        stop_(std::move(stop)) {}

  struct Trace {
    bool traced = false;
    std::vector<PallasCall> calls;
  };

  Expected<Trace> TraceWith(const std::vector<std::pair<size_t, int64_t>>& site_values) {
    std::vector<kernels::TextEdit> edits;
    edits.reserve(site_values.size());
    for (const auto& [site, value] : site_values) edits.push_back(IntegerEdit(discovery.sites[site], value));
    auto files = EditedFiles(original_, edits);
    if (!files) return Fail(files.error());
    TraceRequest request{
        {original_.file, original_.function, *std::move(files)}, inputs_, {chip_}, true, false, limits_};
    auto report = toolchain_.Trace(request, stop_);
    if (!report) return Fail(report.error());
    if (report->outcome == JobOutcome::kCancelled) return Fail(ErrorKind::kCancelled, "the search was cancelled");
    Trace trace;
    trace.traced = report->outcome == JobOutcome::kDone && !report->error && report->program;
    trace.calls = trace.traced ? LocateCalls(report->program->main).calls : std::move(report->calls_seen);
    std::lock_guard lock(mutex_);
    ++discovery.traces;
    return trace;
  }

  Status Probe(const std::function<void(size_t, size_t)>& progress) {
    observations_.resize(discovery.sites.size());
    Status failure;
    size_t done = 0;
    RunParallel(discovery.sites.size(), parallel_, stop_, [&](size_t i) {
      for (int64_t value : kernels::ProbeValues(discovery.sites[i].value)) {
        auto trace = TraceWith({{i, value}});
        if (!trace) {
          std::lock_guard lock(mutex_);
          failure = trace.error();
          return false;
        }
        observations_[i] = {i, value, trace->traced, std::move(trace->calls)};
        if (!kernels::ProbeAgain(discovery.base, observations_[i])) break;
      }
      std::lock_guard lock(mutex_);
      progress(++done, discovery.sites.size());
      return true;
    });
    if (stop_.stop_requested()) return Status(ErrorKind::kCancelled, "the search was cancelled");
    return failure;
  }

  Status Group() {
    kernels::Grouping grouping = kernels::GroupSites(discovery.sites, discovery.base, observations_);
    discovery.notes.insert(discovery.notes.end(), grouping.notes.begin(), grouping.notes.end());
    std::vector<std::optional<kernels::Parameter>> settled(grouping.groups.size());
    for (size_t i = 0; i < grouping.groups.size(); ++i) {
      auto parameter = SettleGroup(grouping.groups[i]);
      if (!parameter) return parameter.error();
      settled[i] = *std::move(parameter);
    }
    // Groups that cannot move one by one may be able to move together (a square block from one constant).
    for (const kernels::FallbackGroup& fallback : grouping.fallbacks) {
      const bool all_settled = std::all_of(fallback.replaces.begin(), fallback.replaces.end(),
                                           [&](size_t group) { return settled[group].has_value(); });
      if (all_settled) continue;
      auto parameter = SettleGroup(fallback.group);
      if (!parameter) return parameter.error();
      if (!*parameter) continue;
      for (size_t group : fallback.replaces) settled[group].reset();
      settled[fallback.replaces.front()] = *std::move(parameter);
    }
    for (std::optional<kernels::Parameter>& parameter : settled) {
      if (!parameter) continue;
      if (Status observed = Tails(*parameter); !observed.ok()) return observed;
      discovery.parameters.push_back(*std::move(parameter));
    }
    return {};
  }

  Discovery discovery;

 private:
  // The parameter that the first fitting hypothesis gives; nothing, with a note, when none fits.
  Expected<std::optional<kernels::Parameter>> SettleGroup(const kernels::SiteGroup& group) {
    if (group.settled) return group.settled;
    std::string why_not = "no set of places fits";
    for (const kernels::Hypothesis& hypothesis : group.hypotheses) {
      auto trace = TraceWith(hypothesis.site_values);
      if (!trace) return Fail(trace.error());
      auto settled = kernels::Settle(hypothesis, discovery.base, trace->traced, trace->calls);
      if (settled) return std::optional(*std::move(settled));
      why_not = settled.error().message();
    }
    discovery.notes.push_back(group.name + " cannot be tuned: " + why_not);
    return std::optional<kernels::Parameter>();
  }

  Status Tails(kernels::Parameter& parameter) {
    const std::optional<int64_t> value = kernels::TailProbe(parameter, discovery.base);
    if (!value) return {};
    const auto site_values = kernels::SiteValues(parameter, *value);
    if (!site_values) return {};
    auto trace = TraceWith(*site_values);
    if (!trace) return trace.error();
    kernels::ObserveTails(parameter, *value, discovery.base, trace->traced, trace->calls);
    return {};
  }

  const Source& original_;
  const std::vector<kernels::InputSpec>& inputs_;
  const std::string& chip_;
  Toolchain& toolchain_;
  const Limits limits_;
  const int parallel_;
  const std::stop_token stop_;
  std::mutex mutex_;
  std::vector<kernels::Observation> observations_;
};

}  // namespace

LocatedCalls LocateCalls(const Graph& graph) {
  LocatedCalls located;
  Locate(graph, located);
  return located;
}

Expected<std::vector<FileText>> EditedFiles(const Source& original, const std::vector<kernels::TextEdit>& edits) {
  std::map<std::string, std::string> texts;
  for (const FileText& file : original.files) texts[file.path] = file.text;
  auto edited = kernels::ApplyEdits(texts, edits);
  if (!edited) return Fail(edited.error());
  std::vector<FileText> files = original.files;
  for (FileText& file : files) {
    const auto found = edited->find(file.path);
    if (found != edited->end()) file.text = found->second;
  }
  return files;
}

Expected<Discovery> DiscoverParameters(const Source& original, const std::vector<kernels::InputSpec>& inputs,
                                       const TraceReport& traced, const std::string& chip, Toolchain& toolchain,
                                       const Limits& limits, int parallel,
                                       const std::function<void(size_t, size_t)>& progress, std::stop_token stop) {
  Discoverer discoverer(original, inputs, chip, toolchain, limits, parallel, stop);
  Discovery& discovery = discoverer.discovery;
  if (!traced.program) return Fail(ErrorKind::kInternal, "the original has no program graph", original.file);
  LocatedCalls located = LocateCalls(traced.program->main);
  discovery.base = std::move(located.calls);
  discovery.spans = std::move(located.spans);

  std::vector<kernels::UserFile> user_files;
  const kernels::SourceFile* entry_file = nullptr;
  for (const FileText& file : original.files) {
    discovery.files.push_back(std::make_unique<kernels::SourceFile>(file.path, file.text));
    kernels::UserFile user_file{discovery.files.back().get(), false, {}};
    for (const ClosureFile& closure : traced.closure) {
      if (closure.path != file.path || closure.functions.empty()) continue;
      user_file.entered_known = true;
      user_file.entered.insert(closure.functions.begin(), closure.functions.end());
    }
    user_files.push_back(std::move(user_file));
    if (file.path == original.file) entry_file = discovery.files.back().get();
  }
  if (entry_file == nullptr) return Fail(ErrorKind::kInternal, "the entry file's text is missing", original.file);
  auto entry = entry_file->FindFunction(original.function);
  if (!entry) return Fail(entry.error());

  const kernels::Reached reached = kernels::FindReachable(user_files, *entry_file, *entry);
  discovery.sites = kernels::FindTunableSites(reached);
  std::erase_if(discovery.sites, [](const kernels::TunableSite& site) { return site.priority > kMaxPriority; });
  if (discovery.sites.size() > kMaxSites) {
    discovery.notes.push_back("only the " + std::to_string(kMaxSites) + " likeliest of " +
                              std::to_string(discovery.sites.size()) + " numbers were tried");
    discovery.sites.resize(kMaxSites);
  }
  discovery.params_sites = kernels::FindCompilerParams(reached);
  for (const std::vector<SourceSpan>& spans : discovery.spans) {
    discovery.params_site_of_call.push_back(kernels::MatchCompilerParams(discovery.params_sites, spans));
  }

  if (Status probed = discoverer.Probe(progress); !probed.ok()) return Fail(probed);
  if (Status grouped = discoverer.Group(); !grouped.ok()) return Fail(grouped);
  return std::move(discovery);
}

}  // namespace kernelwright::agents
