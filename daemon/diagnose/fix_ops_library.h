// Functions that stand for operations the TPU lowering lacks, as Python text with the error that was measured.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/diagnose/fix_source.h"

namespace kernelwright::diagnose {

struct Replacement {
  std::string_view diagnostic;             // "D100"
  std::vector<std::string_view> callees;   // last parts of the names that it replaces
  std::string_view helper;                 // name of the function that is added
  std::vector<std::string_view> keywords;  // that the helper takes
  std::vector<std::string_view> needs;     // callees whose helpers this one uses
  std::string_view text;                   // with {jnp}, {lax} for the modules
};

// Null when nothing stands for the callee.
const Replacement* FindReplacement(std::string_view callee);

// The function's text, with the modules named as the file names them.
std::string ReplacementText(const Replacement& replacement, FixBuilder& builder);

}  // namespace kernelwright::diagnose
