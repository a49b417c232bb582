// What the loop asks of a worker: trace, compile, judge, probe. Plain values and blocking calls; implemented over the
// worker protocol in daemon/worker, and by scripted answers in the loop's unit tests. Safe to call from many threads:
// calls run side by side up to the worker's number of jobs, the rest waits in order.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/base/status.h"
#include "daemon/kernels/code_error.h"
#include "daemon/kernels/inputs.h"
#include "daemon/kernels/program.h"

namespace kernelwright::agents {

using Versions = std::map<std::string, std::string>;

// A file's text as it is to be used, whatever the disk says.
struct FileText {
  std::string path;  // absolute
  std::string text;
  bool operator==(const FileText&) const = default;
};

// A function in a file, with the texts that replace files on disk; the entry file is always among them.
struct Source {
  std::string file;
  std::string function;
  std::vector<FileText> files;
  bool operator==(const Source&) const = default;
};

// Limits of each process of a job.
struct Limits {
  std::chrono::milliseconds deadline{60'000};
  uint64_t memory_bytes = uint64_t{8} << 30;
  uint64_t file_bytes = uint64_t{2} << 30;
};

// How a job's processes ended; only kDone has a report.
enum class JobOutcome { kDone, kCancelled, kDeadline, kMemory, kCrashed, kDisk, kSandbox };
// "done", "cancelled", "deadline", "memory", "crashed", "disk", "sandbox".
const char* JobOutcomeName(JobOutcome outcome);

// Common part of every report. When outcome is not kDone the rest of the report is empty and `detail` says why, for
// `role` (candidate, oracle, judge).
struct JobReport {
  JobOutcome outcome = JobOutcome::kDone;
  std::string detail;
  std::string role;
  uint32_t milliseconds = 0;
};

struct TraceRequest {
  Source source;
  std::vector<kernels::InputSpec> inputs;  // empty: asked of the module
  std::vector<std::string> chips;          // the first is the abstract device of the trace
  bool want_program = true;
  bool want_artefacts = false;
  Limits limits;
};

// Serialized StableHLO for one chip; `error` instead when lowering for the chip failed.
struct Artefact {
  std::string chip;
  std::string exported;
  std::string sha256;
  std::optional<CodeError> error;
};

struct ClosureFile {
  std::string path;
  std::string sha256;
  bool is_user_file = false;
  std::vector<std::string> functions;  // entered while tracing
};

struct TraceReport : JobReport {
  std::optional<CodeError> error;
  std::optional<Program> program;
  std::vector<Artefact> artefacts;
  std::vector<kernels::InputSpec> inputs;
  std::string inputs_origin;
  std::vector<ClosureFile> closure;
  std::vector<PallasCall> calls_seen;  // also when a kernel's body failed to trace (then without kernel graph)
  std::vector<TensorType> outputs;
  std::string output_tree;
  Versions versions;
};

struct CompileRequest {
  Artefact artefact;
  bool want_dumps = true;
  Limits limits;
};

struct DumpFile {
  std::string name;
  std::string gzip;  // text, compressed
};

struct CompileReport : JobReport {
  std::optional<CodeError> error;
  std::vector<DumpFile> dumps;
  double flops = 0;           // compiler's count, 0 when none
  double bytes_accessed = 0;  // compiler's count, 0 when none
  uint64_t argument_bytes = 0;
  uint64_t output_bytes = 0;
  uint64_t temporary_bytes = 0;
  std::string hlo_gzip;
  Versions versions;
  uint32_t compile_milliseconds = 0;
};

struct CheckShape {
  std::string name;
  std::vector<kernels::InputSpec> inputs;
  bool operator==(const CheckShape&) const = default;
};

struct Tolerance {
  double reference_factor = 2;  // allowed multiple of the reference's own error
  double floor_relative = 0;    // 0: from the output's type
  bool operator==(const Tolerance&) const = default;
};

struct JudgeRequest {
  Source candidate;
  Source reference;
  std::vector<CheckShape> shapes;
  std::vector<uint64_t> seeds;
  Tolerance tolerance;
  bool claims_kernel = true;
  std::string chip;
  bool reference_only = false;
  std::vector<std::string> only_gates;  // empty: all
  Limits limits;
};

enum class GateStatus { kPass, kFail, kNotRun };
const char* GateStatusName(GateStatus status);  // "pass", "fail", "not_run"

struct GateResult {
  std::string gate;  // "G43"
  GateStatus status = GateStatus::kNotRun;
  std::string reason;
};

struct Comparison {
  std::string shape;
  std::string distribution;
  uint64_t seed = 0;
  uint32_t output = 0;
  double candidate_error = 0;
  double reference_error = 0;
  double limit = 0;
  bool pass = false;
  std::string detail;
};

struct JudgeReport : JobReport {
  std::vector<GateResult> gates;
  std::vector<Comparison> comparisons;
  std::optional<CodeError> candidate_error;
  std::optional<CodeError> reference_error;
  std::string inputs_sha256;
};

struct ChipProbe {
  std::string chip;
  bool compiles = false;
  std::string detail;
  uint32_t milliseconds = 0;
};

struct ProbeReport : JobReport {
  std::vector<ChipProbe> chips;
};

// What a worker said of itself at its start.
struct WorkerIdentity {
  Versions versions;
  std::string python;
  std::string sandbox;         // "bubblewrap", "landlock", "none"
  std::string sandbox_detail;  // why not a stronger one, and the remedy
  int pid = 0;
  uint32_t start_milliseconds = 0;
  bool private_namespaces = false;
};

// A Status error means that the worker itself failed (died, could not start, spoke nonsense): a job lost to that is
// repeated once on a fresh worker before it is reported. Everything that the user's code did is in the report.
class Toolchain {
 public:
  virtual ~Toolchain() = default;
  virtual const WorkerIdentity& identity() const = 0;
  virtual Expected<TraceReport> Trace(const TraceRequest& request, std::stop_token stop) = 0;
  virtual Expected<CompileReport> Compile(const CompileRequest& request, std::stop_token stop) = 0;
  virtual Expected<JudgeReport> Judge(const JudgeRequest& request, std::stop_token stop) = 0;
  virtual Expected<ProbeReport> Probe(const std::vector<std::string>& chips, const Limits& limits,
                                      std::stop_token stop) = 0;
};

// Which worker a run needs.
struct ToolchainOptions {
  std::string python;  // --python or the setting; empty: found
  std::string file;    // the user's file: its folder decides on .venv and must be readable in the sandbox
  std::vector<std::string> readable_folders;  // more folders that imports may need
  std::string working_directory;
  std::map<std::string, std::string> environment;  // of the client: PATH, VIRTUAL_ENV, HOME, XDG_DATA_HOME, …
  std::string sandbox;                             // auto, bubblewrap, landlock, none; empty: auto
};

// Starts workers or hands out running ones; owns them. Thread-safe.
class ToolchainProvider {
 public:
  virtual ~ToolchainProvider() = default;
  // Fails with kEnvironment (no interpreter, no jax, jax too old, no sandbox) and the remedy.
  virtual Expected<std::shared_ptr<Toolchain>> Get(const ToolchainOptions& options, std::stop_token stop) = 0;
  virtual std::vector<std::string> Describe() const = 0;  // one line per worker: kind, pid, jobs
  virtual uint32_t QueuedJobs() const = 0;
  virtual void Shutdown() = 0;  // ends every worker and waits
};

}  // namespace kernelwright::agents
