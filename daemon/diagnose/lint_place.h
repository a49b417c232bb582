// Where the lints put what they find: the part of the pallas_call in the user's file, or as near to it as is known.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/diagnose/diagnostic.h"
#include "daemon/diagnose/locate.h"
#include "daemon/kernels/program.h"

namespace kernelwright::diagnose {

class LintPlaces {
 public:
  // path -> text of the user's files.
  explicit LintPlaces(const std::map<std::string, std::string>& texts) : texts_(texts), locator_(texts) {}

  Place Call(const PallasCall& call) const;
  Place Block(const PallasCall& call, size_t block) const;
  // A keyword argument of the call or of what it is made from: "scratch_shapes", "grid".
  Place Argument(const PallasCall& call, std::string_view argument) const;
  // Of an operation in the kernel; the call when its frames lead to no file of the user's.
  Place Operation(const PallasCall& call, const kernelwright::Operation& operation) const;

 private:
  // The innermost frame in a file of the user's, else the innermost one.
  Place OfSpans(const std::vector<SourceSpan>& spans) const;

  const std::map<std::string, std::string>& texts_;
  Locator locator_;
};

// Name of a kernel's reference as the user wrote it ("x_ref"), else as the compiler's texts do ("args[0]"). `position`
// counts the kernel's parameters: scalar-prefetch operands, inputs, outputs, scratch.
std::string RefName(const PallasCall& call, size_t position);
// The same for a block of `call.blocks`.
std::string BlockName(const PallasCall& call, size_t block);

// "(8, 128)", "None" for squeezed dimensions.
std::string ShapeText(const std::vector<int64_t>& dims);
std::string BlockText(const BlockMapping& block);

// Diagnostic with what all lints set: id, name, page, stage kBlocks, chips.
Diagnostic MakeLint(std::string id, std::string name, Severity severity, Place place, const std::string& chip);

}  // namespace kernelwright::diagnose
