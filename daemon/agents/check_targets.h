// Which functions of a file a check looks into, and with which inputs. Pure.
#pragma once

#include <string>
#include <vector>

#include "daemon/agents/check.h"
#include "daemon/kernels/inputs.h"
#include "daemon/kernels/syntax.h"

namespace kernelwright::agents {

// Our own entries beside the catalogue's, for what concerns the check itself.
inline constexpr const char* kSyntaxId = "D900";
inline constexpr const char* kNoInputsId = "D901";
inline constexpr const char* kBadInputsId = "D902";
inline constexpr const char* kImportId = "D903";
inline constexpr const char* kCrashId = "D904";
inline constexpr const char* kValuesId = "D905";
inline constexpr const char* kUnwrittenId = "D906";
inline constexpr const char* kUnknownId = "D000";

struct CheckTarget {
  std::string function;                    // qualified name
  std::vector<kernels::InputSpec> inputs;  // empty: the module is asked
  std::string inputs_origin;               // "--inputs", "comment"; empty with empty inputs
  diagnose::Place place;                   // of its name
  diagnose::Place inputs_place;            // of the comment, else of its name
};

struct CheckPlan {
  std::vector<CheckTarget> targets;
  std::vector<diagnose::Diagnostic> diagnostics;  // malformed inputs comments; functions whose inputs nobody states
};

// Place of a function's name in `file`.
diagnose::Place NamePlace(const std::string& file, const kernels::FunctionInfo& function);
diagnose::Place NamePlace(const std::string& file, const kernels::SourceFile& source, const std::string& function);

// The information that a function's inputs are not known, and how to state them.
diagnose::Diagnostic NoInputs(const std::string& function, const diagnose::Place& place);

// With `request.function`: that one. Else every function with an inputs comment; failing that, the file's only kernel
// function when its inputs can come from --inputs, the module or its defaults. Functions that reach a kernel and are
// not covered get an information. kNotFound for an unknown function, kUsage for malformed --inputs.
Expected<CheckPlan> PlanCheck(const kernels::SourceFile& source, const CheckRequest& request,
                              const std::string& captures);

}  // namespace kernelwright::agents
