// See local_engine.h. One thread per run: a run mostly waits for workers, which queue jobs themselves. A run's end is
// written in one transaction with its last event, so that a client that saw the end finds the result.
#include "daemon/agents/local_engine.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "daemon/agents/check_desk.h"
#include "daemon/agents/check_run.h"
#include "daemon/agents/doctor.h"
#include "daemon/agents/optimize_run.h"
#include "daemon/agents/profile_run.h"
#include "daemon/agents/run_events.h"
#include "daemon/agents/run_request_json.h"
#include "daemon/base/process_identity.h"

namespace kernelwright::agents {
namespace {

constexpr const char* kDefaultChip = "v6e";
constexpr auto kPollInterval = std::chrono::milliseconds(500);  // for events of other processes on the same store

// Identity of this process as the store keeps it; empty on a system without /proc, where no other process can be told
// to be alive and every unfinished run counts as interrupted.
std::string SelfText() {
  const auto self = CurrentProcess();
  return self ? self->ToString() : "";
}

std::string StatusOf(const store::Run& run, bool active) {
  switch (run.status) {
    case store::RunStatus::kQueued:
    case store::RunStatus::kRunning:
    case store::RunStatus::kPaused:
      return active ? "running" : "interrupted";
    case store::RunStatus::kCancelled:
      return "cancelled";
    case store::RunStatus::kFailed:
      return "failed";
    case store::RunStatus::kFinished:
      return run.result.value("status", "no_improvement");
  }
  return "failed";
}

RunInfo InfoOf(const store::Run& run, bool active, bool with_result) {
  RunInfo info;
  info.run = run.id;
  info.kind = run.kind;
  info.status = StatusOf(run, active);
  info.file = run.request.value("file", "");
  info.function = run.result.is_object() ? run.result.value("function", "") : run.request.value("function", "");
  info.chips = run.chips;
  info.created_ms = run.created;
  info.updated_ms = run.updated;
  if (run.result.is_object()) {
    for (const Json& chip : run.result.value("results", Json::array())) {
      if (chip.contains("speedup") && chip["speedup"].is_number()) {
        info.speedup = std::max(info.speedup, chip["speedup"].get<double>());
      }
    }
    info.exit_code = run.result.value("exit_code", 0);
    if (with_result) info.result_json = run.result.dump(2, ' ', false, Json::error_handler_t::replace);
  }
  return info;
}

class LocalEngine;

// Events of one run or of all, from the log's subscription.
class LogStream : public EventStream {
 public:
  LogStream(LocalEngine& engine, store::Store& store, std::unique_ptr<store::Subscription> subscription,
            std::string run, uint64_t since, bool follow)
      : engine_(engine),
        store_(store),
        subscription_(std::move(subscription)),
        run_(std::move(run)),
        since_(since),
        follow_(follow) {}
  Expected<Batch> Next(std::stop_token stop, Deadline deadline) override;

 private:
  static void Append(Batch& batch, const std::vector<store::Event>& events) {
    for (const store::Event& event : events) {
      batch.events.push_back(
          {static_cast<uint64_t>(event.seq), event.run, event.time, event.kind, event.payload.dump()});
    }
  }
  LocalEngine& engine_;
  store::Store& store_;
  std::unique_ptr<store::Subscription> subscription_;
  const std::string run_;
  uint64_t since_;
  const bool follow_;
};

class LocalEngine : public Engine {
 public:
  explicit LocalEngine(LocalEngineParts parts) : parts_(std::move(parts)), log_(*parts_.store), self_(SelfText()) {
    poller_ = std::jthread([this](std::stop_token stop) { PollOtherProcesses(stop); });
  }
  ~LocalEngine() override { LocalEngine::Shutdown(); }

  Expected<std::string> StartRun(const RunRequest& request) override;
  Expected<bool> CancelRun(const std::string& run) override;
  Expected<std::string> ResumeRun(const std::string& run) override;
  Expected<std::vector<RunInfo>> ListRuns(uint32_t limit) override;
  Expected<RunInfo> GetRun(const std::string& run) override;
  Status ExportRun(const std::string& run, const std::function<bool(std::string_view)>& write) override;
  Expected<PruneResult> PruneRuns(const PruneOptions& options) override;
  Expected<std::vector<DoctorItem>> Doctor(const DoctorOptions& options, std::stop_token stop) override {
    return RunDoctor(options, *parts_.toolchains, parts_.chips, *parts_.store, stop);
  }
  Expected<CheckResult> Check(const CheckRequest& request, const OnCheckStage& on_stage, std::stop_token stop) override;
  Expected<ProfileReply> Profile(const ProfileRequest& request, std::stop_token stop) override;
  Expected<EngineStatus> GetStatus() override;
  Expected<std::unique_ptr<EventStream>> Subscribe(const std::string& run, uint64_t since, bool follow) override;
  void Shutdown() override;

  // Whether a process, this or another, drives the run.
  bool IsActive(const store::Run& run);

  // Ok, or why the store refused the end of a run that this process drove. Watchers hear it from here, since the log
  // could not take it either.
  Status UnstoredEnd(const std::string& run);

 private:
  struct Active {
    std::jthread thread;
    bool ended = false;
    bool shutdown = false;  // interrupted by Shutdown: stays "running" in the store and can be resumed
    Status unstored;        // why the end could not be stored: a full disk, say
  };

  Expected<std::vector<const cost::Chip*>> ResolveChips(const std::vector<std::string>& names);
  void Launch(const std::string& run, const RunRequest& request, std::vector<const cost::Chip*> chips, bool resumed);
  void Drive(const std::string& run, const RunRequest& request, const std::vector<const cost::Chip*>& chips,
             bool resumed, std::stop_token stop);
  Status FinishRun(const std::string& run, const RunResult& result, const Status& failure);
  void JoinEnded();
  void PollOtherProcesses(std::stop_token stop);

  LocalEngineParts parts_;
  store::EventLog log_;
  const std::string self_;
  std::mutex mutex_;
  std::map<std::string, Active> active_;
  bool shut_down_ = false;
  CheckDesk checks_;
  std::jthread poller_;
};

Expected<EventStream::Batch> LogStream::Next(std::stop_token stop, Deadline deadline) {
  Batch batch;
  if (!follow_) {
    auto events = store_.ReadEvents(static_cast<int64_t>(since_), run_, 256);
    if (!events) return Fail(events.error());
    Append(batch, *events);
    batch.ended = events->empty();
    if (!events->empty()) since_ = static_cast<uint64_t>(events->back().seq);
    return batch;
  }
  while (true) {
    // Whether the run is active is asked before reading: an end seen now has its last event in the store already.
    bool active = true;
    if (!run_.empty()) {
      auto run = store_.GetRun(run_);
      if (!run) return Fail(run.error());
      active = engine_.IsActive(*run);
    }
    const Deadline slice = Deadline::After(active ? std::chrono::milliseconds(1000) : std::chrono::milliseconds(0));
    auto events = subscription_->Next(256, deadline.Earlier(slice), stop);
    if (!events) return Fail(events.error());
    if (!events->empty()) {
      Append(batch, *events);
      return batch;
    }
    if (!active || subscription_->closed()) {
      if (Status unstored = engine_.UnstoredEnd(run_); !unstored.ok()) return Fail(unstored);
      batch.ended = true;
      return batch;
    }
    if (stop.stop_requested() || deadline.expired()) return batch;
  }
}

bool LocalEngine::IsActive(const store::Run& run) {
  if (run.status != store::RunStatus::kRunning && run.status != store::RunStatus::kQueued) return false;
  {
    std::lock_guard lock(mutex_);
    const auto found = active_.find(run.id);
    if (found != active_.end()) return !found->second.ended;
  }
  if (run.owner == self_) return false;
  const auto owner = ProcessIdentity::Parse(run.owner);
  return owner && IsAlive(*owner);
}

Expected<std::vector<const cost::Chip*>> LocalEngine::ResolveChips(const std::vector<std::string>& names) {
  std::vector<const cost::Chip*> chips;
  auto add = [&](const cost::Chip* chip) {
    if (std::find(chips.begin(), chips.end(), chip) == chips.end()) chips.push_back(chip);
  };
  for (const std::string& name : names.empty() ? std::vector<std::string>{kDefaultChip} : names) {
    if (name == "all") {
      for (const char* each : {"v5e", "v5p", "v6e", "tpu7x"}) {
        if (const cost::Chip* chip = parts_.chips.Find(each)) add(chip);
      }
      continue;
    }
    auto chip = parts_.chips.Get(name);
    if (!chip) return Fail(ErrorKind::kUsage, chip.error().message(), "--chip", chip.error().remedy());
    add(*chip);
  }
  return chips;
}

Expected<std::string> LocalEngine::StartRun(const RunRequest& request) {
  if (request.kind != "optimize" && request.kind != "tune") {
    return Fail(ErrorKind::kUsage, "unknown kind of run `" + request.kind + "`", "run", "Known: optimize, tune.");
  }
  auto chips = ResolveChips(request.chips);
  if (!chips) return Fail(chips.error());
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(request.file, ignored)) {
    return Fail(ErrorKind::kNotFound, "no such file", request.file,
                "Give the path of a Python file: FILE.py::function.");
  }
  store::Run run;
  run.kind = request.kind;
  run.status = store::RunStatus::kRunning;
  run.request = RunRequestToJson(request);
  for (const cost::Chip* chip : *chips) run.chips.push_back(chip->name);
  run.client = request.client;
  run.owner = self_;
  {
    std::lock_guard lock(mutex_);
    if (shut_down_) return Fail(ErrorKind::kCancelled, "the daemon is ending", "daemon", "Run the command again.");
  }
  if (Status created = parts_.store->CreateRun(run); !created.ok()) return Fail(created);
  Launch(run.id, request, *std::move(chips), false);
  return run.id;
}

Expected<std::string> LocalEngine::ResumeRun(const std::string& id) {
  auto run = parts_.store->GetRun(id);
  if (!run) return Fail(run.error());
  if (IsActive(*run)) {
    return Fail(ErrorKind::kConflict, "the run is in progress", run->id,
                "Watch it: kernelwright runs watch " + run->id);
  }
  if (run->status == store::RunStatus::kFinished || run->status == store::RunStatus::kFailed) {
    return Fail(ErrorKind::kConflict, "the run has ended with a result", run->id,
                "Show it: kernelwright runs show " + run->id);
  }
  auto request = RunRequestFromJson(run->request);
  if (!request) return Fail(request.error());
  auto chips = ResolveChips(run->chips);
  if (!chips) return Fail(chips.error());
  if (run->status == store::RunStatus::kCancelled || run->owner == self_) {
    run->status = store::RunStatus::kRunning;
    run->owner = self_;
    run->result = nullptr;
    if (Status updated = parts_.store->UpdateRun(*run); !updated.ok()) return Fail(updated);
  } else if (auto claimed = parts_.store->ClaimRun(run->id, self_); !claimed) {
    return Fail(claimed.error());
  }
  Launch(run->id, *request, *std::move(chips), true);
  return run->id;
}

void LocalEngine::Launch(const std::string& run, const RunRequest& request, std::vector<const cost::Chip*> chips,
                         bool resumed) {
  JoinEnded();
  std::lock_guard lock(mutex_);
  Active& active = active_[run];
  active.ended = false;
  active.unstored = {};
  active.thread = std::jthread([this, run, request, chips = std::move(chips), resumed](std::stop_token stop) {
    Drive(run, request, chips, resumed, stop);
  });
}

void LocalEngine::Drive(const std::string& run, const RunRequest& request, const std::vector<const cost::Chip*>& chips,
                        bool resumed, std::stop_token stop) {
  RunResult result;
  Status failure;
  auto journal = StoreJournal::Open(*parts_.store, log_, parts_.cache.get(), run);
  if (!journal) {
    failure = journal.error();
  } else {
    if (resumed) {
      failure = (*journal)->Emit("run_resumed", PayloadText({{"kept_evaluations", (*journal)->kept_stages()}}));
    }
    OptimizeInputs inputs;
    inputs.request = request;
    inputs.chips = chips;
    inputs.build = parts_.build;
    inputs.captures = parts_.captures;
    inputs.random_seed = parts_.random_seed;
    inputs.parallel = parts_.parallel;
    if (request.budget_seconds > 0) {
      inputs.budget = Deadline::After(std::chrono::milliseconds(static_cast<int64_t>(request.budget_seconds * 1000)));
    }
    if (failure.ok()) result = RunOptimize(inputs, *parts_.toolchains, **journal, stop);
  }
  bool interrupted = false;
  {
    std::lock_guard lock(mutex_);
    interrupted = active_[run].shutdown;
  }
  // When the store refuses the result (a full disk, say) the run stays resumable, and watchers learn why it stopped.
  const Status finished = interrupted ? Status() : FinishRun(run, result, failure);
  std::lock_guard lock(mutex_);
  active_[run].unstored = finished;
  active_[run].ended = true;
}

Status LocalEngine::UnstoredEnd(const std::string& run) {
  std::lock_guard lock(mutex_);
  const auto found = active_.find(run);
  return found == active_.end() ? Status() : found->second.unstored;
}

Status LocalEngine::FinishRun(const std::string& id, const RunResult& result, const Status& failure) {
  auto run = parts_.store->GetRun(id);
  if (!run) return run.error();
  std::string status = OverallStatus(result);
  std::string message = OverallMessage(result);
  int exit_code = OverallExitCode(result);
  if (!failure.ok()) {
    status = failure.kind() == ErrorKind::kCancelled ? "cancelled" : "failed";
    message = failure.ToString();
    exit_code = ExitCode(failure.kind());
    run->result = {{"schema_version", kResultSchemaVersion},
                   {"command", run->kind},
                   {"run", id},
                   {"status", status},
                   {"message", message},
                   {"exit_code", exit_code},
                   {"results", Json::array()}};
  } else {
    auto object = ParseJson(ResultJson(result));
    if (!object) return object.error();
    run->result = *std::move(object);
  }
  run->status = status == "cancelled" ? store::RunStatus::kCancelled
                : status == "failed"  ? store::RunStatus::kFailed
                                      : store::RunStatus::kFinished;
  auto committed = log_.Commit([&](store::Writer& writer) -> Status {
    if (Status updated = writer.UpdateRun(*run); !updated.ok()) return updated;
    store::Event event;
    event.run = id;
    event.kind = "run_finished";
    event.payload = RunFinishedPayload(status, message, exit_code);
    return writer.AppendEvent(event);
  });
  return committed ? Status() : committed.error();
}

void LocalEngine::JoinEnded() {
  std::vector<std::jthread> ended;
  std::lock_guard lock(mutex_);
  for (auto entry = active_.begin(); entry != active_.end();) {
    if (entry->second.ended) ended.push_back(std::move(entry->second.thread));
    if (entry->second.ended && entry->second.unstored.ok()) {
      entry = active_.erase(entry);
    } else {
      ++entry;
    }
  }
}

Expected<bool> LocalEngine::CancelRun(const std::string& id) {
  auto run = parts_.store->GetRun(id);
  if (!run) return Fail(run.error());
  std::lock_guard lock(mutex_);
  const auto found = active_.find(run->id);
  if (found == active_.end() || found->second.ended) return false;
  found->second.thread.request_stop();
  return true;
}

Expected<std::vector<RunInfo>> LocalEngine::ListRuns(uint32_t limit) {
  store::RunFilter filter;
  filter.limit = limit == 0 ? 50 : limit;
  auto runs = parts_.store->ListRuns(filter);
  if (!runs) return Fail(runs.error());
  std::vector<RunInfo> infos;
  for (const store::Run& run : *runs) {
    infos.push_back(InfoOf(run, IsActive(run), false));
    if (auto candidates = parts_.store->ListCandidates(run.id)) {
      infos.back().candidates = static_cast<uint32_t>(candidates->size());
    }
  }
  return infos;
}

Expected<RunInfo> LocalEngine::GetRun(const std::string& id) {
  auto run = parts_.store->GetRun(id);
  if (!run) return Fail(run.error());
  RunInfo info = InfoOf(*run, IsActive(*run), true);
  if (auto candidates = parts_.store->ListCandidates(run->id)) {
    info.candidates = static_cast<uint32_t>(candidates->size());
  }
  return info;
}

Status LocalEngine::ExportRun(const std::string& id, const std::function<bool(std::string_view)>& write) {
  auto run = parts_.store->GetRun(id);
  if (!run) return run.error();
  auto document = parts_.store->Export(run->id);
  if (!document) return document.error();
  const std::string text = document->dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  constexpr size_t kPart = size_t{256} << 10;
  for (size_t begin = 0; begin < text.size(); begin += kPart) {
    if (!write(std::string_view(text).substr(begin, kPart))) {
      return Status(ErrorKind::kCancelled, "the export was stopped", run->id);
    }
  }
  return {};
}

Expected<PruneResult> LocalEngine::PruneRuns(const PruneOptions& options) {
  store::PruneOptions prune;
  if (options.older_than_seconds > 0) prune.older_than_ms = SystemClock().NowMs() - options.older_than_seconds * 1000;
  if (options.keep > 0) prune.keep_newest = options.keep;
  prune.dry_run = options.dry_run;
  auto pruned = parts_.store->Prune(prune);
  if (!pruned) return Fail(pruned.error());
  PruneResult result;
  result.runs = static_cast<uint32_t>(pruned->runs.size());
  result.freed_bytes = static_cast<uint64_t>(std::max<int64_t>(0, pruned->bytes_before - pruned->bytes_after));
  return result;
}

Expected<CheckResult> LocalEngine::Check(const CheckRequest& request, const OnCheckStage& on_stage,
                                         std::stop_token stop) {
  auto chips = ResolveChips(request.chips);
  if (!chips) return Fail(chips.error());
  if (!parts_.check_rules) return Fail(ErrorKind::kInternal, "this engine has no rules to check by", "check");
  auto seat = checks_.Begin(request.document, std::move(stop));
  if (!seat) return Fail(seat.error());
  CheckInputs inputs;
  inputs.request = request;
  inputs.chips = *std::move(chips);
  inputs.rules = parts_.check_rules.get();
  inputs.cache = parts_.cache.get();
  inputs.parallel = parts_.parallel;
  inputs.captures = parts_.captures;
  inputs.jax_version = checks_.JaxVersion(request.python);
  if (request.debounce) inputs.debounce = checks_.Debounce(request.document);
  auto result = RunCheck(inputs, *parts_.toolchains, on_stage, seat->stop());
  if (result) checks_.Learn(request, *result);
  return result;
}

Expected<ProfileReply> LocalEngine::Profile(const ProfileRequest& request, std::stop_token stop) {
  auto chips = ResolveChips(request.chips);
  if (!chips) return Fail(chips.error());
  ProfileInputs inputs;
  inputs.request = request;
  inputs.chips = *std::move(chips);
  inputs.captures = parts_.captures;
  inputs.build = parts_.build;
  if (!request.against_chip.empty()) {
    auto against = ResolveChips({request.against_chip});
    if (!against) return Fail(against.error());
    if (against->size() != 1) return Fail(ErrorKind::kUsage, "a profile is compared with one chip", "--against");
    inputs.against_chip = against->front();
  }
  return RunProfile(inputs, *parts_.toolchains, parts_.cache.get(), std::move(stop));
}

Expected<EngineStatus> LocalEngine::GetStatus() {
  JoinEnded();
  EngineStatus status;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [run, active] : active_) status.active_runs += active.ended ? 0 : 1;
  }
  status.queued_jobs = parts_.toolchains->QueuedJobs();
  status.workers = parts_.toolchains->Describe();
  if (parts_.stored_bytes) status.store_bytes = parts_.stored_bytes();
  return status;
}

Expected<std::unique_ptr<EventStream>> LocalEngine::Subscribe(const std::string& id, uint64_t since, bool follow) {
  std::string run_id;
  if (!id.empty()) {
    auto run = parts_.store->GetRun(id);
    if (!run) return Fail(run.error());
    run_id = run->id;
  }
  auto subscription = follow ? log_.Subscribe(static_cast<int64_t>(since), run_id) : nullptr;
  return std::unique_ptr<EventStream>(
      std::make_unique<LogStream>(*this, *parts_.store, std::move(subscription), run_id, since, follow));
}

void LocalEngine::PollOtherProcesses(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    (void)log_.Poll();  // a busy or full disk shows where events are written
    wake.wait_for(lock, stop, kPollInterval, [] { return false; });
  }
}

void LocalEngine::Shutdown() {
  std::vector<std::jthread> threads;
  {
    std::lock_guard lock(mutex_);
    if (shut_down_) return;
    shut_down_ = true;
    for (auto& [run, active] : active_) {
      active.shutdown = !active.ended;
      threads.push_back(std::move(active.thread));
    }
  }
  for (std::jthread& thread : threads) thread.request_stop();
  threads.clear();  // joins
  checks_.Close();
  parts_.toolchains->Shutdown();
  poller_.request_stop();
  if (poller_.joinable()) poller_.join();
  log_.Close();
}

}  // namespace

std::unique_ptr<Engine> MakeLocalEngine(LocalEngineParts parts) {
  return std::make_unique<LocalEngine>(std::move(parts));
}

}  // namespace kernelwright::agents
