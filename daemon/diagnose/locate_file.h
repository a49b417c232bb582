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
  // The function definition whose first line, decorators included, this is, or null.
  kernels::Node FunctionFrom(int line) const;
  bool Holds(const kernels::Node& node) const;
  bool Covers(const kernels::Node& node, int line) const {
    return node.row() + 1 <= line && line <= node.end_row() + 1;
  }

  // The pallas_call whose call or invocation covers a line, or null.
  const PallasCallSite* SiteAt(int line, int end_line) const;
  // The one that a line reaches by a name: one that a decorator or a partial made a kernel, or a function with a
  // single pallas_call in it.
  const PallasCallSite* SiteThrough(int line) const;

 private:
  // The only pallas_call inside of a node, or null.
  const PallasCallSite* SiteWithin(const kernels::Node& node) const;
  kernels::SourceFile source_;
  std::vector<PallasCallSite> sites_;
};

}  // namespace kernelwright::diagnose
