// Two points need care. All operations of a bundle read their operands before any of them writes, so a write that a
// later operation of the same bundle must not see goes through a temporary. And a printed name carries a virtual and a
// physical register: pseudo operations that read a name defined in the same bundle see the new value.
#include "daemon/cost/scalar_program.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "daemon/cost/operand_text.h"
#include "daemon/cost/operation_decoder.h"

namespace kernelwright::cost {
namespace {

class ProgramDecoder {
 public:
  ProgramDecoder(const compiler::BundleProgram& source, std::string name, int index, ScalarMemory* memory,
                 BranchShadow shadow)
      : source_(source), shadow_(shadow), operations_(source, index, memory, &program_) {
    program_.name = std::move(name);
    program_.source = &source;
    program_.is_top_level = program_.name == "TLP";
    program_.is_runtime = program_.name.starts_with("<late-");
    program_.registers.assign(size_t{2} * kMaxRegister, Value{});
  }

  ScalarProgram Run() {
    const size_t bundles = source_.bundle_count();
    opcode_useful_.reserve(source_.opcodes().size());
    for (const compiler::Opcode& opcode : source_.opcodes()) {
      opcode_useful_.push_back(IsUseful(opcode));
      // A register holds 8 rows of float32, and 16 or more of narrower types.
      const bool product = opcode.name.starts_with("vmatmul");
      opcode_product_.push_back(!product ? 0 : opcode.name.find(".f32") != std::string::npos ? 1 : 2);
    }
    for (const compiler::Opcode& opcode : source_.opcodes()) {
      const std::string& n = opcode.name;
      const bool result = n.starts_with("vpop");
      const bool load = shadow_.shortened && n.starts_with("vld");
      const bool moves = n.find(".xlu") != std::string::npos;
      opcode_lanes_.push_back(result ? 0 : n.starts_with("vxpose") ? 1 : moves ? 2 : load ? 3 : 0);
    }
    std::vector<uint8_t> leader(bundles + 1, 0);
    std::vector<uint32_t> products(bundles, 0);
    leader[0] = 1;
    std::vector<uint32_t> op_begin(bundles + 1, 0);
    for (size_t b = 0; b < bundles; ++b) {
      op_begin[b] = static_cast<uint32_t>(program_.ops.size());
      DecodeBundle(static_cast<uint32_t>(b), &products[b]);
      for (size_t i = op_begin[b]; i < program_.ops.size(); ++i) {
        ScalarOp& op = program_.ops[i];
        if (op.kind != OpKind::kBranch) continue;
        if (op.aux >= 0) leader[static_cast<size_t>(op.aux)] = 1;
        FindDelaySlots(&op);
        leader[op.c] = 1;
      }
    }
    op_begin[bundles] = static_cast<uint32_t>(program_.ops.size());
    program_.block_at.assign(bundles + 1, -1);
    for (size_t b = 0; b < bundles;) {
      size_t end = b + 1;
      while (end < bundles && leader[end] == 0) ++end;
      ScalarBlock block;
      block.bundle_begin = static_cast<uint32_t>(b);
      block.bundle_end = static_cast<uint32_t>(end);
      block.op_begin = op_begin[b];
      block.op_end = op_begin[end];
      for (size_t i = b; i < end; ++i) {
        CountUnits(static_cast<uint32_t>(i), &block);
        if (products[i] == 0) continue;
        if (block.products == 0) block.first_product = static_cast<uint32_t>(i);
        block.last_product = static_cast<uint32_t>(i);
        block.products += products[i];
      }
      program_.block_at[b] = static_cast<int32_t>(program_.blocks.size());
      program_.blocks.push_back(block);
      b = end;
    }
    return std::move(program_);
  }

 private:
  using Pending = DecodedOperation;

  // Where a branch leaves: behind its delay slots. Shortened ones end at their first empty bundle; that of slots which
  // are all printed is told by the region that ends with the last of them.
  void FindDelaySlots(ScalarOp* op) const {
    const auto bundles = static_cast<uint32_t>(source_.bundle_count());
    const uint32_t last = op->bundle + static_cast<uint32_t>(shadow_.delay_slots);
    op->c = std::min(last + 1, bundles);
    op->b = 0;
    if (!shadow_.shortened || (last < bundles && source_.bundle(last).ends_region)) return;
    // The branch of a loop stands in front of the end of its region, to which all of its slots belong: registers of the
    // next round are moved in them, also behind an empty one.
    if (op->aux >= 0 && op->aux <= static_cast<int32_t>(op->bundle)) {
      for (uint32_t slot = op->bundle + 1; slot < std::min(last, bundles); ++slot) {
        if (!source_.bundle(slot).ends_region) continue;
        op->b = last - slot;
        op->c = slot + 1;
        return;
      }
    }
    for (uint32_t slot = op->bundle + 1; slot < std::min(last, bundles); ++slot) {
      if (source_.op_begin(slot) != source_.op_end(slot) || source_.bundle(slot).ends_region) continue;
      op->b = last - slot;
      op->c = slot + 1;
      return;
    }
  }

  // What else the bundle keeps busy, or that it holds nothing.
  // "vld [vmem:[%s1_s2 + $0x8] ss:$1368 sm:$0xff]": the rows of such a register lie in few banks of the memory.
  static bool IsBankConflict(std::string_view text) {
    const size_t at = text.find("ss:$");
    if (at == std::string_view::npos) return false;
    int stride = 0;
    std::from_chars(text.data() + at + 4, text.data() + text.size(), stride);
    return stride != 0 && stride % 4 == 0;
  }

  void CountUnits(uint32_t bundle, ScalarBlock* block) const {
    if (source_.op_begin(bundle) == source_.op_end(bundle)) ++block->empty;
    for (uint32_t i = source_.op_begin(bundle); i < source_.op_end(bundle); ++i) {
      const uint8_t lanes = opcode_lanes_[source_.ops()[i].opcode];
      if (lanes == 1) ++block->transposes;
      if (lanes == 2) ++block->lane_moves;
      if (lanes == 3 && IsBankConflict(source_.op_text(source_.ops()[i]))) ++block->strided_loads;
    }
  }

  static bool IsUseful(const compiler::Opcode& opcode) {
    const std::string& n = opcode.name;
    if (n.starts_with("vwait") || n.starts_with("vsyncadd")) return true;
    if (n[0] == 'v' || n == "sfence" || n.starts_with("shalt") || n == "compiler-scheduling-barrier") return false;
    return n != "sphi" && n != "pphi";
  }

  void DecodeBundle(uint32_t bundle, uint32_t* products) {
    pending_.clear();
    for (uint32_t i = source_.op_begin(bundle); i < source_.op_end(bundle); ++i) {
      const compiler::BundleOp& op = source_.ops()[i];
      *products += opcode_product_[op.opcode];
      if (!opcode_useful_[op.opcode]) continue;
      if (auto decoded = operations_.Decode(op, i, bundle)) pending_.push_back(std::move(*decoded));
    }
    if (pending_.empty()) return;
    // Stores last: a load of the same bundle reads the old value.
    std::stable_partition(pending_.begin(), pending_.end(),
                          [](const Pending& p) { return p.op.kind != OpKind::kStore; });
    std::vector<std::pair<uint32_t, uint32_t>> moves;  // temporary -> register, at the end of the bundle
    for (size_t i = 0; i < pending_.size(); ++i) {
      Pending& writer = pending_[i];
      if (writer.op.destination < 0) continue;
      const auto reg = static_cast<uint32_t>(writer.op.destination);
      bool old_needed = false;
      for (size_t j = i + 1; j < pending_.size() && !old_needed; ++j) {
        for (const Name& read : pending_[j].reads) {
          old_needed |= read.reg == reg && read.virtual_id != writer.virtual_destination;
        }
      }
      if (!old_needed) continue;
      const uint32_t temporary = operations_.NewRegister(Value{});
      moves.emplace_back(temporary, reg);
      if (writer.op.predicate >= 0 && writer.op.otherwise < 0) writer.op.otherwise = static_cast<int32_t>(reg);
      writer.op.destination = static_cast<int32_t>(temporary);
      for (size_t j = i + 1; j < pending_.size(); ++j) {
        RedirectReads(&pending_[j], reg, writer.virtual_destination, temporary);
      }
    }
    for (const Pending& p : pending_) program_.ops.push_back(p.op);
    for (const auto& [temporary, reg] : moves) {
      ScalarOp move;
      move.kind = OpKind::kMove;
      move.a = temporary;
      move.destination = static_cast<int32_t>(reg);
      move.bundle = bundle;
      move.source = pending_.front().op.source;
      program_.ops.push_back(move);
    }
  }

  // A later pseudo operation that reads the new value finds it in the temporary.
  static void RedirectReads(Pending* reader, uint32_t reg, uint64_t virtual_id, uint32_t temporary) {
    bool reads_new = false;
    bool reads_old = false;
    for (const Name& read : reader->reads) {
      if (read.reg != reg) continue;
      (read.virtual_id == virtual_id ? reads_new : reads_old) = true;
    }
    if (!reads_new || reads_old) return;
    for (uint32_t* operand : {&reader->op.a, &reader->op.b, &reader->op.c}) {
      if (*operand == reg) *operand = temporary;
    }
    if (reader->op.otherwise == static_cast<int32_t>(reg)) reader->op.otherwise = static_cast<int32_t>(temporary);
    if (reader->op.predicate == static_cast<int32_t>(reg)) reader->op.predicate = static_cast<int32_t>(temporary);
  }

  const compiler::BundleProgram& source_;
  BranchShadow shadow_;
  ScalarProgram program_;
  OperationDecoder operations_;
  std::vector<uint8_t> opcode_useful_;
  std::vector<uint8_t> opcode_product_;
  std::vector<uint8_t> opcode_lanes_;  // 1: transposes, 2: moves or reduces between lanes, 3: loads
  std::vector<Pending> pending_;
};

}  // namespace

ScalarProgram DecodeScalarProgram(const compiler::BundleProgram& source, std::string name, int index,
                                  ScalarMemory* memory, BranchShadow shadow) {
  return ProgramDecoder(source, std::move(name), index, memory, shadow).Run();
}

}  // namespace kernelwright::cost
