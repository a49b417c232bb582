// Names of jax and Pallas that changed between versions, as data (agents/api_names.json): an entry says which name or
// argument, from which version it is gone, and what stands for it now. A new entry of a known kind needs no C++.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::diagnose {

struct ApiName {
  // What the edit is. kRemoved has none, the others need more than the table only in code/api_lint.cc.
  enum class Kind {
    kRename,          // the name is another one now, perhaps of another module
    kKeyword,         // an argument has a new name
    kKeywordRemoved,  // an argument is gone
    kArgumentOrder,   // two positional arguments changed places
    kLoad,            // load(ref, idx) is ref[idx]
    kStore,           // store(ref, idx, value) is ref[idx] = value
    kRepeat,          // repeat(x, n, axis) is a concatenation
    kIndexingMode,    // BlockSpec(shape, map, indexing_mode=…) has its kind in each dimension
    kParamsDict,      // compiler_params=dict(mosaic=dict(…)) is an object
    kRemoved,
  };
  std::string id;    // "D150"
  std::string name;  // "renamed-params"
  Kind kind = Kind::kRemoved;
  std::string module;      // "jax.experimental.pallas.tpu"
  std::string old_name;    // "TPUCompilerParams", or the function whose argument changed
  std::string argument;    // keyword, for the kinds about arguments
  std::string new_name;    // whole path of the new name, or the new keyword; may be empty
  std::string removed;     // first version without it; empty while it still works
  std::string deprecated;  // first version that warns; may be empty
  std::string advice;      // empty: made from new_name
};

class ApiNames {
 public:
  explicit ApiNames(std::vector<ApiName> names) : names_(std::move(names)) {}
  const std::vector<ApiName>& names() const { return names_; }

 private:
  std::vector<ApiName> names_;
};

// Reads agents/api_names.json. An error names the entry and the field.
Expected<ApiNames> ParseApiNames(std::string_view json);

// -1, 0, 1 as version `a` is before, equal to or after `b`: "0.9.0" < "0.10.2". What follows the numbers (".dev1") is
// ignored.
int CompareVersions(std::string_view a, std::string_view b);

}  // namespace kernelwright::diagnose
