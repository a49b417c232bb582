// The pool. One lock guards the table; workers start and end outside it. A lease is a shared_ptr whose end tells the
// pool that its worker may have become idle; it keeps the pool's table alive, so that a client may outlive the
// provider.
#include "daemon/worker/provider.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "daemon/base/log.h"
#include "daemon/worker/worker_toolchain.h"

namespace kernelwright::worker {
namespace {

namespace fs = std::filesystem;
using TimePoint = std::chrono::steady_clock::time_point;

struct Entry {
  std::shared_ptr<WorkerToolchain> toolchain;  // null while it starts
  std::string title;                           // interpreter and sandbox, for Describe
  int leases = 0;
  TimePoint idle_since;
};

struct Table {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::map<std::string, Entry> entries;  // by key
  bool closed = false;
  bool lease_ended = false;  // since the janitor last looked
};

// When packages of the interpreter were last installed or removed; a worker that imported the old ones is not what a
// new run wants. Empty when it has no folder of its own.
std::string PackagesStamp(const fs::path& python) {
  std::string stamp;
  std::error_code error;
  for (const fs::directory_entry& folder : fs::directory_iterator(python.parent_path().parent_path() / "lib", error)) {
    if (!folder.path().filename().string().starts_with("python3")) continue;
    const auto time = fs::last_write_time(folder.path() / "site-packages", error);
    if (!error) stamp += folder.path().string() + '@' + std::to_string(time.time_since_epoch().count()) + '\0';
  }
  return stamp;
}

// What two workers must have in common to be one.
std::string KeyOf(const WorkerCommand& command) {
  std::string key = PackagesStamp(command.argv.front());
  for (const std::string& word : command.argv) key += word + '\0';
  for (const auto& [name, value] : command.environment) key += name + '=' + value + '\0';
  return key;
}

class LocalToolchains final : public agents::ToolchainProvider {
 public:
  LocalToolchains(LocalOptions options, const Clock& clock)
      : options_(std::move(options)), clock_(clock), table_(std::make_shared<Table>()) {
    janitor_ = std::jthread([this](const std::stop_token& stop) { EndIdleWorkers(stop); });
  }
  ~LocalToolchains() override { Shutdown(); }

  Expected<std::shared_ptr<agents::Toolchain>> Get(const agents::ToolchainOptions& options,
                                                   std::stop_token stop) override {
    Expected<WorkerCommand> command = MakeWorkerCommand(options_, options, RealInterpreterSystem(), RealFolderSystem());
    if (!command) return Fail(command.error());
    const std::string key = KeyOf(*command);
    {
      std::unique_lock lock(table_->mutex);
      // Someone else may be starting the same worker: theirs is ours too.
      const bool decided = table_->changed.wait(lock, stop, [&] {
        const auto it = table_->entries.find(key);
        return table_->closed || it == table_->entries.end() || it->second.toolchain != nullptr;
      });
      if (!decided) return Fail(ErrorKind::kCancelled, "waiting for a worker was cancelled");
      if (table_->closed) return Fail(ErrorKind::kCancelled, "the workers were shut down");
      const auto it = table_->entries.find(key);
      if (it != table_->entries.end()) return Lease(key, it->second);
      table_->entries[key].title = command->argv.front();
    }
    return StartNew(key, *command, stop);
  }

  std::vector<std::string> Describe() const override {
    const std::lock_guard lock(table_->mutex);
    std::vector<std::string> lines;
    for (const auto& [key, entry] : table_->entries) {
      if (entry.toolchain == nullptr) {
        lines.push_back("local worker, starting: " + entry.title);
        continue;
      }
      const uint32_t running = entry.toolchain->running_jobs();
      const uint32_t queued = entry.toolchain->queued_jobs();
      std::string line = "local worker, pid " + std::to_string(entry.toolchain->pid()) + ": " + entry.title +
                         ", sandbox " + entry.toolchain->identity().sandbox + ", ";
      line += running + queued == 0 ? "idle" : std::to_string(running) + " running";
      if (queued > 0) line += ", " + std::to_string(queued) + " queued";
      lines.push_back(std::move(line));
    }
    return lines;
  }

  uint32_t QueuedJobs() const override {
    const std::lock_guard lock(table_->mutex);
    uint32_t count = 0;
    for (const auto& [key, entry] : table_->entries) {
      if (entry.toolchain != nullptr) count += entry.toolchain->queued_jobs();
    }
    return count;
  }

  void Shutdown() override {
    shutdown_.request_stop();
    janitor_.request_stop();
    std::vector<std::shared_ptr<WorkerToolchain>> ending;
    {
      std::unique_lock lock(table_->mutex);
      table_->closed = true;
      table_->changed.notify_all();
      // Those that start see the stop and leave the table by themselves.
      table_->changed.wait(lock, [this] {
        return std::none_of(table_->entries.begin(), table_->entries.end(),
                            [](const auto& entry) { return entry.second.toolchain == nullptr; });
      });
      for (auto& [key, entry] : table_->entries) ending.push_back(std::move(entry.toolchain));
      table_->entries.clear();
    }
    EndAll(std::move(ending));
  }

 private:
  Expected<std::shared_ptr<agents::Toolchain>> StartNew(const std::string& key, const WorkerCommand& command,
                                                        const std::stop_token& stop) {
    Expected<std::unique_ptr<WorkerProcess>> worker;
    {
      std::stop_source both;
      const std::stop_callback from_caller(stop, [&both] { both.request_stop(); });
      const std::stop_callback from_shutdown(shutdown_.get_token(), [&both] { both.request_stop(); });
      worker = WorkerProcess::Start(command, both.get_token());
    }
    std::shared_ptr<WorkerToolchain> toolchain;
    if (worker) {
      toolchain = std::make_shared<WorkerToolchain>(
          std::move(*worker),
          [command](const std::stop_token& restart_stop) { return WorkerProcess::Start(command, restart_stop); },
          command.parallel_jobs, clock_);
    }
    std::vector<std::shared_ptr<WorkerToolchain>> ending;
    std::shared_ptr<agents::Toolchain> lease;
    {
      const std::lock_guard lock(table_->mutex);
      table_->changed.notify_all();
      if (toolchain == nullptr) {
        table_->entries.erase(key);
        return Fail(worker.error());
      }
      Entry& entry = table_->entries[key];
      entry.toolchain = toolchain;
      lease = Lease(key, entry);
      ending = TakeIdle({}, options_.max_idle_workers);
    }
    EndAll(std::move(ending));
    return lease;
  }

  // table_->mutex held.
  std::shared_ptr<agents::Toolchain> Lease(const std::string& key, Entry& entry) {
    ++entry.leases;
    // The deleter owns the toolchain and the table, and knows the entry by its key, which may be gone by then.
    return {entry.toolchain.get(), [table = table_, toolchain = entry.toolchain, key, &clock = clock_](void*) {
              const std::lock_guard lock(table->mutex);
              const auto it = table->entries.find(key);
              if (it == table->entries.end() || it->second.toolchain != toolchain) return;
              if (--it->second.leases > 0) return;
              it->second.idle_since = clock.Monotonic();
              table->lease_ended = true;
              table->changed.notify_all();
            }};
  }

  // Takes idle workers out of the table: those idle since before `older_than` ago (0: none for that reason), and the
  // longest idle ones beyond `keep`. table_->mutex held.
  std::vector<std::shared_ptr<WorkerToolchain>> TakeIdle(std::chrono::steady_clock::duration older_than, size_t keep) {
    std::vector<std::map<std::string, Entry>::iterator> idle;
    for (auto it = table_->entries.begin(); it != table_->entries.end(); ++it) {
      if (it->second.toolchain != nullptr && it->second.leases == 0) idle.push_back(it);
    }
    std::sort(idle.begin(), idle.end(),
              [](const auto& a, const auto& b) { return a->second.idle_since > b->second.idle_since; });
    std::vector<std::shared_ptr<WorkerToolchain>> taken;
    const TimePoint now = clock_.Monotonic();
    for (size_t i = 0; i < idle.size(); ++i) {
      const bool old = older_than.count() > 0 && now - idle[i]->second.idle_since >= older_than;
      if (i < keep && !old && idle[i]->second.toolchain->alive()) continue;
      taken.push_back(std::move(idle[i]->second.toolchain));
      table_->entries.erase(idle[i]);
    }
    return taken;
  }

  static void EndAll(std::vector<std::shared_ptr<WorkerToolchain>> toolchains) {
    std::vector<std::jthread> threads;  // side by side: each may take its whole grace
    threads.reserve(toolchains.size());
    for (auto& toolchain : toolchains) {
      threads.emplace_back([toolchain = std::move(toolchain)] { toolchain->Shutdown(); });
    }
  }

  void EndIdleWorkers(const std::stop_token& stop) {
    std::unique_lock lock(table_->mutex);
    while (!stop.stop_requested()) {
      std::vector<std::shared_ptr<WorkerToolchain>> ending = TakeIdle(options_.idle_time, options_.max_idle_workers);
      if (!ending.empty()) {
        LogInfo("ending {} idle worker(s)", ending.size());
        lock.unlock();
        EndAll(std::move(ending));
        lock.lock();
        continue;
      }
      // Woken when a lease ends; else it looks again often enough for the idle time to be kept.
      table_->changed.wait_for(lock, stop, std::chrono::seconds(30), [this] { return table_->lease_ended; });
      table_->lease_ended = false;
    }
  }

  const LocalOptions options_;
  const Clock& clock_;
  const std::shared_ptr<Table> table_;
  std::stop_source shutdown_;
  std::jthread janitor_;
};

}  // namespace

std::unique_ptr<agents::ToolchainProvider> MakeLocalToolchains(LocalOptions options, const Clock& clock) {
  return std::make_unique<LocalToolchains>(std::move(options), clock);
}

}  // namespace kernelwright::worker
