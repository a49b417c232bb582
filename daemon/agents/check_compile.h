// Compiles a traced function for one chip, unless the verdict for the same texts, inputs, chip and versions is known.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/agents/store_journal.h"
#include "daemon/agents/toolchain.h"

namespace kernelwright::agents {

struct CompileQuestion {
  Source source;
  std::vector<kernels::InputSpec> inputs;
  std::string chip;
  // Of all user files that the trace used; empty when it is not known (a file changed meanwhile): then nothing is
  // looked up or kept.
  std::string content_sha256;
  Limits limits;
};

struct CompileVerdict {
  std::string chip;
  std::optional<CodeError> error;  // of lowering or compiling
  JobReport job;                   // of the last job; when it is not done there is no verdict
  std::string what = "compiling";  // what that job did
  bool cached = false;
};

// `artefact`: of an earlier trace for this chip, else the function is traced for it here. A Status error means that
// the worker failed.
Expected<CompileVerdict> CompileFor(const CompileQuestion& question, std::optional<Artefact> artefact,
                                    Toolchain& toolchain, BlobCache* cache, const std::stop_token& stop);

}  // namespace kernelwright::agents
