// One kernel of the program in both forms: the call and the kernel function in the user's text, and the traced call.
// With the questions that several rules ask: what an expression depends on, which type a value has, what a condition
// on the grid step says; and the edits that several rules make.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/diagnose/fix_launch.h"
#include "daemon/diagnose/fix_source.h"
#include "daemon/kernels/proposal.h"

namespace kernelwright::profile {
struct KernelProfile;
}

namespace kernelwright::rewrite {

using diagnose::FixBuilder;
using diagnose::FixSource;
using diagnose::Launch;
using kernels::ByteRange;
using kernels::Node;

enum class RefKind { kPrefetch, kInput, kOutput, kScratch };

struct Ref {
  std::string name;  // parameter of the kernel function
  RefKind kind = RefKind::kInput;
  const BlockMapping* block = nullptr;  // inputs and outputs
  Node spec;                            // its BlockSpec call in the source, null when it cannot be followed
  TensorType type;                      // of the reference in the kernel
};

// What the value of an expression in the kernel depends on.
struct Dependence {
  std::set<std::string> refs;  // whose content is read
  std::set<int> axes;          // grid axes whose step number is used
  bool known = true;           // false: something else may matter (loop variables, names bound twice, user functions)
};

struct KernelView {
  const kernels::ProposalContext& request;
  const FixSource& source;
  Launch launch;
  const PallasCall& call;
  const profile::KernelProfile* profile = nullptr;
  std::vector<Ref> refs = {};  // in the order of the kernel's parameters
  int traced = 1;              // how often the program makes this call, alike each time
  bool shared_kernel = false;  // another call in the file launches the same function: its body must stay
  bool shared_call = false;    // the call gets its function as an argument: another one may come with it

  Node kernel() const { return launch.kernel; }
  Node body() const { return launch.kernel.Field("body"); }
  const Ref* Find(std::string_view name) const;
  std::vector<const Ref*> Of(RefKind kind) const;
  int last_axis() const { return static_cast<int>(call.grid.size()) - 1; }
  std::string name() const { return std::string(launch.kernel.Field("name").text()); }
};

// The views of a file's kernels. `source` and `calls` outlive them.
std::vector<KernelView> ViewsOf(const kernels::ProposalContext& request, const FixSource& source,
                                const std::vector<PallasCall>& calls);

// ---- questions

Dependence DependenceOf(const KernelView& view, const Node& expression);
// Grid axes that change the block of an input or output; nothing when its index map is not computable.
std::optional<std::set<int>> AxesOf(const KernelView& view, const Ref& ref);
// Statements of a block, comments left out.
std::vector<Node> Statements(const Node& block);
// Identifiers below a node that are read or written as variables: no attribute names, no names of keyword arguments.
std::vector<Node> Variables(const Node& below);
bool Uses(const Node& below, std::string_view name);
// All reads and writes of a reference's content: `ref[…]`.
std::vector<Node> Accesses(const Node& below, std::string_view ref);
// Whether the subscript is assigned to.
bool IsTarget(const Node& subscript);
// The grid axis of `pl.program_id(a)`, or of a name bound to it.
std::optional<int> StepAxis(const KernelView& view, const Node& expression);

// A function decorated with `pl.when(condition)`.
struct Guard {
  Node statement;  // decorated_definition
  Node condition;
  Node body;
};
std::vector<Guard> GuardsIn(const Node& below);
// Whether the condition is true exactly in the first or the last step of the axis.
bool IsFirstStep(const KernelView& view, const Node& condition, int axis);
bool IsLastStep(const KernelView& view, const Node& condition, int axis);

// Type of what an expression in the kernel computes, from the trace; nothing when no operation lies in it.
std::optional<TensorType> TypeOf(const KernelView& view, const Node& expression);

// The traced operations of a primitive that were written as exactly this expression, with types of their operands.
struct TracedOperation {
  const Operation* operation = nullptr;
  std::vector<TensorType> operands;
};
std::vector<TracedOperation> OperationsAt(const KernelView& view, const Node& expression, std::string_view primitive);

// Value of `a` when it is a number that is known while tracing: a literal, a name of the module or of the functions
// around that is bound to one.
bool IsConstantNumber(const KernelView& view, const Node& expression);

// Whether an expression costs more than a load, a cast or a few additions: it calls a function of the vector or
// transcendental unit, or divides.
bool IsCostly(const Node& expression);

// ---- edits

// Edits of the view's file. Unlike a fix, a rewrite imports jax.numpy under its usual name when only jax is imported.
class Rewriter : public FixBuilder {
 public:
  explicit Rewriter(const KernelView& view) : FixBuilder(view.source), view_(view) {}
  std::string Jnp();
  std::vector<kernels::TextEdit> edits() const { return Build("").edits; }

 private:
  const KernelView& view_;
  bool imported_ = false;
};

// A name that the file does not use yet: `base`, else `base_2`, …
std::string FreshName(const KernelView& view, const std::string& base, const std::set<std::string>& taken = {});
// "pl.program_id(2) == pl.num_programs(2) - 1", with the name that the kernel has for the step where it has one.
std::string LastStepText(const KernelView& view, Rewriter& builder, int axis);
std::string FirstStepText(const KernelView& view, Rewriter& builder, int axis);
// Adds scratch to the call and a parameter for it to the kernel function; false when the source cannot take it.
struct NewScratch {
  std::string name;
  std::string shape;  // "(bm, bn)"
  std::string dtype;  // "jnp.float32"
};
bool AddScratch(const KernelView& view, Rewriter& builder, const std::vector<NewScratch>& scratch);
// An empty line in front of a statement, unless there is one or the statement opens its block.
void BlankLineBefore(const KernelView& view, Rewriter& builder, const Node& statement);
// Puts statements (neighbours in one block) under `@pl.when(condition)`.
void Guarded(const KernelView& view, Rewriter& builder, const Node& first, const Node& last,
             const std::string& condition);
// "jnp.float32" for "float32".
std::string DtypeText(Rewriter& builder, const std::string& dtype);
// "(512, 128)".
std::string ShapeText(const std::vector<int64_t>& dims);
// A shape as the call writes it for a block of that size, `(rows, d)`, so that it follows when the block changes; else
// the numbers. Blocks of `first` come before others.
std::string BlockShapeText(const KernelView& view, const std::vector<int64_t>& dims,
                           const std::set<std::string>& first = {});
// Sets dimension semantics or the VMEM limit; empty when the call's compiler_params cannot be edited.
std::vector<kernels::TextEdit> ParamsEdits(const KernelView& view,
                                           const std::optional<std::vector<std::string>>& semantics,
                                           std::optional<int64_t> vmem_limit_bytes);

std::string Count(int64_t number);  // "12,345"
std::string Bytes(int64_t bytes);   // "4.0 MiB"
std::string Share(double share);    // "37 %"

}  // namespace kernelwright::rewrite
