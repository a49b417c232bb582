// Names for generated code: the user's own where a statement of the source assigned the value, else after what the
// value is; and sets of names that are taken.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/kernels/lift/flat.h"

namespace kernelwright::kernels::lift {

// A name for each node that deserves one, not yet unique.
std::map<int, std::string> NameValues(const FlatProgram& flat, const std::set<int>& means,
                                      const std::vector<std::unique_ptr<SourceFile>>& files);

// Hands out names that differ from each other.
class NameSet {
 public:
  explicit NameSet(std::set<std::string> taken = {}) : taken_(std::move(taken)) {}
  // `wanted`, or with a number behind it.
  std::string Take(const std::string& wanted);
  void Reserve(const std::string& name) { taken_.insert(name); }

 private:
  std::set<std::string> taken_;
};

// "p.w" -> "p_w": an identifier from an input's path.
std::string Identifier(const std::string& path);

}  // namespace kernelwright::kernels::lift
