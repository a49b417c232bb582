// Parser of libtpu's `final_bundles` dumps: the VLIW schedule of one compiled unit (kernel, fusion or program part).
// One forward pass over the text; operations keep views into the owned text instead of copies, because a dump is
// megabytes long and a caller decodes only the few scalar operations of it. Unknown instructions are counted, not
// errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::compiler {

// The functional unit that issues an instruction. Names in UnitName are those of profiles.
enum class Unit : uint8_t { kUnknown, kMxu, kVpu, kXlu, kEup, kLoad, kStore, kScalar, kDma, kSync, kControl };
inline constexpr size_t kUnitCount = 11;

// "unknown", "MXU", "VPU", "XLU", "EUP", "load", "store", "scalar", "DMA", "sync", "control".
const char* UnitName(Unit unit);

// Unit of an instruction by its opcode ("vmatmul.bf16.gmra" -> kMxu). kUnknown for one that this version does not know.
Unit UnitOfOpcode(std::string_view opcode);

// A range in a source file; lines and columns from 1 as the compiler prints them.
struct SourceLocation {
  uint32_t file = 0;  // index into BundleProgram::files()
  int32_t line = 0;
  int32_t column = 0;
  int32_t end_line = 0;
  int32_t end_column = 0;
  bool operator==(const SourceLocation&) const = default;
};

struct BundleOp {
  uint16_t opcode = 0;          // index into BundleProgram::opcodes()
  uint16_t location_count = 0;  // locations are op_locations()[location_begin …]
  uint32_t location_begin = 0;
  uint32_t text_begin = 0;  // of the whole operation in text(), comments included
  uint32_t text_size = 0;
};

// Two-letter label in front of a bundle.
enum class BundleLabel : uint8_t { kNone, kLoopHeader, kLoopBody, kLoopExit, kPredicatedBody, kFallThrough, kTarget };

struct Bundle {
  uint32_t op_begin = 0;  // its operations end where the next bundle's begin
  BundleLabel label = BundleLabel::kNone;
  uint8_t depth = 0;  // loop nesting
  bool ends_region = false;
};

// First bundle of a numbered region: what `target = $regionN` branches to.
struct RegionStart {
  int64_t region = 0;
  uint32_t bundle = 0;
};

struct Opcode {
  std::string name;
  Unit unit = Unit::kUnknown;
  uint32_t count = 0;  // operations with it in this dump
};

class BundleProgram {
 public:
  size_t bundle_count() const { return bundles_.size(); }
  const Bundle& bundle(size_t i) const { return bundles_[i]; }
  uint32_t op_begin(size_t bundle) const { return bundles_[bundle].op_begin; }
  uint32_t op_end(size_t bundle) const {
    return bundle + 1 < bundles_.size() ? bundles_[bundle + 1].op_begin : static_cast<uint32_t>(ops_.size());
  }
  const std::vector<BundleOp>& ops() const { return ops_; }
  const std::vector<Opcode>& opcodes() const { return opcodes_; }
  const std::vector<std::string>& files() const { return files_; }
  const std::vector<SourceLocation>& locations() const { return locations_; }
  // Indices into locations(), one run per operation.
  const std::vector<uint32_t>& op_locations() const { return op_locations_; }
  const std::vector<RegionStart>& regions() const { return regions_; }

  std::string_view op_text(const BundleOp& op) const {
    return std::string_view(text_).substr(op.text_begin, op.text_size);
  }
  const Opcode& opcode(const BundleOp& op) const { return opcodes_[op.opcode]; }

  // Bundle where a region starts, or -1. The exit note of a kernel stands in the place of the notes on regions: a
  // region that is named nowhere starts there.
  int64_t FindRegion(int64_t region) const;
  // Whether the text ends where a program ends: at the exit bundle of a kernel or with the outermost region.
  bool complete() const { return complete_; }
  // Opcodes whose unit this version does not know; empty for the versions it was made for.
  std::vector<Opcode> UnknownOpcodes() const;
  // Vector spills and fills in the text (not weighted by loop trips).
  uint32_t vector_spill_ops() const { return vector_spill_ops_; }
  // Bytes held, the text included.
  size_t MemoryBytes() const;

 private:
  friend class BundleParser;
  std::string text_;
  std::vector<Bundle> bundles_;
  std::vector<BundleOp> ops_;
  std::vector<Opcode> opcodes_;
  std::vector<std::string> files_;
  std::vector<SourceLocation> locations_;
  std::vector<uint32_t> op_locations_;
  std::vector<RegionStart> regions_;
  uint32_t vector_spill_ops_ = 0;
  std::vector<int64_t> ended_regions_;
  bool complete_ = false;
  bool has_exit_ = false;  // the last bundle carries the exit note
};

// Parses the whole text of one dump. Errors (truncated, mixed or foreign text) name the line and what was expected.
Expected<BundleProgram> ParseBundles(std::string text);

// True for a vector spill or fill: `[vmem:[#allocationN_spill] …]`.
bool IsVectorSpill(std::string_view op_text);

}  // namespace kernelwright::compiler
