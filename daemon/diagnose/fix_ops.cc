// Operations that the TPU lowering lacks, written with those that it has. A replacement that is more than an expression
// becomes a small function in front of the user's own (fix_ops_library.cc); the call keeps its arguments.
#include <algorithm>
#include <optional>

#include "daemon/diagnose/fix_families.h"
#include "daemon/diagnose/fix_launch.h"
#include "daemon/diagnose/fix_ops_library.h"
#include "daemon/kernels/literals.h"

namespace kernelwright::diagnose {
namespace {

void ReplaceCallee(const Node& call, const Replacement& replacement, FixBuilder& builder) {
  const std::string name(replacement.helper);
  for (const std::string_view other : replacement.needs) {
    const Replacement* needed = FindReplacement(other);
    if (needed != nullptr) {
      builder.AddHelper(call, std::string(needed->helper), ReplacementText(*needed, builder));
    }
  }
  builder.AddHelper(call, name, ReplacementText(replacement, builder));
  builder.Replace(call.Field("function"), name);
}

// Whether a call is one that the replacement stands for, arguments included.
bool Fits(const Node& call, const Replacement& replacement) {
  const std::string_view callee = call.Field("function").text();
  // A method (`x.cumsum(axis=0)`) would lose its object.
  if (!call.Field("function").Is("identifier")) {
    Node object = call.Field("function").Field("object");
    while (object.Is("attribute")) object = object.Field("object");
    if (!object.Is("identifier")) return false;
    const std::string_view module = object.text();
    if (module != "jnp" && module != "jax" && module != "lax" && module != "np" && module != "jsp" && module != "nn") {
      return false;
    }
  }
  if (replacement.diagnostic == "D100" || replacement.diagnostic == "D108") {
    // Without an axis NumPy's functions take the flattened array.
    const Node axis = StripParentheses(Argument(call, 1, "axis"));
    if (!axis.Is("integer") && !axis.Is("unary_operator")) return false;
  }
  if (callee.ends_with("gelu")) {
    const Node approximate = Argument(call, 1, "approximate");
    return approximate.Is("false");
  }
  for (const Node& argument : call.Field("arguments").NamedChildren()) {
    if (argument.Is("keyword_argument")) {
      const std::string_view name = argument.Field("name").text();
      if (std::find(replacement.keywords.begin(), replacement.keywords.end(), name) == replacement.keywords.end()) {
        return false;
      }
    }
    if (argument.Is("list_splat") || argument.Is("dictionary_splat")) return false;
  }
  return true;
}

// The values of an index: `[0, :]` as one entry per dimension.
std::vector<Node> Indices(const Node& subscript) {
  auto children = subscript.NamedChildren();
  if (!children.empty()) children.erase(children.begin());
  return children;
}

bool IsFullSlice(const Node& node) { return node.text() == ":" || node.Is("ellipsis"); }

}  // namespace

Fixes ReplaceOperation(const FixRequest& request) {
  const FixSource& source = request.source;
  const auto wanted = [](const Node& node) {
    const Replacement* replacement = FindReplacement(CalleeName(node));
    return replacement != nullptr && Fits(node, *replacement);
  };
  auto here = source.AtPlace(wanted);
  const auto of_this_kind = [&](const Node& node) {
    return FindReplacement(CalleeName(node))->diagnostic == request.diagnostic.id;
  };
  std::erase_if(here, [&](const Node& node) { return !of_this_kind(node); });
  auto everywhere = FindAll(source.OutermostFunction(source.place()), wanted);
  std::erase_if(everywhere, [&](const Node& node) { return !of_this_kind(node); });
  if (here.empty() && everywhere.size() == 1) here = everywhere;
  Fixes fixes;
  for (const auto* calls : {&here, &everywhere}) {
    if (calls->empty() || (calls == &everywhere && (everywhere.size() <= here.size() || here.empty()))) continue;
    FixBuilder builder(source);
    std::string names;
    for (const Node& call : *calls) {
      // A replacement inside the arguments of another one would overlap with it only in the callee, which it does not.
      const Replacement& replacement = *FindReplacement(CalleeName(call));
      ReplaceCallee(call, replacement, builder);
      if (names.find(CalleeName(call)) == std::string::npos) {
        names += (names.empty() ? "" : ", ") + std::string(CalleeName(call));
      }
      if (CalleeName(call) == "gelu") {
        if (const Node flag = KeywordArgument(call, "approximate")) builder.RemoveArgument(flag);
      }
    }
    fixes.push_back(builder.Build("Write " + names + " with operations that the TPU has" +
                                  (calls == &everywhere ? ", in the whole function" : "")));
  }
  return fixes;
}

Fixes SelectInsteadOfScatter(const FixRequest& request) {
  const FixSource& source = request.source;
  const auto updates = source.AtPlace([](const Node& node) {
    if (!IsCallOf(node, {"set", "add", "multiply"})) return false;
    const Node at = node.Field("function").Field("object");
    return at.Is("subscript") && at.Field("value").Is("attribute") &&
           at.Field("value").Field("attribute").text() == "at";
  });
  if (updates.size() != 1) return {};
  const Node update = updates.front();
  const Node at = update.Field("function").Field("object");
  const Node target = at.Field("value").Field("object");
  const auto indices = Indices(at);
  const auto arguments = PositionalArguments(update);
  if (arguments.size() != 1 || indices.empty()) return {};
  FixBuilder builder(source);
  const std::string jnp = builder.Jnp();
  std::string shape = AsPrimary(target) + ".shape";
  if (IsWholeRead(target)) shape = std::string(SubscriptedName(target)) + ".shape";
  const std::string value(arguments.front().text());

  // Whether an index is a vector: only the trace knows; a read of a whole ref is the form that is seen here.
  if (indices.size() == 1 && IsWholeRead(indices.front()) && CalleeName(update) == "add") {
    const std::string index(SubscriptedName(indices.front()));
    const std::string rows =
        builder.Lax() + ".broadcasted_iota(" + jnp + ".int32, (" + shape + "[0], " + index + ".shape[0]), 0)";
    const std::string mask =
        "(" + rows + " == " + std::string(indices.front().text()) + "[None, :]).astype(" + jnp + ".float32)";
    const auto types = OperandTypes(source, update, "scatter-add", request.context);
    if (types.empty() || types.front().dtype != "float32") return {};
    builder.Replace(update, AsPrimary(target) + " + " + jnp + ".dot(" + mask + ", " + value + ", precision=" +
                                builder.Lax() + ".Precision.HIGHEST, preferred_element_type=" + jnp + ".float32)");
    return {builder.Build("Add with a one-hot product")};
  }
  std::string condition;
  bool only_first = true;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (IsFullSlice(indices[d])) {
      if (indices[d].Is("ellipsis")) return {};
      continue;
    }
    if (indices[d].Is("slice") || indices[d].Is("none")) return {};
    const Node index = StripParentheses(indices[d]);
    const bool negative = index.Is("unary_operator");
    const std::string axis = std::to_string(d);
    const std::string wanted =
        negative ? shape + "[" + axis + "] - " + std::string(index.text().substr(1)) : AsPrimary(index);
    const std::string hit = builder.Lax() + ".broadcasted_iota(" + jnp + ".int32, " + shape + ", " + axis +
                            ") == " + (kernels::EvaluateInteger(index) ? std::string(index.text()) : wanted);
    condition = condition.empty() ? hit : "(" + condition + ") & (" + hit + ")";
    if (d > 0) only_first = false;
  }
  if (condition.empty()) return {};
  // A row broadcasts over the rows; a column would not.
  const Node argument = StripParentheses(arguments.front());
  const bool scalar = argument.Is("float") || argument.Is("integer") || argument.Is("unary_operator") ||
                      IsCallOf(argument, {"float32", "bfloat16", "int32"});
  if (!only_first && !scalar) return {};
  std::string changed = value;
  if (CalleeName(update) == "add") changed = AsPrimary(target) + " + " + AsPrimary(argument);
  if (CalleeName(update) == "multiply") changed = AsPrimary(target) + " * " + AsPrimary(argument);
  builder.Replace(update, jnp + ".where(" + condition + ", " + changed + ", " + std::string(target.text()) + ")");
  return {builder.Build("Select with jnp.where and an iota")};
}

Fixes IntegerIota(const FixRequest& request) {
  const FixSource& source = request.source;
  const auto calls =
      source.AtPlace([](const Node& node) { return IsCallOf(node, {"arange", "iota", "broadcasted_iota"}); });
  Fixes fixes;
  for (const Node& call : calls) {
    FixBuilder builder(source);
    const std::string jnp = builder.Jnp();
    const bool range = CalleeName(call) == "arange";
    const auto arguments = PositionalArguments(call);
    const Node dtype = range ? Keyword(call, "dtype") : Argument(call, 0, "dtype");
    if (range) {
      bool whole = !arguments.empty();
      for (const Node& argument : arguments) {
        if (!argument.Is("float")) continue;
        std::string text(argument.text());
        const size_t dot = text.find('.');
        if (dot == std::string::npos || text.find_first_not_of("0_", dot + 1) != std::string::npos) {
          whole = false;
          break;
        }
        builder.Replace(argument, text.substr(0, dot));
      }
      if (!whole) continue;
    }
    const std::string type = dtype ? std::string(dtype.text()) : jnp + ".float32";
    if (dtype) {
      builder.Replace(dtype, jnp + ".int32");
    } else if (range) {
      builder.AddArgument(call, "dtype=" + jnp + ".int32");
    } else {
      continue;
    }
    builder.Insert(call.end(), ".astype(" + type + ")");
    fixes.push_back(builder.Build("Count in int32 and cast"));
  }
  return fixes;
}

}  // namespace kernelwright::diagnose
