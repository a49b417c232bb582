// The part of a spawn that runs between fork and exec, and the guard process. Only async-signal-safe calls are allowed
// here: the process is a copy of one thread of a program with many, and any lock may be held for ever.
#pragma once

#include <sys/types.h>

#include <string>

namespace kernelwright::spawn {

// Plain data, made ready before the fork.
struct ChildPlan {
  const char* program = nullptr;
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  const char* cwd = nullptr;  // null: unchanged
  // source[i] becomes target[i] in the child; targets 0, 1, 2 are always among them. `scratch` has the same length.
  const int* source = nullptr;
  const int* target = nullptr;
  int* scratch = nullptr;
  int mappings = 0;
  int go_read = -1;     // a byte here says that the guard stands; end-of-file says that the parent died
  int go_write = -1;    // the parent's end, closed first
  int failure_fd = -1;  // close-on-exec; gets a Failure when something goes wrong
  pid_t parent = 0;
};

enum class Stage : int { kPrepare, kFolder, kExec };

struct Failure {
  Stage stage = Stage::kPrepare;
  int error = 0;
};

// Runs in the child; never returns.
[[noreturn]] void RunChild(const ChildPlan& plan);

// Runs in the guard: joins the group, waits for the end-of-file of `lifeline`, whose other end only the parent has,
// then kills the group and so itself. Never returns.
[[noreturn]] void RunGuard(pid_t group, int lifeline);

}  // namespace kernelwright::spawn
