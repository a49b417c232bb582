// Types that the chip or the lowering does not take: narrower, wider, or another one on the way.
#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "daemon/diagnose/fix_families.h"
#include "daemon/diagnose/fix_launch.h"
#include "daemon/kernels/literals.h"

namespace kernelwright::diagnose {
namespace {

bool IsProduct(const Node& node) {
  return IsCallOf(node, {"dot", "matmul", "dot_general", "einsum", "tensordot", "vdot"}) ||
         (node.Is("binary_operator") && node.Field("operator").text() == "@");
}

// Type of the first operand of the primitives at a node, when the trace has one answer.
std::optional<std::string> DtypeAt(const FixRequest& request, const Node& node,
                                   std::initializer_list<std::string_view> primitives) {
  std::optional<std::string> dtype;
  for (const std::string_view primitive : primitives) {
    for (const TensorType& type : OperandTypes(request.source, node, primitive, request.context)) {
      if (dtype && *dtype != type.dtype) return std::nullopt;
      dtype = type.dtype;
    }
  }
  return dtype;
}

// `jnp.float64` -> `jnp.float32` below a node, also in strings that are types.
void ReplaceDtypeNames(const Node& below, const std::map<std::string, std::string>& names, FixBuilder& builder) {
  kernels::Walk(below, [&](const Node& node) {
    Node name = node;
    if (node.Is("attribute")) name = node.Field("attribute");
    if (node.Is("attribute")) {
      const auto at = names.find(std::string(name.text()));
      if (at != names.end()) builder.Replace(name, at->second);
      return at == names.end();
    }
    if (node.Is("string")) {
      std::string text(node.text());
      std::erase_if(text, [](char c) { return c == '"' || c == '\''; });
      const auto at = names.find(text);
      if (at != names.end()) builder.Replace(node, "\"" + at->second + "\"");
    }
    return true;
  });
}

// The call of the launch's result: `pl.pallas_call(…)(x, y)`.
Node AppliedCall(const Launch& launch) {
  const Node above = launch.call.parent();
  if (above.Is("call") && above.Field("function") == launch.call) return above;
  return {};
}

// Runs the kernel in another type: operands are cast on the way in, results on the way out. `convert` maps a type's
// name to the one to use, or to nothing to leave it.
std::optional<FixBuilder> ConvertOperands(const FixRequest& request,
                                          const std::map<std::string, std::string>& convert) {
  const FixSource& source = request.source;
  const auto launch = LaunchOf(source, source.place());
  if (!launch) return std::nullopt;
  const PallasCall* call = TracedCall(source, *launch, request.context);
  const Node applied = AppliedCall(*launch);
  if (call == nullptr || !applied) return std::nullopt;
  FixBuilder builder(source);
  const std::string jnp = builder.Jnp();
  const auto arguments = PositionalArguments(applied);
  std::vector<const BlockMapping*> inputs;
  std::vector<const BlockMapping*> outputs;
  for (const BlockMapping& mapping : call->blocks) (mapping.is_output ? outputs : inputs).push_back(&mapping);
  const size_t prefetch = static_cast<size_t>(call->num_scalar_prefetch);
  if (arguments.size() != inputs.size() + prefetch || outputs.size() != 1) return std::nullopt;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto to = convert.find(inputs[i]->array.dtype);
    if (to == convert.end()) continue;
    const Node& argument = arguments[i + prefetch];
    builder.Replace(argument, AsPrimary(argument) + ".astype(" + jnp + "." + to->second + ")");
  }
  const auto result = convert.find(outputs.front()->array.dtype);
  if (result != convert.end()) {
    Node shape = StripParentheses(launch->out_shape);
    if (shape.Is("identifier")) shape = StripParentheses(source.Resolve(shape));
    if (shape.Is("call") && CalleeName(shape) != "ShapeDtypeStruct" && PositionalArguments(shape).size() != 2) {
      return std::nullopt;
    }
    if (shape.Is("call")) {
      const Node dtype = Argument(shape, 1, "dtype");
      if (!dtype) return std::nullopt;
      builder.Replace(dtype, jnp + "." + result->second);
    } else if (shape) {
      // `out_shape=x`: the array itself stands for its shape and type.
      builder.Replace(launch->out_shape, "jax.ShapeDtypeStruct(" + AsPrimary(launch->out_shape) + ".shape, " + jnp +
                                             "." + result->second + ")");
    } else {
      return std::nullopt;
    }
    builder.Insert(applied.end(), ".astype(" + jnp + "." + result->first + ")");
  }
  if (launch->kernel) ReplaceDtypeNames(launch->kernel, convert, builder);
  for (const Node& scratch : launch->scratch) ReplaceDtypeNames(scratch, convert, builder);
  if (builder.empty()) return std::nullopt;
  return builder;
}

// The first argument cast to `wide` and the result back to `back` (none when empty).
std::optional<Fix> CastAround(const FixRequest& request, const Node& call, const std::string& wide,
                              const std::string& back, const std::string& title) {
  FixBuilder builder(request.source);
  const std::string jnp = builder.Jnp();
  if (call.Is("binary_operator")) {
    const Node left = call.Field("left");
    const Node right = call.Field("right");
    const auto cast = [&](const Node& side) {
      if (kernels::EvaluateInteger(side) || side.Is("float")) return std::string(side.text());
      return AsPrimary(side) + ".astype(" + jnp + "." + wide + ")";
    };
    std::string text = "(" + cast(left) + " " + std::string(call.Field("operator").text()) + " " + cast(right) + ")";
    if (!back.empty()) text += ".astype(" + jnp + "." + back + ")";
    builder.Replace(call, text);
    return builder.Build(title);
  }
  const auto arguments = PositionalArguments(call);
  if (arguments.empty()) {
    // A method: `x.sum(axis=1)`.
    const Node object = call.Field("function").Field("object");
    if (!object) return std::nullopt;
    builder.Insert(object.end(), ".astype(" + jnp + "." + wide + ")");
  } else {
    const Node function = call.Field("function");
    const Node object = function.Field("object");
    const bool method = object.Is("subscript") || object.Is("call");
    if (method) builder.Insert(object.end(), ".astype(" + jnp + "." + wide + ")");
    const bool binary =
        IsCallOf(call, {"atan2", "arctan2", "mod", "remainder", "floor_divide", "rem", "mul", "multiply"});
    for (size_t i = 0; i < (method ? 0 : binary ? arguments.size() : 1); ++i) {
      if (kernels::EvaluateInteger(arguments[i]) || arguments[i].Is("float")) continue;
      builder.Replace(arguments[i], AsPrimary(arguments[i]) + ".astype(" + jnp + "." + wide + ")");
    }
  }
  if (const Node dtype = KeywordArgument(call, "dtype")) builder.RemoveArgument(dtype);
  if (!back.empty()) builder.Insert(call.end(), ".astype(" + jnp + "." + back + ")");
  return builder.Build(title);
}

}  // namespace

Fixes NarrowTo32Bits(const FixRequest& request) {
  const std::map<std::string, std::string> names = {
      {"float64", "float32"}, {"int64", "int32"}, {"uint64", "uint32"}, {"complex128", "complex64"}};
  Fixes fixes;
  const auto launch = LaunchOf(request.source, request.source.place());
  const std::string title = "Use 32-bit types in the kernel";
  if (launch && launch->kernel) {
    FixBuilder builder(request.source);
    ReplaceDtypeNames(launch->kernel, names, builder);
    if (!builder.empty()) fixes.push_back(builder.Build(title));
  }
  if (const auto converted = ConvertOperands(request, names)) {
    fixes.push_back(converted->Build(title + ", cast around the call"));
  }
  return fixes;
}

Fixes AvoidFloat16(const FixRequest& request) {
  Fixes fixes;
  // f32 holds every float16 value, so nothing is lost; bf16 would lose bits.
  if (const auto converted = ConvertOperands(request, {{"float16", "float32"}})) {
    fixes.push_back(converted->Build("Run the kernel in float32, cast around the call"));
  }
  if (const auto launch = LaunchOf(request.source, request.source.place()); launch && launch->kernel) {
    FixBuilder builder(request.source);
    ReplaceDtypeNames(launch->kernel, {{"float16", "float32"}}, builder);
    if (!builder.empty()) fixes.push_back(builder.Build("Use float32 in the kernel"));
  }
  return fixes;
}

Fixes DropPrecision(const FixRequest& request) {
  const auto products = request.source.AtPlace(
      [](const Node& node) { return node.Is("call") && static_cast<bool>(KeywordArgument(node, "precision")); });
  Fixes fixes;
  for (const Node& product : products) {
    const Node precision = Keyword(product, "precision");
    FixBuilder builder(request.source);
    if (request.diagnostic.id == "D123") {
      builder.RemoveArgument(KeywordArgument(product, "precision"));
      fixes.push_back(builder.Build("Drop the precision: a product of bfloat16 is exact in float32"));
      continue;
    }
    std::string text(precision.text());
    if (text.ends_with("Precision.HIGH")) {
      text += "EST";
    } else if (precision.Is("string")) {
      text = "\"highest\"";
    } else {
      continue;
    }
    builder.Replace(precision, text);
    fixes.push_back(builder.Build("Use HIGHEST, the precision above HIGH"));
  }
  return fixes;
}

Fixes AccumulateIn32Bits(const FixRequest& request) {
  const FixSource& source = request.source;
  Fixes fixes;
  const auto add = [&](const std::vector<Node>& products, const std::string& where) {
    FixBuilder builder(source);
    const std::string jnp = builder.Jnp();
    for (const Node& product : products) {
      const auto dtype = DtypeAt(request, product, {"dot_general"});
      const std::string operand = dtype.value_or("bfloat16");
      const bool integer = operand.find("int") != std::string::npos;
      const std::string wide = jnp + (integer ? ".int32" : ".float32");
      // A cast that follows takes the result as it is.
      const bool cast = product.parent().Is("attribute") && product.parent().Field("attribute").text() == "astype";
      const Node around = product.parent().Is("parenthesized_expression") ? product.parent().parent() : Node();
      const bool cast_outside = around.Is("attribute") && around.Field("attribute").text() == "astype";
      const std::string back = cast || cast_outside ? "" : ".astype(" + jnp + "." + operand + ")";
      if (product.Is("binary_operator")) {
        builder.Replace(product, jnp + ".matmul(" + std::string(product.Field("left").text()) + ", " +
                                     std::string(product.Field("right").text()) + ", preferred_element_type=" + wide +
                                     ")" + back);
        continue;
      }
      if (const Node given = Keyword(product, "preferred_element_type")) {
        builder.Replace(given, wide);
      } else {
        builder.AddArgument(product, "preferred_element_type=" + wide);
      }
      if (!back.empty()) builder.Insert(product.end(), back);
    }
    if (!builder.empty()) fixes.push_back(builder.Build("Accumulate in 32 bit and cast the result" + where));
  };
  auto here = source.AtPlace(IsProduct);
  // Products of products are edited from the outside in one after the other.
  if (here.size() > 1) here.resize(1);
  add(here, "");
  const auto all = FindAll(source.OutermostFunction(source.place()), [](const Node& node) {
    return IsProduct(node) && !Keyword(node, "preferred_element_type");
  });
  bool nested = false;
  for (const Node& a : all) {
    for (const Node& b : all) nested = nested || (!(a == b) && Contains(a, b));
  }
  if (all.size() > here.size() && !here.empty() && !nested) add(all, ", in every product of the function");
  return fixes;
}

Fixes ComputeWide(const FixRequest& request) {
  const FixSource& source = request.source;
  const std::string& id = request.diagnostic.id;
  Fixes fixes;
  const auto push = [&](std::optional<Fix> fix) {
    if (fix) fixes.push_back(*std::move(fix));
  };
  if (id == "D132") {
    const auto products = source.AtPlace([](const Node& node) {
      return (node.Is("binary_operator") && node.Field("operator").text() == "*") ||
             IsCallOf(node, {"mul", "multiply"});
    });
    for (const Node& product : products) {
      const auto dtype = DtypeAt(request, product, {"mul"});
      if (!dtype || (*dtype != "uint8" && *dtype != "int8")) continue;
      push(CastAround(request, product, "int32", *dtype, "Multiply in int32 and cast back"));
    }
    return fixes;
  }
  if (id == "D135") {
    for (const Node& call : source.AtPlace([](const Node& n) { return IsCallOf(n, {"argmax", "argmin"}); })) {
      const auto dtype = DtypeAt(request, call, {"argmax", "argmin"});
      // Integers of more than 24 bits are not exact in f32.
      const bool exact = dtype && (*dtype == "bfloat16" || *dtype == "float16" || *dtype == "int8" ||
                                   *dtype == "uint8" || *dtype == "int16" || *dtype == "uint16");
      if (exact) {
        push(CastAround(request, call, "float32", "", "Take the argmax of float32"));
        continue;
      }
      const bool largest = CalleeName(call) == "argmax";
      const Node axis = StripParentheses(Argument(call, 1, "axis"));
      const auto arguments = PositionalArguments(call);
      const Node keep = Keyword(call, "keepdims");
      if (!dtype || *dtype != "int32" || arguments.empty() || (!axis.Is("integer") && !axis.Is("unary_operator")))
        continue;
      FixBuilder builder(source);
      const std::string name = largest ? "_first_max" : "_first_min";
      const std::string jnp = builder.Jnp();
      builder.AddHelper(
          call, name,
          "def " + name + "(x, axis, keepdims=False):\n" +
              "    \"\"\"Index of the first extreme entry of an int32 array: argmax takes float32 alone.\"\"\"\n" +
              "    axis %= x.ndim\n" + "    best = " + jnp + (largest ? ".max" : ".min") +
              "(x, axis=axis, keepdims=True)\n" + "    position = " + builder.Lax() + ".broadcasted_iota(" + jnp +
              ".int32, x.shape, axis)\n" + "    return " + jnp + ".min(" + jnp +
              ".where(x == best, position, x.shape[axis]), axis=axis, keepdims=keepdims)");
      builder.Replace(call, name + "(" + std::string(arguments.front().text()) + ", axis=" + std::string(axis.text()) +
                                (keep ? ", keepdims=" + std::string(keep.text()) : "") + ")");
      fixes.push_back(builder.Build("Find the first index of the extreme value with where and min"));
    }
    return fixes;
  }
  if (id == "D136") {
    const auto reductions = source.AtPlace([](const Node& n) { return IsCallOf(n, {"sum", "max", "min"}); });
    for (const Node& call : reductions) {
      const auto dtype = DtypeAt(request, call, {"reduce_sum", "reduce_max", "reduce_min"});
      std::string narrow = dtype.value_or("");
      if (narrow.empty()) {
        narrow = request.diagnostic.raw.find("int16") != std::string::npos ? "int16" : "int8";
      }
      push(CastAround(request, call, "int32", narrow, "Reduce in int32 and cast back"));
    }
    return fixes;
  }
  if (id == "D137") {
    const auto reductions =
        source.AtPlace([](const Node& n) { return IsCallOf(n, {"sum", "max", "min", "mean"}) && !Keyword(n, "axis"); });
    for (const Node& call : reductions) {
      push(CastAround(request, call, "float32", "", "Reduce to a scalar in float32"));
      const Node parent = call.parent();
      const bool cast = parent.Is("attribute");
      if (!cast) push(CastAround(request, call, "float32", "bfloat16", "Reduce to a scalar in float32 and cast back"));
    }
    return fixes;
  }
  // D134: functions and operators that bf16 has no lowering for.
  const auto math = source.AtPlace([](const Node& node) {
    if (node.Is("binary_operator")) {
      const std::string_view op = node.Field("operator").text();
      return op == "%" || op == "//";
    }
    return IsCallOf(node, {"log2", "mod", "remainder", "floor_divide", "rem", "atan2", "arctan2", "std", "isfinite",
                           "logsumexp", "erf_inv", "exp2", "cbrt", "tan", "sin", "cos", "atan", "arctan", "power"});
  });
  for (const Node& node : math) {
    const bool truth = IsCallOf(node, {"isfinite"});
    push(CastAround(request, node, "float32", truth ? "" : "bfloat16",
                    "Compute in float32" + std::string(truth ? "" : " and cast back")));
  }
  return fixes;
}

Fixes ExpandMaskAsInteger(const FixRequest& request) {
  const FixSource& source = request.source;
  FixBuilder builder(source);
  const auto views = source.AtPlace([](const Node& node) {
    if (node.Is("subscript")) {
      const auto children = node.NamedChildren();
      return std::any_of(children.begin() + 1, children.end(),
                         [](const Node& index) { return index.Is("none") || index.text().ends_with("newaxis"); });
    }
    return IsCallOf(node, {"reshape", "expand_dims"});
  });
  if (views.empty()) return {};
  const Node view = views.front();
  const std::string cast = ".astype(" + builder.Jnp() + ".int32)";
  const Node function = view.Field("function");
  Node value = view.Is("subscript") ? view.Field("value") : Argument(view, 0, "a");
  if (view.Is("call") && function.Field("object") && function.Field("object").text() != "jnp" &&
      function.Field("object").text() != "lax") {
    value = function.Field("object");
  }
  if (!value) return {};
  builder.Replace(value, AsPrimary(value) + cast);
  builder.Insert(view.begin(), "(");
  builder.Insert(view.end(), " != 0)");
  return {builder.Build("Reshape the mask as int32")};
}

Fixes CarryMaskAsInteger(const FixRequest& request) {
  const FixSource& source = request.source;
  const auto is_loop = [](const Node& node) { return IsCallOf(node, {"while_loop", "fori_loop"}); };
  auto loops = source.AtPlace(is_loop);
  if (loops.empty()) {
    const auto launch = LaunchOf(source, source.place());
    loops = FindAll(launch ? launch->kernel : source.OutermostFunction(source.place()), is_loop);
  }
  if (loops.size() != 1) return {};
  const Node loop = loops.front();
  const bool counted = CalleeName(loop) == "fori_loop";
  const auto arguments = PositionalArguments(loop);
  if (arguments.size() != (counted ? 4U : 3U)) return {};
  const Node body_name = arguments[counted ? 2 : 1];
  const Node init = arguments.back();
  const Node body = body_name.Is("identifier") ? source.ResolveFunction(body_name) : body_name;
  // Which entry of the state is a mask: the one whose start is a comparison, or that the body ends with a logical.
  const auto starts = Elements(init);
  const bool single = !IsSequence(StripParentheses(init));
  const auto is_mask = [](Node node) {
    node = StripParentheses(node);
    return node.Is("comparison_operator") || node.Is("not_operator") ||
           IsCallOf(node, {"logical_not", "logical_and", "logical_or", "isnan", "isfinite"}) ||
           node.text().find("bool") != std::string_view::npos;
  };
  std::optional<size_t> mask;
  for (size_t i = 0; i < starts.size(); ++i) {
    Node start = starts[i];
    if (start.Is("identifier")) start = source.Resolve(start);
    if (is_mask(start)) mask = mask ? std::nullopt : std::optional<size_t>(i);
  }
  if (!mask || !body) return {};
  FixBuilder builder(source);
  const std::string cast = ".astype(" + builder.Jnp() + ".int32)";
  const auto parameters = body.Field("parameters").NamedChildren();
  if (parameters.size() != (counted ? 2U : 1U)) return {};
  const std::string_view state = parameters.back().text();
  // Uses of the mask in the body: the parameter itself, `state[1]`, or the name it is unpacked to.
  const Node inside = body.Field("body");
  std::string unpacked;
  for (const Node& node : FindAll(inside, [&](const Node& n) {
         return n.Is("assignment") && n.Field("right").text() == state && !n.Field("left").Is("identifier");
       })) {
    const auto targets = node.Field("left").NamedChildren();
    if (targets.size() == starts.size()) unpacked = targets[*mask].text();
  }
  Node returned = inside;
  if (body.Is("function_definition")) {
    const auto returns = FindAll(inside, [](const Node& n) { return n.Is("return_statement"); });
    if (returns.size() != 1) return {};
    returned = returns.front().NamedChildren().empty() ? Node() : returns.front().NamedChildren().front();
  }
  const auto results = single ? std::vector<Node>{returned} : Elements(returned);
  if (results.size() != starts.size() || !results[*mask]) return {};
  size_t uses = 0;
  const auto is_use = [&](const Node& n) {
    if (!unpacked.empty()) {
      const Node above = n.parent();
      return n.Is("identifier") && n.text() == unpacked && !above.Is("pattern_list") && !above.Is("tuple_pattern");
    }
    if (single) return n.Is("identifier") && n.text() == state && !n.parent().Is("parameters");
    if (!n.Is("subscript") || n.Field("value").text() != state) return false;
    const auto children = n.NamedChildren();
    return children.size() == 2 && kernels::EvaluateInteger(children[1]) == std::optional<int64_t>(*mask);
  };
  for (const Node& use : FindAll(inside, is_use)) {
    builder.Replace(use, "(" + std::string(use.text()) + " != 0)");
    ++uses;
  }
  if (uses == 0) return {};
  const auto castable = [&](const Node& node) {
    builder.Insert(node.begin(), "(");
    builder.Insert(node.end(), ")" + cast);
  };
  castable(results[*mask]);
  castable(starts[*mask]);
  // The result is a mask again behind the loop.
  const Node assignment = loop.parent();
  if (!assignment.Is("assignment")) return {};
  const Node left = assignment.Field("left");
  const auto targets = single || left.Is("identifier") ? std::vector<Node>{left} : left.NamedChildren();
  if (single) {
    builder.InsertAfter(Statement(loop), std::string(left.text()) + " = " + std::string(left.text()) + " != 0");
  } else {
    if (targets.size() != starts.size()) return {};
    const std::string name(targets[*mask].text());
    if (name != "_") builder.InsertAfter(Statement(loop), name + " = " + name + " != 0");
  }
  return {builder.Build("Carry the mask as int32")};
}

}  // namespace kernelwright::diagnose
