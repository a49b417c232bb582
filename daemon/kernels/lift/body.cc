// See body.h.
#include "daemon/kernels/lift/body.h"

#include <cmath>
#include <set>

namespace kernelwright::kernels::lift {
namespace {

constexpr size_t kLongExpression = 64;  // longer ones are cut into statements

bool IsName(const Code& code) {
  return code.precedence == Code::kAtom && code.text.find_first_of("([ ") == std::string::npos;
}

// Whether the name came from the user's source and not from what the operation is.
bool IsFirstOfItsKind(const std::string& op) { return IsReduction(op) || op == "rsqrt" || op == "exp"; }

}  // namespace

Body::Parts Body::PartsOf(int at) const {
  const FlatProgram& flat = context_.flat;
  const lift::Node& node = flat.nodes[static_cast<size_t>(at)];
  Parts parts;
  if (const auto gelu = MatchGelu(flat, at)) {
    parts.gelu = true;
    parts.gelu_exact = gelu->exact;
    parts.args = {gelu->of};
    return parts;
  }
  // max(-inf, x): how jax guards an empty reduction.
  for (const Arg& arg : node.args) parts.args.push_back(Behind(flat, arg));
  if (context_.sizes.means.contains(at)) {
    parts.mean = true;
    const lift::Node& sum = flat.nodes[static_cast<size_t>(parts.args[0].node)];
    parts.args = {Behind(flat, sum.args[0])};
  }
  return parts;
}

void Body::Expect(const std::vector<int>& roots) {
  std::vector<int> pending;
  std::set<int> seen;
  const auto use = [&](int at) {
    ++uses_[at];
    if (!values_.contains(at) && seen.insert(at).second) pending.push_back(at);
  };
  for (int root : roots) use(root);
  while (!pending.empty()) {
    const int at = pending.back();
    pending.pop_back();
    const Parts parts = PartsOf(at);
    for (const Arg& arg : parts.args) {
      if (arg.is_number()) continue;
      use(arg.node);
      if (parts.gelu_exact) use(arg.node);  // written twice
    }
  }
}

Code Body::Combine(int at, const Parts& parts, const std::vector<Code>& args) const {
  const Modules& modules = context_.modules;
  const lift::Node& node = context_.flat.nodes[static_cast<size_t>(at)];
  if (parts.mean) return {modules.jnp + ".mean(" + args[0].text + ", axis=1, keepdims=True)"};
  if (parts.gelu) {
    if (!parts.gelu_exact) return {modules.jax + ".nn.gelu(" + args[0].text + ")"};
    const Code half{"0.5 * " + Parenthesized(args[0], 8), 7};
    return {half.text + " * (1.0 + " + modules.jax + ".lax.erf(" + Parenthesized(args[0], 8) + " * 0.70710677))", 7};
  }
  return Print(node, args, modules);
}

Code Body::Name(int at, const Code& code) {
  const Code name{taken_.Take(context_.names.at(at))};
  lines_.push_back(name.text + " = " + code.text);
  values_[at] = name;
  return name;
}

Code Body::Value(int at) {
  if (const auto found = values_.find(at); found != values_.end()) return found->second;
  const Parts parts = PartsOf(at);
  const lift::Node& node = context_.flat.nodes[static_cast<size_t>(at)];
  if ((node.op == "max" || node.op == "min") && parts.args.size() == 2) {
    const double nothing = node.op == "max" ? -HUGE_VAL : HUGE_VAL;
    for (size_t i = 0; i < 2; ++i) {
      if (!parts.args[i].is_number() || parts.args[i].number != nothing || parts.args[1 - i].is_number()) continue;
      uses_[parts.args[1 - i].node] += uses_[at] - 1;
      const Code same = Value(parts.args[1 - i].node);
      values_[at] = same;
      return same;
    }
  }
  std::vector<Code> args;
  for (const Arg& arg : parts.args) {
    args.push_back(arg.is_number() ? PrintNumber(arg, context_.modules) : Value(arg.node));
  }
  Code code = Combine(at, parts, args);
  // Long: the longest operand gets a name, until what is left is short or made of names.
  while (code.text.size() > kLongExpression) {
    size_t longest = args.size();
    for (size_t i = 0; i < args.size(); ++i) {
      if (parts.args[i].is_number() || IsName(args[i])) continue;
      if (longest == args.size() || args[i].text.size() > args[longest].text.size()) longest = i;
    }
    if (longest == args.size()) break;
    const int which = parts.args[longest].node;
    const Code name = Name(which, args[longest]);
    for (size_t i = 0; i < args.size(); ++i) {
      if (!parts.args[i].is_number() && parts.args[i].node == which) args[i] = name;
    }
    code = Combine(at, parts, args);
  }
  if (uses_[at] > 1 || (IsFirstOfItsKind(node.op) && parts.args.size() == 1 && code.text.size() > 24) || parts.mean) {
    return Name(at, code);
  }
  return code;
}

std::string Body::Cast(int at, const std::string& cast) {
  Code code = Value(at);
  if (cast.empty()) return code.text;
  return Parenthesized(code, Code::kAtom) + ".astype(" + cast + ")";
}

}  // namespace kernelwright::kernels::lift
