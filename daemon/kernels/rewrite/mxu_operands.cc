// The matrix unit takes 16-bit operands and sums in 32 bits. Operands that the kernel widens to float32 first cost
// several passes, or conversions in the vector unit, and give nothing: products of 16-bit floats are exact in 32.
// Operands that are float32 from the start are narrowed only where the user allows a lower precision.
#include <algorithm>

#include "daemon/kernels/rewrite/product.h"
#include "daemon/kernels/rewrite/rule.h"

namespace kernelwright::rewrite {
namespace {

// How one operand gets 16 bits.
struct Narrowing {
  enum class How { kNone, kAsItIs, kDropCast, kAddCast };
  How how = How::kNone;
  OperandSource source;
  Node base;  // kDropCast: what was widened
};

Narrowing NarrowingOf(const KernelView& view, const Node& operand, const TensorType& type) {
  Narrowing found;
  found.source = SourceOf(view, operand);
  if (type.dtype == "bfloat16") {
    found.how = Narrowing::How::kAsItIs;
    return found;
  }
  if (type.dtype != "float32") return found;
  std::string dtype;
  found.base = CastBase(found.source.value, &dtype);
  if (found.base) {
    const std::string_view ref = diagnose::SubscriptedName(found.base);
    const Ref* known = ref.empty() ? nullptr : view.Find(ref);
    std::optional<TensorType> before;
    if (known != nullptr) {
      before = known->type;
    } else {
      before = TypeOf(view, found.base);
    }
    if (!before && found.base.Is("identifier")) {
      const Node value = view.source.Resolve(found.base);
      const Ref* behind = value ? view.Find(diagnose::SubscriptedName(value)) : nullptr;
      if (behind != nullptr) before = behind->type;
    }
    if (before && before->dtype == "bfloat16") {
      found.how = Narrowing::How::kDropCast;
      return found;
    }
  }
  found.how = Narrowing::How::kAddCast;
  return found;
}

// Uses of a name other than where it is bound.
int UsesOf(const KernelView& view, std::string_view name) {
  int uses = -1;
  for (const Node& variable : Variables(view.body())) {
    if (variable.text() == name) ++uses;
  }
  return uses;
}

}  // namespace

void MxuOperands(const KernelView& view, Answer& answer) {
  for (const Product& product : ProductsIn(view)) {
    if (product.left_type.dtype != "float32" && product.right_type.dtype != "float32") continue;
    const Narrowing left = NarrowingOf(view, product.left, product.left_type);
    const Narrowing right = NarrowingOf(view, product.right, product.right_type);
    if (left.how == Narrowing::How::kNone || right.how == Narrowing::How::kNone) {
      answer.Refuse("an operand is neither float32 nor bfloat16", product.node);
      continue;
    }
    // A precision asks for more passes over float32 operands; 16-bit ones are exact in one and take none.
    const Node precision = diagnose::KeywordArgument(product.node, "precision");
    const std::string precision_text = precision ? std::string(precision.Field("value").text()) : "";
    const bool highest =
        precision_text.find("HIGHEST") != std::string::npos || precision_text.find("highest") != std::string::npos;
    const bool plain = precision_text.empty() || precision_text.ends_with("DEFAULT") || precision_text == "None";
    if (!highest && !plain) {
      answer.Refuse("the precision is not written in the product: " + precision_text, product.node);
      continue;
    }
    const bool lower = left.how == Narrowing::How::kAddCast || right.how == Narrowing::How::kAddCast;

    Rewriter builder(view);
    const bool matmul_operator = product.node.Is("binary_operator");
    std::vector<std::string> replaced;
    for (const auto& [how, operand] : {std::pair(&left, product.left), std::pair(&right, product.right)}) {
      std::string text(operand.text());
      bool in_place = false;
      if (how->how == Narrowing::How::kDropCast) {
        if (how->source.name && UsesOf(view, how->source.name.text()) == 1) {
          builder.Replace(how->source.value, std::string(how->base.text()));  // where the name is bound
        } else {
          text = std::string(how->base.text());
          in_place = true;
        }
      } else if (how->how == Narrowing::How::kAddCast) {
        const bool bound_once = how->source.name && UsesOf(view, how->source.name.text()) == 1;
        const Node cast = how->base ? diagnose::Argument(how->source.value, 0, "dtype") : Node();
        if (cast && bound_once) {
          builder.Replace(cast, builder.Jnp() + ".bfloat16");  // where the name is bound
          replaced.push_back(std::move(text));
          continue;
        }
        if (cast && !how->source.name) {
          text = std::string(how->base.text()) + ".astype(" + builder.Jnp() + ".bfloat16)";
        } else {
          text = diagnose::AsPrimary(diagnose::StripParentheses(operand)) + ".astype(" + builder.Jnp() + ".bfloat16)";
        }
        in_place = true;
      }
      if (in_place && !matmul_operator) builder.Replace(operand, text);
      replaced.push_back(std::move(text));
    }
    if (matmul_operator) {
      builder.Replace(product.node, builder.Jnp() + ".dot(" + replaced[0] + ", " + replaced[1] +
                                        ", preferred_element_type=" + builder.Jnp() + ".float32)");
    } else {
      const bool typed = static_cast<bool>(diagnose::Keyword(product.node, "preferred_element_type"));
      const std::string wanted = "preferred_element_type=" + builder.Jnp() + ".float32";
      if (precision && !typed) {
        builder.Replace(precision, wanted);
      } else if (precision) {
        builder.RemoveArgument(precision);
      } else if (!typed) {
        builder.AddArgument(product.node, wanted);
      }
    }
    const std::string widened = lower ? "float32 operands are rounded to bfloat16 explicitly"
                                      : "the operands were bfloat16 before they were widened";
    answer.Propose(
        product.node,
        {lower ? "bfloat16 operands, sums in float32" : "operands as they are, sums in float32",
         lower ? std::string("The matrix unit multiplies 16-bit operands in one pass; float32 ones take ") +
                     (highest ? "several passes at this precision." : "twice the loads and a rounding each.")
               : std::string("Widening costs conversions in the vector unit") +
                     (highest ? " and several passes of the matrix unit" : "") +
                     "; products of bfloat16 are exact in float32, so that nothing is gained by it.",
         "graph: dot_general of " + product.left_type.dtype + " and " + product.right_type.dtype + "; " + widened,
         highest ? 3.0 : 1.2, lower ? kernels::Exactness::kLowerPrecision : kernels::Exactness::kReassociation},
        builder.edits());
  }
}

}  // namespace kernelwright::rewrite
