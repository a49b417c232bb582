// See block_lint.h. Each rule is a function over one call; a rule that is broken early (an illegal block) keeps the
// memory rules silent, because the compiler never comes to them.
#include "daemon/diagnose/block_lint.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "daemon/base/units.h"
#include "daemon/cost/dtype.h"
#include "daemon/cost/index_map.h"
#include "daemon/cost/vmem.h"
#include "daemon/diagnose/lint_place.h"
#include "daemon/kernels/index_map.h"

namespace kernelwright::diagnose {
namespace {

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

std::string Bytes(int64_t bytes) { return FormatBytes(static_cast<uint64_t>(std::max<int64_t>(bytes, 0))); }

bool InVmem(const BlockMapping& block) { return block.memory_space.empty() || block.memory_space == "vmem"; }
bool InSmem(const BlockMapping& block) { return block.memory_space == "smem"; }

bool IsWhole(const BlockMapping& block) {
  for (size_t d = 0; d < block.block.size(); ++d) {
    if (block.block[d].size != block.array.dims[d]) return false;
  }
  return true;
}

// Which of the last dimensions of a block the lowering refuses: bit 0 the last, bit 1 the second-last. It counts a
// squeezed dimension as one of size 1. A whole block in SMEM is not looked at.
int IllegalDims(const BlockMapping& block, const cost::Chip& chip) {
  const size_t rank = block.block.size();
  if (rank == 0 || (!InVmem(block) && !InSmem(block)) || IsWhole(block)) return 0;
  const int64_t last = block.block[rank - 1].size;
  const int64_t whole = block.array.dims[rank - 1];
  if (last <= 0) return 0;
  if (rank >= 2) {
    const int64_t row = block.block[rank - 2].size;
    return (last == whole || last % chip.lanes == 0 ? 0 : 1) |
           (row == block.array.dims[rank - 2] || row % chip.sublanes == 0 ? 0 : 2);
  }
  const int bits = block.array.dtype == "bool" ? 32 : cost::DtypeBits(block.array.dtype).value_or(32);
  const int64_t least = int64_t{chip.lanes} * std::max(1, 32 / bits);
  const bool legal = last == whole || last % (int64_t{chip.lanes} * chip.sublanes) == 0 ||
                     (last >= least && std::has_single_bit(static_cast<uint64_t>(last)));
  return legal ? 0 : 1;
}

class CallLinter {
 public:
  CallLinter(const PallasCall& call, const LintPlaces& places, const cost::Chip& chip, std::vector<Diagnostic>* found)
      : call_(call), places_(places), chip_(chip), found_(*found) {}

  void Run() {
    const size_t before = found_.size();
    for (size_t i = 0; i < call_.blocks.size(); ++i) CheckBlock(i);
    if (found_.size() == before) CheckGridFree();
    CheckSemantics();
    CheckBuffers();
    const bool refused = found_.size() > before;
    CheckRange();
    CheckCoverage();
    CheckLimit();
    if (!refused) CheckMemory();
  }

 private:
  Diagnostic& Add(std::string id, std::string name, Severity severity, Place place) {
    found_.push_back(MakeLint(std::move(id), std::move(name), severity, std::move(place), chip_.name));
    return found_.back();
  }

  // The compiler's name and the user's of a block: "x_ref (args[0])".
  std::string Name(size_t i) const {
    const std::string name = BlockName(call_, i);
    return name == call_.blocks[i].origin ? name : name + " (" + call_.blocks[i].origin + ")";
  }

  void CheckBlock(size_t i) {
    const BlockMapping& block = call_.blocks[i];
    if (std::find(block.array.dims.begin(), block.array.dims.end(), 0) != block.array.dims.end()) {
      Diagnostic& d = Add("D83", "empty-operand", Severity::kError, places_.Block(call_, i));
      d.message = Name(i) + " has no elements: its shape is " + ShapeText(block.array.dims);
      d.cause = "The compiler has no layout for an array without elements.";
      d.advice = "Drop the operand, or pad it to one tile.";
      return;
    }
    // Ranks that differ are an error of tracing; dynamic shapes are not judged here.
    if (block.block.size() != block.array.dims.size()) return;
    if (std::any_of(block.array.dims.begin(), block.array.dims.end(), [](int64_t n) { return n < 0; })) return;
    const int illegal = IllegalDims(block, chip_);
    if (illegal == 0) {
      // Illegal blocks are refused first.
      if (call_.grid.empty() && (InVmem(block) || InSmem(block)) && !IsWhole(block)) grid_free_.push_back(i);
      return;
    }
    const Place place = places_.Block(call_, i);
    const std::string array = ", an array " + ShapeText(block.array.dims) + " of " + block.array.dtype;
    // One BlockSpec that several operands share is one mistake.
    std::string& names =
        said_[std::to_string(place.line) + ":" + std::to_string(place.column) + BlockText(block) + array];
    if (!names.empty()) {
      for (Diagnostic& earlier : found_) {
        const size_t at = earlier.place == place ? earlier.message.find(names + array) : std::string::npos;
        if (at == std::string::npos) continue;
        earlier.message.insert(at + names.size(), " and " + Name(i));
        names += " and " + Name(i);
        return;
      }
    }
    names = Name(i);
    const std::string where = "block " + BlockText(block) + " of " + names + array;
    if (block.block.size() == 1) {
      Diagnostic& d = Add("D03", "block-rank1", Severity::kError, place);
      const int64_t least = int64_t{chip_.lanes} * 32 / cost::DtypeBits(block.array.dtype).value_or(32);
      d.message = where + ": a one-dimensional block is the whole array, a multiple of 1024, or a power of two from " +
                  std::to_string(least) + " up";
      d.cause =
          "A one-dimensional array lies in memory in tiles of 1024 elements, or in smaller ones by powers of two.";
      d.advice = "Round the block to such a size, or reshape the array to (N/128, 128) and cut it in two dimensions.";
      return;
    }
    const size_t rank = block.block.size();
    const BlockDim& row = block.block[rank - 2];
    const bool one_row = row.size == 1 && block.array.dims[rank - 2] != 1;
    Diagnostic& d = one_row ? Add("D02", "block-tile-1row", Severity::kError, place)
                            : Add("D01", "block-tile", Severity::kError, place);
    d.message = where;
    bool first = true;
    std::string rounded;
    for (size_t back = 2; back >= 1; --back) {
      const BlockDim& dim = block.block[rank - back];
      const int64_t whole = block.array.dims[rank - back];
      const int64_t multiple = back == 1 ? chip_.lanes : chip_.sublanes;
      const int64_t fitting = dim.size % multiple == 0 ? dim.size : std::min(RoundUp(dim.size, multiple), whole);
      rounded += (back == 2 ? "" : ", ") + std::to_string(fitting);
      if ((illegal & (back == 1 ? 1 : 2)) == 0) continue;
      d.message += std::string(first ? ": " : ", and ") + (back == 1 ? "the last dimension " : "the second-last ") +
                   std::to_string(dim.size) + " is neither a multiple of " + std::to_string(multiple) +
                   " nor the whole " + std::to_string(whole);
      first = false;
    }
    d.cause = "The chip moves tiles of (" + std::to_string(chip_.sublanes) + ", " + std::to_string(chip_.lanes) +
              "): each of the last two dimensions of a block is a multiple of them, or the whole dimension.";
    d.advice = one_row ? "Take " + std::to_string(chip_.sublanes) +
                             " rows at once, or give the array a third dimension in front and cut that one as `None`."
                       : "End the block in (" + rounded + ").";
  }

  // Without a grid there is one step, and every block has to be the whole array.
  void CheckGridFree() {
    for (const size_t i : grid_free_) {
      const BlockMapping& block = call_.blocks[i];
      Diagnostic& d = Add("D22", "grid-free-window", Severity::kError, places_.Block(call_, i));
      d.message = "block " + BlockText(block) + " of " + Name(i) + " is a part of its array " +
                  ShapeText(block.array.dims) + ", but the call has no grid";
      d.cause = "Without a grid the kernel runs once, on whole arrays.";
      d.advice = "Give the call a grid that walks over the blocks, or leave the block shape out.";
    }
  }

  void CheckSemantics() {
    if (call_.dimension_semantics.empty() || call_.dimension_semantics.size() == call_.grid.size()) return;
    Diagnostic& d = Add("D13", "dimsem-length", Severity::kError, places_.Argument(call_, "dimension_semantics"));
    d.message = "dimension_semantics has " + std::to_string(call_.dimension_semantics.size()) + " entries, the grid " +
                ShapeText(call_.grid) + " has " + std::to_string(call_.grid.size()) + " axes";
    d.cause = "Each axis of the grid needs its own entry.";
    d.advice = call_.dimension_semantics.size() < call_.grid.size() ? "Add \"arbitrary\" for the axes that are missing."
                                                                    : "Leave out the entries that have no axis.";
  }

  void CheckBuffers() {
    for (size_t i = 0; i < call_.blocks.size(); ++i) {
      const BlockMapping& block = call_.blocks[i];
      if (block.buffers <= 2 || !InVmem(block) || call_.grid.empty()) continue;
      Diagnostic& d = Add("D94", "buffers", Severity::kError, places_.Block(call_, i));
      d.message = Name(i) + " asks for " + std::to_string(block.buffers) + " buffers; pallas_call knows 1 and 2";
      d.cause = "More buffers exist only in pipelines that a kernel runs itself.";
      d.advice = "Use `pl.Buffered(2)`, or move the loop into the kernel with `pltpu.emit_pipeline`.";
    }
  }

  // Block indices over the grid where they are exact: on small grids, which are walked, and for affine maps, whose
  // extremes are at corners. Empty where they are not known.
  std::vector<kernels::DimUse> ExactUses(const BlockMapping& block) const {
    const bool dynamic = std::any_of(call_.grid.begin(), call_.grid.end(), [](int64_t n) { return n <= 0; });
    if (call_.grid.empty() || dynamic || !block.has_index_map || !InVmem(block) ||
        block.block.size() != block.array.dims.size()) {
      return {};
    }
    int64_t steps = 1;
    for (const int64_t n : call_.grid) steps = steps > 256 ? steps : steps * n;
    if (steps > 256) {
      const auto map = cost::IndexMap::Compile(block.index_map, call_.grid.size());
      if (!map || map->affine() == nullptr) return {};
    }
    return kernels::AnalyzeBlock(call_, block);
  }

  static bool IsCounted(const BlockDim& dim) {
    return dim.size > 0 && (dim.kind == BlockDim::Kind::kBlocked || dim.kind == BlockDim::Kind::kSqueezed);
  }

  // An index map that names blocks which the array does not have.
  void CheckRange() {
    for (size_t i = 0; i < call_.blocks.size(); ++i) {
      const BlockMapping& block = call_.blocks[i];
      const auto uses = ExactUses(block);
      for (size_t d = 0; d < uses.size(); ++d) {
        if (!uses[d].known || !IsCounted(block.block[d]) || block.array.dims[d] <= 0) continue;
        const int64_t size = block.block[d].size;
        const int64_t blocks = (block.array.dims[d] + size - 1) / size;
        if (uses[d].first >= 0 && uses[d].last < blocks) continue;
        const int64_t index = uses[d].first < 0 ? uses[d].first : uses[d].last;
        Diagnostic& lint = Add("D14", "map-elements", Severity::kError, places_.Block(call_, i));
        lint.message = "the index map of " + Name(i) + " asks for block " + std::to_string(index) + " of dimension " +
                       std::to_string(d) + ", which has " + std::to_string(blocks) + " (" +
                       std::to_string(block.array.dims[d]) + " in blocks of " + std::to_string(size) + ")";
        const bool elements = size > 1 && index > 0 && index % size == 0;
        lint.cause = elements ? "An index map counts in blocks; this one seems to count in elements."
                              : "An index map counts in blocks, from 0. A block outside of the array is other memory.";
        lint.advice = elements ? "Leave the factor " + std::to_string(size) + " out, or use `pl.Element`."
                               : "Make the grid end with the array: `pl.cdiv(" + std::to_string(block.array.dims[d]) +
                                     ", " + std::to_string(size) + ")` steps.";
        break;
      }
    }
  }

  // The grid visits only part of an output.
  void CheckCoverage() {
    int output = -1;
    for (size_t i = 0; i < call_.blocks.size(); ++i) {
      const BlockMapping& block = call_.blocks[i];
      if (!block.is_output) continue;
      ++output;
      const bool aliased = std::any_of(call_.aliases.begin(), call_.aliases.end(),
                                       [&](const auto& alias) { return alias.second == output; });
      if (aliased) continue;  // what is not written keeps the input's values
      const auto uses = ExactUses(block);
      for (size_t d = 0; d < uses.size(); ++d) {
        if (!uses[d].known || !IsCounted(block.block[d])) continue;
        const int64_t size = block.block[d].size;
        const int64_t blocks = (block.array.dims[d] + size - 1) / size;
        if (uses[d].first <= 0 && uses[d].last >= blocks - 1) continue;
        Diagnostic& lint = Add("D17", "grid-short", Severity::kError, places_.Argument(call_, "grid"));
        lint.message = "the grid " + ShapeText(call_.grid) + " writes blocks " + std::to_string(uses[d].first) +
                       " to " + std::to_string(uses[d].last) + " of the " + std::to_string(blocks) +
                       " that dimension " + std::to_string(d) + " of " + Name(i) + " has (" +
                       std::to_string(block.array.dims[d]) + " in blocks of " + std::to_string(size) + ")";
        lint.cause = "Blocks of an output that no step visits keep what was in memory before: they are not zero.";
        lint.advice = "Give the axis `pl.cdiv(" + std::to_string(block.array.dims[d]) + ", " + std::to_string(size) +
                      ")` = " + std::to_string(blocks) + " steps, or make the output smaller.";
        break;
      }
    }
  }

  void CheckLimit() {
    const auto physical = static_cast<int64_t>(chip_.vmem_bytes.value);
    if (!call_.vmem_limit_bytes || *call_.vmem_limit_bytes <= physical) return;
    Diagnostic& d = Add("D93", "vmem-limit-silent", Severity::kWarning, places_.Argument(call_, "vmem_limit_bytes"));
    d.message = "vmem_limit_bytes is " + Bytes(*call_.vmem_limit_bytes) + "; " + chip_.name + " has " +
                Bytes(physical) + " of VMEM";
    d.cause = "The compiler takes the number as it is and fails only when a kernel really needs that much.";
    d.advice = "Ask for " + std::to_string(physical) + " at most.";
  }

  void CheckMemory() {
    const cost::VmemUse use = cost::ComputeVmem(WithSingleBuffers(), chip_);
    CheckSmem(use);
    const int64_t allowed = std::min(use.limit, use.physical);
    // What is sure: the compiler's own scratch is not, and its paddings differ by a few tiles.
    constexpr int64_t kSlack = 64 << 10;
    const int64_t sure = use.total - static_cast<int64_t>(chip_.internal_scratch_bytes.value) - kSlack;
    if (sure <= allowed) return;
    std::vector<cost::VmemPart> parts = use.parts;
    std::stable_sort(parts.begin(), parts.end(),
                     [](const cost::VmemPart& a, const cost::VmemPart& b) { return a.bytes > b.bytes; });
    const bool above_chip = sure > use.physical;
    const bool scratch_alone = parts[0].what.starts_with("scratch ") && parts[0].bytes > use.physical;
    const Place place = PlaceOfPart(parts[0]);
    Diagnostic& d = scratch_alone ? Add("D92", "vmem-scratch", Severity::kError, place)
                    : above_chip  ? Add("D91", "vmem-physical", Severity::kError, place)
                                  : Add("D90", "vmem-scoped", Severity::kError, place);
    d.message = (call_.name.empty() ? "the kernel" : call_.name) + " needs " + Bytes(use.total) + " of VMEM, " +
                (above_chip               ? chip_.name + " has " + Bytes(use.physical)
                 : call_.vmem_limit_bytes ? "vmem_limit_bytes allows " + Bytes(allowed)
                                          : "the default limit of " + chip_.name + " is " + Bytes(allowed)) +
                ":";
    for (size_t i = 0; i < parts.size() && i < 3 && parts[i].bytes > 0; ++i) {
      d.message += (i == 0 ? " " : ", ") + PartName(parts[i]) + " " + Bytes(parts[i].bytes);
      if (parts[i].buffers > 1) d.message += " (" + std::to_string(parts[i].buffers) + " buffers)";
      if (parts[i].padding > parts[i].bytes / 4) d.message += ", " + Bytes(parts[i].padding) + " of it padding";
      if (i > 0 && !parts[i].what.starts_with("internal")) {
        d.related.push_back({PlaceOfPart(parts[i]), PartName(parts[i]) + " takes " + Bytes(parts[i].bytes)});
      }
    }
    d.cause = "Every block is in VMEM as often as it has buffers, padded to whole tiles, beside the scratch.";
    d.advice = above_chip ? "Make the blocks smaller, or use `pl.Buffered(1)` for operands that rarely change."
                          : "Make the blocks smaller, use `pl.Buffered(1)` for operands that rarely change, or set "
                            "vmem_limit_bytes (up to " +
                                std::to_string(use.physical) + " on " + chip_.name + ").";
  }

  // A block that no step of the grid changes is brought in once and has one buffer; axes of one step change nothing.
  PallasCall WithSingleBuffers() const {
    PallasCall call;
    call.name = call_.name;
    call.grid = call_.grid;
    call.blocks = call_.blocks;
    call.scratch = call_.scratch;
    call.vmem_limit_bytes = call_.vmem_limit_bytes;
    for (BlockMapping& block : call.blocks) {
      if (!block.has_index_map) continue;
      const auto uses = kernels::AnalyzeBlock(call_, block);
      const bool constant = std::all_of(uses.begin(), uses.end(),
                                        [&](const kernels::DimUse& use) { return use.known && use.first == use.last; });
      if (constant) block.buffers = 1;
    }
    return call;
  }

  void CheckSmem(const cost::VmemUse& use) {
    int64_t prefetched = 0;
    const auto count = static_cast<size_t>(call_.num_scalar_prefetch);
    for (size_t i = 0; i < count && i < call_.kernel.inputs.size(); ++i) {
      const TensorType& type = call_.kernel.inputs[i].type;
      int64_t bytes = cost::DtypeBits(type.dtype).value_or(0) / 8;
      for (const int64_t n : type.dims) bytes = n < 0 ? 0 : bytes * n;
      prefetched += bytes;
    }
    const int64_t total = use.smem_total + prefetched;
    const auto physical = static_cast<int64_t>(chip_.smem_bytes.value);
    if (total < physical) return;  // some bytes are the compiler's
    Diagnostic& d = Add("D82", "smem-table", Severity::kError, places_.Call(call_));
    d.message = "scalars of " + (call_.name.empty() ? "the kernel" : call_.name) + " take " + Bytes(total) +
                " of SMEM, " + chip_.name + " has " + Bytes(physical);
    d.cause = "Scalar-prefetch operands and SMEM blocks are in SMEM whole.";
    d.advice = "Pass only the numbers that are needed, or leave the table in HBM and copy parts of it.";
  }

  std::optional<size_t> BlockOfPart(const cost::VmemPart& part) const {
    for (size_t i = 0; i < call_.blocks.size(); ++i) {
      if (call_.blocks[i].origin == part.what) return i;
    }
    return std::nullopt;
  }

  std::string PartName(const cost::VmemPart& part) const {
    if (const auto block = BlockOfPart(part)) return BlockName(call_, *block);
    if (const auto scratch = ScratchOfPart(part)) {
      return RefName(call_, static_cast<size_t>(call_.num_scalar_prefetch) + call_.blocks.size() + *scratch);
    }
    return part.what;
  }

  static std::optional<size_t> ScratchOfPart(const cost::VmemPart& part) {
    constexpr std::string_view kPrefix = "scratch ";
    if (!part.what.starts_with(kPrefix)) return std::nullopt;
    size_t number = 0;
    for (const char c : std::string_view(part.what).substr(kPrefix.size())) {
      if (c < '0' || c > '9') return std::nullopt;
      number = number * 10 + static_cast<size_t>(c - '0');
    }
    return number;
  }

  Place PlaceOfPart(const cost::VmemPart& part) const {
    if (const auto block = BlockOfPart(part)) return places_.Block(call_, *block);
    if (ScratchOfPart(part)) return places_.Argument(call_, "scratch_shapes");
    return places_.Call(call_);
  }

  const PallasCall& call_;
  const LintPlaces& places_;
  const cost::Chip& chip_;
  std::vector<Diagnostic>& found_;
  std::map<std::string, std::string> said_;  // place, block and array of an illegal block -> operands named so far
  std::vector<size_t> grid_free_;            // legal blocks that are parts of their arrays in a call without a grid
};

}  // namespace

std::vector<Diagnostic> LintBlocks(const std::vector<PallasCall>& calls,
                                   const std::map<std::string, std::string>& texts, const cost::Chip& chip) {
  std::vector<Diagnostic> found;
  const LintPlaces places(texts);
  for (const PallasCall& call : calls) CallLinter(call, places, chip, &found).Run();
  return found;
}

}  // namespace kernelwright::diagnose
