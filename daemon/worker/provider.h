// Hands out toolchains: finds the interpreter, starts a worker for it when none runs, keeps a few idle ones warm, and
// ends all of them. Workers are shared by everyone who needs the same interpreter, sandbox, readable folders and
// environment; a different need gets a worker of its own, because a sandbox is fixed at the start of a process.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "daemon/agents/toolchain.h"
#include "daemon/base/clock.h"
#include "daemon/worker/interpreter.h"
#include "daemon/worker/readable_roots.h"
#include "daemon/worker/worker_process.h"

namespace kernelwright::worker {

struct LocalOptions {
  std::filesystem::path agents_folder;        // contains worker/kernelwright_worker
  std::filesystem::path proto_python_folder;  // contains kernelwright/v1/worker_pb2.py
  uint32_t parallel_jobs = 0;                 // per worker; 0: one per processor
  size_t max_idle_workers = 3;                // the one that is idle longest goes first
  std::chrono::minutes idle_time{10};         // then it is ended
  std::chrono::milliseconds hello_deadline{120'000};
};

// The command that starts the worker for these options: interpreter, arguments, environment.
Expected<WorkerCommand> MakeWorkerCommand(const LocalOptions& local, const agents::ToolchainOptions& options,
                                          const InterpreterSystem& interpreters, const FolderSystem& folders);

std::unique_ptr<agents::ToolchainProvider> MakeLocalToolchains(LocalOptions options,
                                                               const Clock& clock = SystemClock());

}  // namespace kernelwright::worker
