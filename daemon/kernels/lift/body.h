// Statements of a kernel's body for some of a program's values: what is used twice, named by the user or long gets a
// name, the rest is written where it is used.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/kernels/lift/expression.h"
#include "daemon/kernels/lift/names.h"
#include "daemon/kernels/lift/sizes.h"

namespace kernelwright::kernels::lift {

// What the text of a kernel is made from; everything outlives the writer.
struct WriterContext {
  const FlatProgram& flat;
  const Axes& axes;
  const Sizes& sizes;
  const std::map<int, std::string>& names;
  const Modules& modules;
};

class Body {
 public:
  Body(const WriterContext& context, NameSet& taken) : context_(context), taken_(taken) {}

  // Gives a node's value a text: a name that the body has bound already.
  void Bind(int node, const std::string& text) { values_[node] = Code{text}; }
  // Says which values will be asked for, so that those used more than once are known.
  void Expect(const std::vector<int>& roots);
  // The value's text; what it needs is appended to lines().
  Code Value(int node);
  // Same, as something that a statement can end with: `value.astype(type)` when `cast` is not empty.
  std::string Cast(int node, const std::string& cast);

  const std::vector<std::string>& lines() const { return lines_; }

 private:
  struct Parts {
    std::vector<Arg> args;
    bool gelu_exact = false;
    bool gelu = false;
    bool mean = false;
  };
  Parts PartsOf(int node) const;
  Code Combine(int node, const Parts& parts, const std::vector<Code>& args) const;
  Code Name(int node, const Code& code);

  const WriterContext& context_;
  NameSet& taken_;
  std::map<int, Code> values_;
  std::map<int, int> uses_;
  std::vector<std::string> lines_;
};

}  // namespace kernelwright::kernels::lift
