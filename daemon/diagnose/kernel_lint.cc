// See kernel_lint.h. What flows between steps is followed in kernel_lint_steps.cc; here are the rules that count
// operations over the whole body, and the words.
#include "daemon/diagnose/kernel_lint.h"

#include <algorithm>
#include <set>
#include <utility>

#include "daemon/diagnose/kernel_lint_refs.h"
#include "daemon/diagnose/kernel_lint_steps.h"
#include "daemon/diagnose/lint_place.h"

namespace kernelwright::diagnose {
namespace {

bool IsSemaphoreOfCopies(const KernelRef& ref) { return ref.type.dtype.find("dma_sem") != std::string::npos; }

bool IsOwn(const KernelRef& ref) {
  return ref.kind == KernelRef::Kind::kScratch || ref.kind == KernelRef::Kind::kLocal;
}

// Copies and signals that stay on this device name none: `($0, $1, $2, None, None)`.
bool StaysHere(const Operation& operation) {
  const std::string text = TextAttribute(operation, "arguments");
  return text.ends_with(operation.name == "dma_start" ? "None, None)" : "None)") || text.ends_with("None, None, None)");
}

struct WriteUse {
  const Operation* operation = nullptr;
  std::vector<Enclosing> path;
};

class Linter {
 public:
  Linter(const PallasCall& call, const std::map<std::string, std::string>& texts, const cost::Chip* chip)
      : call_(call), places_(texts), chip_(chip), refs_(KernelRefs(call)) {}

  std::vector<Diagnostic> Run() {
    if (refs_.empty()) return {};
    const StepResult steps = RunSteps(call_, refs_);
    writes_.resize(refs_.size());
    WalkKernel(call_, refs_, [&](const Visited& visited) { Visit(visited); });
    CheckCopies();
    CheckSemaphores();
    CheckInputWrites();
    CheckDeadStores(steps);
    for (const StepFinding& finding : steps.findings) AddStep(finding);
    CheckProducts();
    return std::move(found_);
  }

 private:
  struct Use {
    const Operation* operation = nullptr;
    int ref = -1;
  };

  // Marks `place`, a part of the call, and names the operation beside it.
  Diagnostic& AddAt(Place place, std::string id, std::string name, const Operation& operation, std::string what) {
    found_.push_back(MakeLint(std::move(id), std::move(name), Severity::kError, std::move(place), ""));
    const Place inner = places_.Operation(call_, operation);
    if (!(inner == found_.back().place)) found_.back().related.push_back({inner, std::move(what)});
    return found_.back();
  }

  Diagnostic& Add(std::string id, std::string name, Severity severity, const Operation& operation) {
    found_.push_back(MakeLint(std::move(id), std::move(name), severity, places_.Operation(call_, operation), ""));
    if (call_.spans.size() > 0) {
      const Place place = places_.Call(call_);
      if (!(place == found_.back().place)) found_.back().related.push_back({place, "the kernel is called here"});
    }
    return found_.back();
  }

  std::string Name(int ref) const {
    const KernelRef& known = refs_[static_cast<size_t>(ref)];
    return known.kind == KernelRef::Kind::kLocal ? "a scoped buffer" : RefName(call_, known.position);
  }

  void Visit(const Visited& visited) {
    const Operation& operation = visited.operation;
    const std::string& name = operation.name;
    if (name == "dma_start" || name == "dma_wait") {
      bool known = false;
      for (const int ref : visited.refs) {
        if (ref < 0 || !IsSemaphoreOfCopies(refs_[static_cast<size_t>(ref)])) continue;
        known = true;
        if (name == "dma_wait") {
          waited_.insert(ref);
        } else {
          starts_.push_back({&operation, ref});
        }
      }
      if (!known) opaque_copies_ = true;
    }
    if (name == "semaphore_signal" || name == "semaphore_wait" || name == "semaphore_read") {
      const int ref = visited.refs.empty() ? -1 : visited.refs[0];
      if (ref < 0) {
        opaque_semaphores_ = true;
      } else if (name == "semaphore_signal") {
        signals_.push_back({&operation, ref});
      } else {
        waited_.insert(ref);
      }
    }
    if (name == "dot_general") products_.push_back(&operation);
    if (!operation.regions.empty() || name == "dma_wait") return;
    for (size_t i = 0; i < visited.refs.size(); ++i) {
      const int ref = visited.refs[i];
      if (ref < 0 || static_cast<size_t>(ref) >= writes_.size() || !WritesOperand(operation, i)) continue;
      writes_[static_cast<size_t>(ref)].push_back({&operation, visited.path});
    }
  }

  void CheckCopies() {
    if (opaque_copies_) return;
    std::set<int> said;
    for (const Use& start : starts_) {
      if (waited_.contains(start.ref) || !IsOwn(refs_[static_cast<size_t>(start.ref)]) ||
          !StaysHere(*start.operation) || !said.insert(start.ref).second) {
        continue;
      }
      Diagnostic& d = Add("D34", "dma-no-wait", Severity::kError, *start.operation);
      d.message = "this copy is started and nothing waits for it: no wait on " + Name(start.ref) + " in the kernel";
      d.cause = "A copy runs beside the kernel; until its semaphore was waited for, its target holds old content.";
      d.advice = "Call `.wait()` on the copy before its target is read, and before the kernel ends.";
    }
  }

  void CheckSemaphores() {
    if (opaque_semaphores_) return;
    std::set<int> said;
    for (const Use& signal : signals_) {
      const KernelRef& ref = refs_[static_cast<size_t>(signal.ref)];
      if (waited_.contains(signal.ref) || !IsOwn(ref) || IsSemaphoreOfCopies(ref) || !StaysHere(*signal.operation) ||
          !said.insert(signal.ref).second) {
        continue;
      }
      Diagnostic& d = Add("D36", "semaphore-leftover", Severity::kError, *signal.operation);
      d.message = Name(signal.ref) + " is signalled and never waited for";
      d.cause =
          "The count of a semaphore has to be zero when the kernel ends; what is left over meets the next kernel.";
      d.advice = "Add `pl.semaphore_wait(" + Name(signal.ref) + ", …)` for what is signalled, or leave the signal out.";
    }
  }

  void CheckInputWrites() {
    for (size_t r = 0; r < writes_.size(); ++r) {
      const KernelRef& ref = refs_[r];
      if (ref.kind != KernelRef::Kind::kInput || ref.aliased || writes_[r].empty() || ref.type.memory_space == "smem" ||
          ref.type.memory_space.find("sem") != std::string::npos) {
        continue;
      }
      // Kernels mask the tail of a block in its window, which holds a copy: bad style, and right as long as no later
      // step takes the window for unchanged.
      const BlockMapping& block = call_.blocks[static_cast<size_t>(ref.block)];
      const bool window = !call_.grid.empty() && block.has_index_map && ref.type.memory_space == "vmem";
      Diagnostic& d =
          Add("D37", "input-write", window ? Severity::kWarning : Severity::kError, *writes_[r].front().operation);
      d.message = Name(static_cast<int>(r)) + " is an input and is written here";
      d.cause =
          "Inputs are for reading: the array may be shared with the caller, and the write may or may not reach it.";
      d.advice = "Alias the input to an output with `input_output_aliases`, or copy it to a scratch buffer first.";
    }
  }

  // Outputs all of whose stores stand in branches that no step takes.
  void CheckDeadStores(const StepResult& steps) {
    for (size_t r = 0; r < writes_.size(); ++r) {
      const KernelRef& ref = refs_[r];
      if (ref.kind != KernelRef::Kind::kOutput || ref.aliased || writes_[r].empty()) continue;
      const Enclosing* branch = nullptr;
      const bool dead = std::all_of(writes_[r].begin(), writes_[r].end(), [&](const WriteUse& write) {
        for (const Enclosing& around : write.path) {
          if (around.operation->name == "cond" && NeverTaken(steps, around)) {
            branch = &around;
            return true;
          }
        }
        return false;
      });
      if (!dead || branch == nullptr) continue;
      Diagnostic& d = AddAt(places_.Operation(call_, *branch->operation), "D33", "store-never",
                            *writes_[r].front().operation, "the store");
      d.message = Name(static_cast<int>(r)) + " is stored only under a condition that holds in no step of the grid " +
                  ShapeText(call_.grid);
      d.cause =
          "Program ids run from 0 to the number of steps of the axis less one. What is never stored holds what "
          "was in memory before.";
      d.advice = "For the last step write `pl.program_id(axis) == pl.num_programs(axis) - 1`.";
    }
  }

  static bool NeverTaken(const StepResult& steps, const Enclosing& branch) {
    const auto it = steps.branches.find(branch.operation);
    if (it == steps.branches.end() || it->second.unknown || it->second.taken.contains(branch.region)) return false;
    const uint32_t axes = it->second.axes;
    const bool one_axis = (axes & (axes - 1)) == 0;
    return steps.complete || (steps.all_lines && one_axis);
  }

  std::string StepText(const StepFinding& finding) const {
    return call_.grid.empty() ? "" : " in step " + ShapeText(finding.position);
  }

  void AddStep(const StepFinding& finding) {
    const std::string ref = Name(finding.ref);
    switch (finding.kind) {
      case StepFinding::Kind::kUninitialised: {
        Diagnostic& d = Add("D30", "uninit-accumulator", Severity::kError, *finding.operation);
        d.message = ref + " is read" + StepText(finding) + " before anything was stored in it";
        d.cause = "Scratch and output blocks start with what was in memory before: NaN as likely as zero.";
        d.advice = "Set it first, under `@pl.when(pl.program_id(axis) == 0)` of the axis that is summed over: `" + ref +
                   "[...] = jnp.zeros_like(" + ref + ")`.";
        break;
      }
      case StepFinding::Kind::kRevisited: {
        const auto block = static_cast<size_t>(refs_[static_cast<size_t>(finding.ref)].block);
        Diagnostic& d = AddAt(places_.Block(call_, block), "D15", "revisit", *finding.operation, ref + " is read here");
        d.message = "the block of " + ref + " was left and is visited again" + StepText(finding) +
                    "; what it held is not there any more";
        d.cause = "A block of an output is written back when the grid goes on to another one, and is not read again.";
        d.advice = "Make the axis that is summed over the last one of the grid, in the index maps and program ids too.";
        break;
      }
      case StepFinding::Kind::kCarried: {
        Diagnostic& d = AddAt(places_.Argument(call_, "dimension_semantics"), "D16", "parallel-reduction",
                              *finding.operation, ref + " is summed here");
        d.message =
            ref + " is summed over axis " + std::to_string(finding.axis) + " of the grid, which is \"parallel\"";
        d.cause = "Steps of a parallel axis may run on two cores at once, each with its own part of the sum.";
        d.advice = "Mark that axis \"arbitrary\" in dimension_semantics.";
        break;
      }
      case StepFinding::Kind::kOverrun: {
        const int64_t size = refs_[static_cast<size_t>(finding.ref)].type.dims[static_cast<size_t>(finding.dim)];
        Diagnostic& d = Add("D32", "slice-overrun", Severity::kError, *finding.operation);
        d.message = "dimension " + std::to_string(finding.dim) + " of " + ref + " has " + std::to_string(size) +
                    " elements; " + std::to_string(finding.size) + " are taken from " + std::to_string(finding.start) +
                    " on" + StepText(finding);
        d.cause = "An index inside a kernel is not checked: the access reaches other memory or halts the core.";
        d.advice =
            "Pad the array to a multiple of the slice, or cut it with a BlockSpec, whose last block may go past "
            "the end.";
        break;
      }
      case StepFinding::Kind::kTail: {
        const BlockMapping& block = call_.blocks[static_cast<size_t>(refs_[static_cast<size_t>(finding.ref)].block)];
        const auto dim = static_cast<size_t>(finding.dim);
        Diagnostic& d = Add("D31", "tail-garbage", Severity::kError, *finding.operation);
        d.message = "the last block of " + ref + " goes past the end of dimension " + std::to_string(dim) + " (" +
                    std::to_string(block.array.dims[dim]) + " in blocks of " + std::to_string(block.block[dim].size) +
                    "), and this reduction takes the padding in";
        if (finding.other_ref >= 0) d.message += "; so it does with " + Name(finding.other_ref);
        d.cause = "The part of a block past the end of its array holds what was in memory before, not zero.";
        d.advice = "Mask it, on both sides of a product: `jnp.where(iota < left, x, 0)`; or pad the array on the host.";
        break;
      }
      case StepFinding::Kind::kNarrowSum: {
        Diagnostic& d = Add("D38", "low-accumulate", Severity::kWarning, *finding.operation);
        d.message = "the sum in " + ref + " is kept in " + refs_[static_cast<size_t>(finding.ref)].type.dtype +
                    " over many steps";
        d.cause = "With 8 bits of mantissa an addend that is 256 times smaller than the sum is lost.";
        d.advice = "Sum in a float32 scratch buffer and cast at the last step.";
        break;
      }
      case StepFinding::Kind::kNarrowedAddend: {
        Diagnostic& d = Add("D143", "tile-hop-bf16", Severity::kWarning, *finding.operation);
        d.message = "each addend is rounded to 16 bits here before it is summed in float32 in " + ref;
        d.cause = "The rounding happens once per step, and its errors add up.";
        d.advice = "Leave the cast out, and cast the finished sum.";
        break;
      }
    }
  }

  void CheckProducts() {
    if (chip_ == nullptr) return;
    std::set<std::string> said;
    for (const Operation* product : products_) {
      if (product->inputs.size() < 2) continue;
      const std::string left = OperandType(*product, 0);
      const std::string right = OperandType(*product, 1);
      for (const std::string& dtype : {left, right}) {
        if (dtype.empty() || IsNative(dtype) || !said.insert(dtype).second) continue;
        if (!dtype.starts_with("float8") && !dtype.starts_with("float4") && dtype != "int8" && dtype != "int4")
          continue;
        Diagnostic& d = Add("D130", "emulated", Severity::kInformation, *product);
        d.chips = {chip_->name};
        d.message = "products of " + dtype + " are emulated on " + chip_->name;
        d.cause = "Its matrix unit has no such type: the operands are converted first.";
        d.advice = "It works, at the speed of the wider type.";
      }
      if (left == "float32" && right == "float32" && TextAttribute(*product, "precision").empty() &&
          said.insert("f32").second) {
        Diagnostic& d = Add("D142", "f32-bf16", Severity::kHint, *product);
        d.message = "a float32 product without `precision` rounds its operands to bfloat16";
        d.cause = "The matrix unit multiplies bfloat16; more takes several passes.";
        d.advice = "Use `precision=lax.Precision.HIGHEST` where the result has to agree with a CPU.";
      }
    }
  }

  bool IsNative(const std::string& dtype) const {
    const auto& native = chip_->native_mxu_dtypes;
    return std::find(native.begin(), native.end(), dtype) != native.end();
  }

  std::string OperandType(const Operation& operation, size_t i) const {
    const Operand& operand = operation.inputs[i];
    if (!operand.value) return operand.literal_type.dtype;
    const auto it = Types().find(*operand.value);
    return it == Types().end() ? "" : it->second;
  }

  const std::map<uint32_t, std::string>& Types() const {
    if (types_.empty()) CollectTypes(call_.kernel);
    return types_;
  }

  void CollectTypes(const Graph& graph) const {
    for (const GraphValue& input : graph.inputs) types_[input.id] = input.type.dtype;
    for (const GraphConstant& constant : graph.constants) types_[constant.value] = constant.type.dtype;
    for (const Operation& operation : graph.operations) {
      for (const GraphValue& output : operation.outputs) types_[output.id] = output.type.dtype;
      for (const Graph& region : operation.regions) CollectTypes(region);
    }
  }

  const PallasCall& call_;
  LintPlaces places_;
  const cost::Chip* chip_;
  std::vector<KernelRef> refs_;
  std::vector<std::vector<WriteUse>> writes_;  // per parameter of the kernel
  std::vector<Use> starts_;
  std::vector<Use> signals_;
  std::set<int> waited_;
  std::vector<const Operation*> products_;
  bool opaque_copies_ = false;      // a copy whose semaphore is not followed
  bool opaque_semaphores_ = false;  // the same for signals and waits
  mutable std::map<uint32_t, std::string> types_;
  std::vector<Diagnostic> found_;
};

}  // namespace

std::vector<Diagnostic> LintKernel(const PallasCall& call, const std::map<std::string, std::string>& texts,
                                   const cost::Chip* chip) {
  return Linter(call, texts, chip).Run();
}

}  // namespace kernelwright::diagnose
