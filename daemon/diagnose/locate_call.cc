// See locate_call.h.
#include "daemon/diagnose/locate_call.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>

namespace kernelwright::diagnose {
namespace {

using kernels::Node;

constexpr int kDepth = 8;  // of names behind names: enough for people, and it ends loops

Node Unwrapped(Node node) {
  while (node.Is("parenthesized_expression")) {
    const std::vector<Node> inner = node.NamedChildren();
    if (inner.size() != 1) break;
    node = inner.front();
  }
  return node;
}

bool IsScope(const Node& node) {
  return node.Is("function_definition") || node.Is("module") || node.Is("lambda") || node.Is("class_definition");
}

Node ScopeOf(const Node& node) {
  Node up = node.parent();
  while (up && !IsScope(up)) up = up.parent();
  return up;
}

// Calls visit on everything of a scope, but not on what inner functions hold (their definitions are visited).
template <typename Visit>
void WalkScope(const Node& scope, const Visit& visit) {
  Walk(scope, [&](const Node& node) {
    if (node == scope) return true;
    visit(node);
    return !IsScope(node);
  });
}

// Value bound to `name` by an assignment: `name = v`, `name: T = v`, `a, name = u, v`.
Node BoundValue(const Node& assignment, std::string_view name) {
  const Node left = assignment.Field("left");
  const Node right = assignment.Field("right");
  if (!right) return {};
  if (left.Is("identifier")) return left.text() == name ? right : Node();
  if (!left.Is("pattern_list") && !left.Is("tuple_pattern")) return {};
  const std::vector<Node> targets = left.NamedChildren();
  const std::vector<Node> values = right.NamedChildren();
  if (!right.Is("expression_list") && !right.Is("tuple")) return {};
  for (size_t i = 0; i < targets.size() && targets.size() == values.size(); ++i) {
    if (targets[i].Is("identifier") && targets[i].text() == name) return values[i];
  }
  return {};
}

bool HasParameter(const Node& function, std::string_view name) {
  bool found = false;
  Walk(function.Field("parameters"), [&](const Node& node) {
    if (node.Is("default_parameter") || node.Is("typed_default_parameter")) {
      found = found || node.Field("name").text() == name;
      return false;
    }
    found = found || (node.Is("identifier") && node.text() == name);
    return !node.Is("type");
  });
  return found;
}

struct Binding {
  Node value;      // of an assignment
  Node function;   // a definition
  Node parameter;  // the function whose parameter it is
};

// What a name means where it is used.
Binding Lookup(const Node& use, std::string_view name) {
  bool own = true;
  for (Node scope = ScopeOf(use); scope; scope = ScopeOf(scope)) {
    Binding last;
    const bool before_only = own;  // an outer scope has run to its end when an inner function is called
    WalkScope(scope, [&](const Node& node) {
      if (before_only && node.begin() >= use.begin()) return;
      if (node.Is("assignment")) {
        if (const Node value = BoundValue(node, name)) last = {value, {}, {}};
      } else if (node.Is("function_definition") && node.Field("name").text() == name) {
        last = {{}, node, {}};
      } else if (node.Is("named_expression") && node.Field("name").text() == name) {
        last = {node.Field("value"), {}, {}};
      }
    });
    if (last.value || last.function) return last;
    if ((scope.Is("function_definition") || scope.Is("lambda")) && HasParameter(scope, name)) return {{}, {}, scope};
    if (!scope.Is("lambda")) own = false;
  }
  return {};
}

Node RootOf(Node node) {
  for (Node up = node.parent(); up; up = up.parent()) node = up;
  return node;
}

bool CallsPallas(const Node& call) {
  if (!call.Is("call")) return false;
  const std::string_view name = LastName(call.Field("function"));
  if (name == "pallas_call") return true;
  if (name != "partial") return false;
  const CallArguments arguments = ArgumentsOf(call);
  return !arguments.positional.empty() && LastName(arguments.positional.front()) == "pallas_call";
}

bool IsSpecCall(const Node& node) { return node.Is("call") && LastName(node.Field("function")).ends_with("BlockSpec"); }

// What an element of in_specs stands for: the BlockSpec call if it can be reached, else what is written there.
Node SpecOf(const Node& element) {
  Node spec = Resolve(element);
  if (!spec) return element;
  if (IsSpecCall(spec)) return spec;
  return spec.Is("call") ? element : spec;
}

Node Pick(const Node& holder, const std::vector<size_t>& path, size_t depth = 0) {
  if (depth == path.size()) {
    if (const auto only = ElementsOf(holder); only && only->size() == 1) return SpecOf(only->front());
    return SpecOf(holder);
  }
  const std::optional<std::vector<Node>> elements = ElementsOf(holder);
  if (!elements) return IsSpecCall(Resolve(holder)) ? SpecOf(holder) : holder;
  if (path[depth] >= elements->size()) return holder;
  const Node element = (*elements)[path[depth]];
  return depth + 1 == path.size() ? SpecOf(element) : Pick(element, path, depth + 1);
}

Node PairValue(const Node& dictionary, std::string_view name) {
  for (const Node& pair : dictionary.NamedChildren()) {
    if (!pair.Is("pair")) continue;
    std::string_view key = pair.Field("key").text();
    if (key.size() >= 2) key = key.substr(1, key.size() - 2);
    if (key == name) return pair.Field("value");
  }
  return {};
}

}  // namespace

std::string_view LastName(const Node& expression) {
  if (expression.Is("identifier")) return expression.text();
  if (expression.Is("attribute")) return expression.Field("attribute").text();
  return {};
}

Node CallArguments::Keyword(std::string_view name) const {
  for (const auto& [key, value] : keywords) {
    if (key == name) return value;
  }
  return {};
}

CallArguments ArgumentsOf(const Node& call) {
  CallArguments arguments;
  for (const Node& argument : call.Field("arguments").NamedChildren()) {
    if (argument.Is("keyword_argument")) {
      arguments.keywords.emplace_back(argument.Field("name").text(), argument.Field("value"));
    } else if (argument.Is("dictionary_splat")) {
      const std::vector<Node> inner = argument.NamedChildren();
      if (!inner.empty()) arguments.splats.push_back(inner.front());
    } else if (!argument.Is("comment")) {
      arguments.positional.push_back(argument);
    }
  }
  return arguments;
}

Node Resolve(const Node& expression) {
  Node node = Unwrapped(expression);
  for (int i = 0; i < kDepth && node.Is("identifier"); ++i) {
    const Binding binding = Lookup(node, node.text());
    if (binding.function) return binding.function;
    if (!binding.value) return node;
    node = Unwrapped(binding.value);
  }
  return node;
}

Node ResolveFunction(const Node& expression) {
  Node node = Resolve(expression);
  for (int i = 0; i < kDepth && node.Is("call"); ++i) {
    const CallArguments arguments = ArgumentsOf(node);
    if (arguments.positional.empty()) return {};  // jax.named_call(kernel), functools.partial(kernel, …)
    node = Resolve(arguments.positional.front());
  }
  return node.Is("function_definition") || node.Is("lambda") ? node : Node();
}

std::optional<OperandPath> ParseOperandPath(std::string_view text) {
  OperandPath operand;
  size_t at = 0;
  while (at < text.size() && text[at] != '[') ++at;
  const std::string_view head = text.substr(0, at);
  if (head != "args" && head != "outputs" && head != "output" && head != "input" && head != "inputs")
    return std::nullopt;
  operand.output = head.starts_with("output");
  while (at < text.size() && text[at] == '[') {
    const size_t close = text.find(']', at);
    if (close == std::string_view::npos) break;
    const std::string index(text.substr(at + 1, close - at - 1));
    if (index.empty() || index.find_first_not_of("0123456789") != std::string::npos) break;
    operand.path.push_back(std::strtoul(index.c_str(), nullptr, 10));
    at = close + 1;
  }
  return operand;
}

std::optional<std::vector<Node>> ElementsOf(const Node& list) {
  const Node node = Resolve(list);
  if (node.Is("list") || node.Is("tuple") || node.Is("expression_list")) {
    std::vector<Node> elements;
    for (const Node& child : node.NamedChildren()) {
      if (child.Is("list_splat")) {
        const std::vector<Node> inner = child.NamedChildren();
        const auto more = inner.empty() ? std::nullopt : ElementsOf(inner.front());
        if (!more) return std::nullopt;
        elements.insert(elements.end(), more->begin(), more->end());
      } else {
        elements.push_back(child);
      }
    }
    return elements;
  }
  if (node.Is("call") && (LastName(node.Field("function")) == "tuple" || LastName(node.Field("function")) == "list")) {
    const CallArguments arguments = ArgumentsOf(node);
    if (arguments.positional.size() == 1) return ElementsOf(arguments.positional.front());
  }
  if (!node.Is("binary_operator")) return std::nullopt;
  const Node left = node.Field("left");
  const Node right = node.Field("right");
  const std::string_view sign = node.Field("operator").text();
  if (sign == "+") {
    auto first = ElementsOf(left);
    const auto second = ElementsOf(right);
    if (!first || !second) return std::nullopt;
    first->insert(first->end(), second->begin(), second->end());
    return first;
  }
  if (sign == "*") {
    const auto repeated = ElementsOf(left);
    const Node times = Resolve(right);
    if (!repeated || !times.Is("integer") || times.text().size() > 3) return std::nullopt;
    std::vector<Node> elements;
    const int count = std::atoi(std::string(times.text()).c_str());
    for (int i = 0; i < count; ++i) elements.insert(elements.end(), repeated->begin(), repeated->end());
    return elements;
  }
  return std::nullopt;
}

PallasCallSite PallasCallSite::Traced(Node kernel, std::string function) const {
  PallasCallSite traced = *this;
  traced.kernel_ = kernel;
  traced.function_ = std::move(function);
  return traced;
}

Node PallasCallSite::Invocation() const {
  const Node up = call_.parent();
  return up.Is("call") && up.Field("function") == call_ ? up : Node();
}

Node PallasCallSite::ArgumentIn(const Node& call, std::string_view name, int depth) const {
  if (!call || depth > 3) return {};
  if (call.Is("dictionary")) {
    if (const Node value = PairValue(call, name)) return value;
    return {};
  }
  if (!call.Is("call")) return {};
  const CallArguments arguments = ArgumentsOf(call);
  if (const Node value = arguments.Keyword(name)) return value;
  for (const char* holder : {"grid_spec", "compiler_params"}) {
    if (const Node inner = arguments.Keyword(holder)) {
      if (const Node value = ArgumentIn(Resolve(inner), name, depth + 1)) return value;
    }
  }
  for (const Node& splat : arguments.splats) {
    const Node resolved = Resolve(splat);
    if (!resolved.Is("identifier")) {
      if (const Node value = ArgumentIn(resolved, name, depth + 1)) return value;
      continue;
    }
    // **options of the function around: what its callers in this file hand over.
    const Binding binding = Lookup(resolved, resolved.text());
    if (const Node value = FromCallers(binding.parameter, name, std::nullopt, depth + 1)) return value;
  }
  return {};
}

Node PallasCallSite::FromCallers(const Node& function, std::string_view name, std::optional<size_t> position,
                                 int depth) const {
  if (!function.Is("function_definition")) return {};
  const std::string_view wrapper = function.Field("name").text();
  std::vector<std::pair<Node, Node>> handed;  // call, value
  Walk(RootOf(call_), [&](const Node& node) {
    if (!node.Is("call") || LastName(node.Field("function")) != wrapper) return true;
    Node value = ArgumentIn(node, name, depth);
    const CallArguments arguments = ArgumentsOf(node);
    if (!value && position && *position < arguments.positional.size()) value = arguments.positional[*position];
    if (value) handed.emplace_back(node, value);
    return true;
  });
  const auto keep = [&](const auto& is_it) {
    std::vector<std::pair<Node, Node>> kept;
    std::copy_if(handed.begin(), handed.end(), std::back_inserter(kept), [&](const auto& h) { return is_it(h.first); });
    if (!kept.empty()) handed = std::move(kept);
  };
  if (handed.size() > 1 && !function_.empty()) {
    keep([&](const Node& call) {
      for (Node up = call.parent(); up; up = up.parent()) {
        if (up.Is("function_definition") && up.Field("name").text() == function_) return true;
      }
      return false;
    });
  }
  if (handed.size() > 1 && kernel_) {
    keep([&](const Node& call) {
      const CallArguments arguments = ArgumentsOf(call);
      return std::any_of(arguments.positional.begin(), arguments.positional.end(), [&](const Node& argument) {
        const Node definition = ResolveFunction(argument);
        return definition && definition == kernel_;
      });
    });
  }
  return handed.size() == 1 ? handed.front().second : Node();
}

Node PallasCallSite::Argument(std::string_view name) const {
  const Node value = ArgumentIn(call_, name, 0);
  const Node resolved = Resolve(value);
  if (!resolved.Is("identifier")) return value;
  const Binding binding = Lookup(resolved, resolved.text());
  if (!binding.parameter.Is("function_definition")) return value;
  const std::vector<Node> parameters = binding.parameter.Field("parameters").NamedChildren();
  std::optional<size_t> position;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Node named = parameters[i].Is("identifier") ? parameters[i] : parameters[i].Field("name");
    if (named.text() == resolved.text()) position = i;
  }
  const Node handed = FromCallers(binding.parameter, resolved.text(), position, 1);
  return handed ? handed : value;
}

Node PallasCallSite::Kernel() const {
  if (call_.parent().Is("decorator")) return call_.parent().parent().Field("definition");
  const CallArguments arguments = ArgumentsOf(call_);
  size_t index = 0;
  if (LastName(call_.Field("function")) == "partial") index = 1;  // functools.partial(pl.pallas_call, kernel)
  Node kernel = arguments.Keyword("kernel");
  if (arguments.positional.size() > index) kernel = arguments.positional[index];
  const Node definition = kernel ? ResolveFunction(kernel) : Node();
  return definition ? definition : kernel_;
}

bool PallasCallSite::HasScalarPrefetch() const { return static_cast<bool>(Argument("num_scalar_prefetch")); }

size_t PallasCallSite::PrefetchCount() const {
  const Node count = Resolve(Argument("num_scalar_prefetch"));
  return count.Is("integer") && count.text().size() < 4 ? std::strtoul(std::string(count.text()).c_str(), nullptr, 10)
                                                        : 0;
}

Node PallasCallSite::BlockSpec(const OperandPath& operand) const {
  const Node specs = Argument(operand.output ? "out_specs" : "in_specs");
  return specs ? Pick(specs, operand.path) : Node();
}

Node PallasCallSite::IndexMap(const Node& block_spec) {
  if (!IsSpecCall(block_spec)) return {};
  const CallArguments arguments = ArgumentsOf(block_spec);
  Node map = arguments.Keyword("index_map");
  if (!map && arguments.positional.size() > 1) map = arguments.positional[1];
  return map ? ResolveFunction(map) : Node();
}

std::vector<Node> PallasCallSite::BlockSpecs() const {
  std::vector<Node> specs;
  for (const char* name : {"in_specs", "out_specs"}) {
    const Node argument = Argument(name);
    if (!argument) continue;
    if (const auto elements = ElementsOf(argument)) {
      for (const Node& element : *elements) specs.push_back(SpecOf(element));
    } else {
      specs.push_back(SpecOf(argument));
    }
  }
  return specs;
}

Node PallasCallSite::Scratch(size_t index) const {
  const Node scratch = Argument("scratch_shapes");
  if (!scratch) return {};
  const auto elements = ElementsOf(scratch);
  return elements && index < elements->size() ? (*elements)[index] : scratch;
}

std::vector<PallasCallSite> FindPallasCallSites(const kernels::Tree& tree) {
  std::vector<PallasCallSite> sites;
  Walk(tree.root(), [&](const Node& node) {
    if (CallsPallas(node)) sites.emplace_back(node);
    return true;
  });
  return sites;
}

}  // namespace kernelwright::diagnose
