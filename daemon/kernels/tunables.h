// Places in the user's source that may set block shapes, grids or scratch sizes: integer literals and literal
// expressions, in defaults, constants, arguments and in place. This only lists places; what each one means is found
// by tracing the function with the place changed (params.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/kernels/edits.h"
#include "daemon/kernels/reach.h"
#include "daemon/kernels/syntax.h"

namespace kernelwright::kernels {

enum class SiteKind {
  kParameterDefault,  // def f(…, bm=128)
  kModuleConstant,    // BLOCK = 128, also in a class body
  kAssignment,        // bm = 128 inside a function, (bm := 128), bm, bn = 128, 256
  kArgument,          // f(…, block_k=256), f(x, y, 128), {"block_k": 256}
  kBlockShape,        // in the shape of a BlockSpec
  kGrid,              // in a grid expression
  kScratch,           // in scratch_shapes, or in the shape of a memory-space type
  kExpression,        // anywhere else
};
const char* SiteKindName(SiteKind kind);  // "parameter default", "module constant", …

struct TunableSite {
  std::string file;
  std::string base_hash;  // Sha256Hex of the file's text
  ByteRange range;
  SourcePosition position;
  SiteKind kind = SiteKind::kExpression;
  int64_t value = 0;     // ≥ 1
  std::string text;      // source text of the range: "128", "4 * 128"
  std::string name;      // "bm", "BLOCK", "block_shape[1]"; empty for a literal in place
  std::string function;  // qualified name of the innermost function around it; empty at module level
  std::string context;   // for people: "default of `bm` in `matmul`"
  int priority = 0;      // 0 most likely a size … 3 hardly (axis numbers, index maps, subscripts)
};

// Sites in functions and constants reachable from the entry, most likely first, then in source order. Files with
// syntax errors are searched as far as they parse.
std::vector<TunableSite> FindTunableSites(const std::vector<UserFile>& files, const SourceFile& entry_file,
                                          const FunctionInfo& entry);
std::vector<TunableSite> FindTunableSites(const Reached& reached);

// The edit that gives a site another value, in the form that the text has (literals.h).
TextEdit IntegerEdit(const TunableSite& site, int64_t value);

}  // namespace kernelwright::kernels
