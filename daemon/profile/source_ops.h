// Which operations the user wrote on which line, from the traced program: what tells a conversion that the source asks
// for from one that the compiler added.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/kernels/program.h"

namespace kernelwright::profile {

class SourceOps {
 public:
  // An empty object, which knows nothing, for a null program.
  explicit SourceOps(const Program* program);

  bool known() const { return !lines_.empty(); }
  // Whether the line asks for another type: convert_element_type, bitcast, a product with another result type.
  bool HasCast(const std::string& file, int line) const;
  // Whether the line asks for data to be moved: transpose, broadcast, roll, gather, reshape, concatenate, reduction …
  bool HasRelayout(const std::string& file, int line) const;

 private:
  void Add(const Graph& graph);
  void Add(const Operation& operation);
  std::map<std::pair<std::string, int>, std::set<std::string>> lines_;  // operation names
  std::map<uint32_t, std::vector<int64_t>> dims_;                       // of the values seen so far
};

}  // namespace kernelwright::profile
