// A kernel that sums in its float32 output, which the program then casts to 16 bits: the sum goes to a scratch block in
// VMEM, and the output is stored once, in its final type. Half the bytes are written, and the pass that casts is gone.
// Where the output is float32 for good, its block is in VMEM anyway and scratch would save nothing; sums that are kept
// in 16 bits would become more exact, but not faster.
#include <algorithm>

#include "daemon/kernels/index_map.h"
#include "daemon/kernels/rewrite/rule.h"

namespace kernelwright::rewrite {
namespace {

// The only consumer of the call's result, when that is a cast to 16 bits, anywhere in the program.
const Operation* CastBehind(const Graph& graph, const PallasCall& call) {
  for (const Operation& operation : graph.operations) {
    if (!operation.pallas.empty() && operation.pallas.front().spans.size() == call.spans.size() &&
        operation.pallas.front().name == call.name && operation.outputs.size() == 1) {
      const uint32_t value = operation.outputs.front().id;
      const Operation* cast = nullptr;
      int uses = 0;
      for (const Operation& user : graph.operations) {
        for (const Operand& operand : user.inputs) {
          if (operand.value != value) continue;
          ++uses;
          if (user.name == "convert_element_type") cast = &user;
        }
      }
      for (const Operand& operand : graph.outputs) uses += operand.value == value ? 1 : 0;
      if (uses == 1 && cast != nullptr && cast->outputs.front().type.dtype == "bfloat16") return cast;
    }
    for (const Graph& region : operation.regions) {
      if (const Operation* found = CastBehind(region, call)) return found;
    }
  }
  return nullptr;
}

// `.astype(dtype)` on the call's result: directly, or on the name that the result has and that nothing else uses.
struct OuterCast {
  Node cast;  // the astype call
  Node base;  // what it is called on
  Node dtype;
};

std::optional<OuterCast> FindOuterCast(const KernelView& view) {
  Node result = view.launch.call.parent();  // pallas_call(…)(x, y)
  if (!result.Is("call") || !(result.Field("function") == view.launch.call)) return std::nullopt;
  const auto cast_of = [](const Node& base) -> std::optional<OuterCast> {
    const Node attribute = base.parent();
    const Node call = attribute.parent();
    if (!attribute.Is("attribute") || attribute.Field("attribute").text() != "astype") return std::nullopt;
    if (!call.Is("call") || !(call.Field("function") == attribute)) return std::nullopt;
    const Node dtype = diagnose::Argument(call, 0, "dtype");
    if (!dtype) return std::nullopt;
    return OuterCast{call, base, dtype};
  };
  if (const auto direct = cast_of(result)) return direct;
  const Node assignment = result.parent();
  if (!assignment.Is("assignment") || !assignment.Field("left").Is("identifier")) return std::nullopt;
  const Node function = view.source.Function(assignment);
  Node use;
  int uses = 0;
  for (const Node& variable : Variables(function.Field("body"))) {
    if (variable.text() != assignment.Field("left").text() || variable == assignment.Field("left")) continue;
    use = variable;
    ++uses;
  }
  return uses == 1 ? cast_of(use) : std::nullopt;
}

}  // namespace

void ScratchAccumulator(const KernelView& view, Answer& answer) {
  const auto outputs = view.Of(RefKind::kOutput);
  const int axis = view.last_axis();
  for (const Ref* output : outputs) {
    const auto accesses = Accesses(view.body(), output->name);
    const bool adds = std::any_of(accesses.begin(), accesses.end(),
                                  [](const Node& access) {
                                    return IsTarget(access) && access.parent().Is("augmented_assignment");
                                  }) ||
                      std::any_of(accesses.begin(), accesses.end(), [&](const Node& access) {
                        return IsTarget(access) && !Accesses(access.parent().Field("right"), output->name).empty();
                      });
    if (!adds) continue;
    if (output->type.dtype != "float32") {
      answer.Refuse("the sum in " + output->name + " is kept in " + output->type.dtype +
                    ": scratch of 32 bits would be more exact, not faster");
      continue;
    }
    const Operation* cast =
        outputs.size() == 1 && view.traced == 1 ? CastBehind(view.request.program.main, view.call) : nullptr;
    if (cast == nullptr) {
      answer.Refuse("the program uses the 32-bit sums of " + output->name +
                    "; while a block of it is visited it is in VMEM like scratch");
      continue;
    }
    const auto axes = AxesOf(view, *output);
    if (!axes || axis < 0 || axes->contains(axis)) {
      answer.Refuse("the block of " + output->name + " does not stay over the last grid axis");
      continue;
    }
    for (int other = 0; other < axis; ++other) {
      if (!axes->contains(other) && view.call.grid[static_cast<size_t>(other)] > 1) {
        answer.Refuse("the sum goes over more than the last grid axis");
        return;
      }
    }
    const auto outer = FindOuterCast(view);
    const Node out_dtype = diagnose::IsCallOf(view.launch.out_shape, {"ShapeDtypeStruct"})
                               ? diagnose::Argument(view.launch.out_shape, 1, "dtype")
                               : Node();
    if (!outer || !out_dtype) {
      answer.Refuse("the cast behind the call, or the type of the output, is not written where the call is");
      continue;
    }
    if (!std::all_of(accesses.begin(), accesses.end(), diagnose::IsWholeRead)) {
      answer.Refuse(output->name + " is accessed in parts");
      continue;
    }
    // Every mention moves to the scratch, but the last step's own store.
    std::optional<Guard> last;
    for (const Guard& guard : GuardsIn(view.body())) {
      if (IsLastStep(view, guard.condition, axis)) last = guard;
    }
    Rewriter builder(view);
    const std::string name = FreshName(view, "acc_ref");
    std::vector<Node> stores;
    for (const Node& access : accesses) {
      const bool final_store =
          last && IsTarget(access) && access.parent().Is("assignment") && diagnose::Contains(last->body, access);
      if (final_store) stores.push_back(access);
    }
    for (const Node& variable : Variables(view.body())) {
      if (variable.text() != output->name) continue;
      const bool kept = std::any_of(stores.begin(), stores.end(),
                                    [&](const Node& store) { return diagnose::Contains(store, variable); });
      if (!kept) builder.Replace(variable, name);
    }
    if (stores.empty()) {
      const auto statements = Statements(view.body());
      if (statements.empty()) continue;
      builder.InsertAfter(statements.back(), "\n@" + builder.Pl() + ".when(" + LastStepText(view, builder, axis) +
                                                 ")\ndef _():\n    " + output->name + "[...] = " + name +
                                                 "[...].astype(" + output->name + ".dtype)");
    } else {
      for (const Node& store : stores) {
        const Node value = store.parent().Field("right");
        builder.Replace(ByteRange{value.begin(), value.begin()},
                        value.Is("identifier") || value.Is("subscript") || value.Is("call") ? "" : "(");
        builder.Insert(value.end(), (value.Is("identifier") || value.Is("subscript") || value.Is("call") ? "" : ")") +
                                        std::string(".astype(") + output->name + ".dtype)");
      }
    }
    const std::string shape = BlockShapeText(view, output->type.dims, {output->name});
    if (!AddScratch(view, builder, {{name, shape, DtypeText(builder, "float32")}})) {
      answer.Refuse("scratch_shapes is not a list in the call");
      continue;
    }
    builder.Replace(out_dtype, std::string(outer->dtype.text()));
    builder.Replace(ByteRange{outer->base.end(), outer->cast.end()}, "");
    const auto& dims = output->block->array.dims;
    int64_t elements = 1;
    for (const int64_t dim : dims) elements *= dim;
    answer.Propose(view.launch.call,
                   {"sum in VMEM scratch, store the output once as " + cast->outputs.front().type.dtype,
                    "The kernel writes float32 sums to HBM, and another pass reads and casts them; with the sum in "
                    "scratch the kernel writes the final type itself.",
                    "graph: " + ShapeText(dims) + " of float32, " + Bytes(elements * 4) +
                        ", is only cast to bfloat16 behind the call; " + Bytes(elements * 8) + " of traffic go away",
                    1.3, kernels::Exactness::kBitEqual},
                   builder.edits());
  }
}

}  // namespace kernelwright::rewrite
