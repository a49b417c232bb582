// What the daemon can do, as plain values and synchronous calls: the line between the transport (service/, cli/), which
// knows gRPC and terminals, and the loop (agents/), which knows runs. The same interface serves the daemon and
// `--in-process`. Every method may be called from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/agents/check.h"
#include "daemon/agents/profile_request.h"
#include "daemon/base/deadline.h"
#include "daemon/base/status.h"

namespace kernelwright::agents {

// A request for work; paths are absolute. Mirrors StartRunRequest of session.proto.
struct RunRequest {
  std::string kind;                                // "optimize", "tune"
  std::string file;                                // the user's file
  std::string function;                            // qualified name; empty: the only kernel function of the file
  std::string inputs;                              // text of --inputs; empty: comment, module or capture
  std::vector<std::string> chips;                  // "v6e", …, or "all"; empty: the default
  std::string reference_file;                      // --reference FILE::f, else empty
  std::string reference_function;                  // its function
  std::string python;                              // interpreter; empty: found as docs/environment.md says
  double budget_seconds = 0;                       // 0: no limit
  uint32_t max_compiles = 0;                       // 0: the default
  double timeout_seconds = 0;                      // per job; 0: the default
  std::string sandbox;                             // auto, bubblewrap, landlock, none; empty: auto
  std::string working_directory;                   // of the client
  std::map<std::string, std::string> environment;  // variables that choose an interpreter (PATH, VIRTUAL_ENV, HOME …)
  std::string client;                              // "cli", "vscode", …
  std::string lift_into;                           // where lifted kernels go: "beside" (also empty), "module"
  std::string
      exactness;  // what rewrites may do to values: "bit-equal", "reassociation" (also empty), "lower-precision"
};

// One run as the store has it. Mirrors RunRecord.
struct RunInfo {
  std::string run;                 // id
  std::string kind;                // optimize, tune
  std::string status;              // running, interrupted, improved, no_improvement, failed, cancelled
  std::string file;                // file
  std::string function;            // qualified name
  std::vector<std::string> chips;  // resolved
  int64_t created_ms = 0;          // milliseconds since 1970 UTC
  int64_t updated_ms = 0;          // last change
  uint32_t candidates = 0;         // tried so far
  double speedup = 0;              // best so far over all chips, 0 when none
  std::string result_json;         // the result object of docs/json.md once the run has ended, else empty
  int exit_code = 0;               // of the command, once the run has ended
};

// One numbered event. `kind` is the name of a field of the oneof in Event (run.proto): "run_started", "plan_made",
// "baseline_ready", "candidate_changed", "best_changed", "progress", "log_line", "run_finished", "run_resumed".
// `payload_json` is that field's message in protobuf's JSON mapping with original (snake_case) field names; enums by
// name, 64-bit integers as strings or numbers.
struct RunEvent {
  uint64_t sequence = 0;     // grows over all runs of the store
  std::string run;           // id
  int64_t time_ms = 0;       // when it was stored
  std::string kind;          // see above
  std::string payload_json;  // see above
};

// A reader's place in the event log. Pulled by its owner, so a slow reader costs no memory: what it has not read yet
// is in the store. Used by one thread at a time.
class EventStream {
 public:
  struct Batch {
    std::vector<RunEvent> events;  // in order, no gaps, no repeats; at most some hundred
    bool ended = false;            // nothing will follow: the run is over (or nothing more is stored, without follow)
  };
  virtual ~EventStream() = default;
  // Waits until there is at least one event, the stream has ended, `stop` is requested or `deadline` has passed; the
  // last two give an empty batch that has not ended. A followed stream of one run ends when the run is not active and
  // every event up to its last is delivered; that of all runs ends only with the engine's Shutdown.
  virtual Expected<Batch> Next(std::stop_token stop, Deadline deadline) = 0;
};

struct PruneOptions {
  int64_t older_than_seconds = 0;  // 0: any age
  uint32_t keep = 0;               // this many newest stay
  bool dry_run = false;            // count only
};

struct PruneResult {
  uint32_t runs = 0;         // deleted, or that would be
  uint64_t freed_bytes = 0;  // of the store, cache included
};

// Which environment to look at. Mirrors DoctorRequest.
struct DoctorOptions {
  std::string file;                                // whose interpreter; may be empty
  std::string python;                              // --python
  std::vector<std::string> chips;                  // to try; empty: all
  std::string working_directory;                   // of the client
  std::map<std::string, std::string> environment;  // as in RunRequest
  std::string sandbox;                             // as in RunRequest
};

struct DoctorItem {
  std::string name;    // "interpreter", "jax", "chip v5e", "sandbox", …
  std::string status;  // ok, warning, error; an error means that something needed is missing
  std::string value;   // what was found
  std::string remedy;  // what to do, when not ok
};

struct EngineStatus {
  uint32_t active_runs = 0;          // running now
  uint32_t queued_jobs = 0;          // waiting for a worker
  uint64_t store_bytes = 0;          // database and cache on disk
  std::vector<std::string> workers;  // one line each: kind, pid, state
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Stores the run and its first event, starts the work and returns the run's id at once. What can be said without a
  // worker (no such file, bad chip name, bad flag) is an error here; what needs one ends the run as failed.
  virtual Expected<std::string> StartRun(const RunRequest& request) = 0;
  // Asks the run to end and keep what was found; true when it was running. The events tell when it has ended.
  virtual Expected<bool> CancelRun(const std::string& run) = 0;
  // Takes up an interrupted or cancelled run; its id. kConflict when it is running or has a final result.
  virtual Expected<std::string> ResumeRun(const std::string& run) = 0;
  // Newest first, without result_json.
  virtual Expected<std::vector<RunInfo>> ListRuns(uint32_t limit) = 0;
  // Here and wherever else a run is named, a unique prefix of the id is enough; kNotFound, or kUsage when ambiguous.
  virtual Expected<RunInfo> GetRun(const std::string& run) = 0;
  // Everything about one run as one JSON document, in parts; stops when `write` returns false.
  virtual Status ExportRun(const std::string& run, const std::function<bool(std::string_view)>& write) = 0;
  virtual Expected<PruneResult> PruneRuns(const PruneOptions& options) = 0;
  // Looks at the environment, which takes seconds; ends early with kCancelled when `stop` is requested.
  virtual Expected<std::vector<DoctorItem>> Doctor(const DoctorOptions& options, std::stop_token stop) = 0;
  // Checks a file or the texts given for it; blocks, and reports each stage as it ends, from one thread at a time. A
  // check of the same `document` that is in progress is ended, with kCancelled as its failure. Nothing is stored.
  virtual Expected<CheckResult> Check(const CheckRequest& request, const OnCheckStage& on_stage,
                                      std::stop_token stop) = 0;
  // Compiles and profiles a function; blocks for seconds to minutes, ends early with kCancelled when `stop` is
  // requested. Nothing is stored but the compile. An error is what keeps every chip from being profiled.
  virtual Expected<ProfileReply> Profile(const ProfileRequest& request, std::stop_token stop) = 0;
  virtual Expected<EngineStatus> GetStatus() = 0;
  // Events with a number above `since`, of one run or (empty) of all; with `follow` also those to come.
  virtual Expected<std::unique_ptr<EventStream>> Subscribe(const std::string& run, uint64_t since, bool follow) = 0;
  // Interrupts the runs (they can be resumed) and checks, ends every child process, waits for them and wakes all
  // streams. The engine refuses work after it. Safe to call twice.
  virtual void Shutdown() = 0;
};

// Where an engine keeps and finds things.
struct EngineOptions {
  std::filesystem::path state_folder;         // store; private to the user
  std::filesystem::path cache_folder;         // compile cache and dumps, size-limited
  std::filesystem::path agents_folder;        // agents/ of this build: chips.json, diagnostics.json, worker/
  std::filesystem::path proto_python_folder;  // generated Python modules of the contracts
  // True in the daemon, which holds the lock of OneDaemon; false for --in-process, beside which a daemon may be
  // working on runs in the same store.
  bool exclusive = false;
};

// The engine of this build. Fails when the store cannot be opened.
Expected<std::unique_ptr<Engine>> MakeEngine(const EngineOptions& options);

}  // namespace kernelwright::agents
