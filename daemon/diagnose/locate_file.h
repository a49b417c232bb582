// A user's file with its syntax tree, and places in it. For locate*.cc.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/diagnose/diagnostic.h"
#include "daemon/diagnose/locate_call.h"
#include "daemon/kernels/syntax.h"
#include "daemon/kernels/tree.h"

namespace kernelwright::diagnose {

class LocatedFile {
 public:
  LocatedFile(const std::string& path, const std::string& text);

  const kernels::SourceFile& source() const { return source_; }
  const std::vector<PallasCallSite>& sites() const { return sites_; }

  Place PlaceOf(const kernels::Node& node) const;
  // The name of a function definition, any other node as a whole.
  Place PlaceOfHead(const kernels::Node& node) const;
  // From byte columns (from 1) to a place; without an end column, or with a range that the text does not have, what
  // starts on the line.
  Place PlaceOfBytes(int line, int byte_column, int end_line, int end_byte_column) const;
  // The largest piece of code that starts on a line: a statement, or the header of a compound one.
  Place PlaceOfLine(int line) const;

  // Innermost function definition or lambda around a line, or null.
  kernels::Node FunctionAround(int line) const;
  bool Covers(const kernels::Node& node, int line) const {
    return node.row() + 1 <= line && line <= node.end_row() + 1;
  }

  // The pallas_call that a frame at these lines and character columns (0 when unknown) is in, or null: the call itself,
  // its invocation, or the invocation of a name that a decorator or a partial made a kernel.
  const PallasCallSite* SiteAt(int line, int end_line) const;

 private:
  const PallasCallSite* SiteWithin(const kernels::Node& node) const;
  kernels::SourceFile source_;
  std::vector<PallasCallSite> sites_;
};

}  // namespace kernelwright::diagnose
