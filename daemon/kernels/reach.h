// Which functions and constants of the user's files an entry function may use: a call graph by name. It errs on the
// side of too much, since what it leaves out can never be tuned, and what it adds is sorted out by tracing.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "daemon/kernels/syntax.h"

namespace kernelwright::kernels {

struct ReachedFunction {
  const SourceFile* file = nullptr;
  const FunctionInfo* function = nullptr;
  bool entered = true;  // the trace was seen in it, or nothing is known about that
};

struct ReachedConstant {
  const SourceFile* file = nullptr;
  const ModuleConstant* constant = nullptr;
};

struct Reached {
  std::vector<ReachedFunction> functions;  // outermost ones only: nested functions lie inside
  std::vector<ReachedConstant> constants;
};

// One of the user's files, with the qualified names of its functions that the trace was seen in; no names at all
// (`entered_known` false) means that nothing is known.
struct UserFile {
  const SourceFile* source = nullptr;
  bool entered_known = false;
  std::set<std::string> entered;
};

// Follows plain names, methods, aliases of imports, decorators, functools.partial, classes (all their methods) and
// module constants, over all files. `entry` must belong to one of them.
Reached FindReachable(const std::vector<UserFile>& files, const SourceFile& entry_file, const FunctionInfo& entry);

}  // namespace kernelwright::kernels
