// The edits that several rules make: scratch, guards, compiler parameters; see kernel_view.h.
#include <algorithm>

#include "daemon/kernels/compiler_params.h"
#include "daemon/kernels/literals.h"
#include "daemon/kernels/rewrite/kernel_view.h"

namespace kernelwright::rewrite {
namespace {

// The name that the kernel has for the step of an axis, else the call.
std::string StepText(const KernelView& view, Rewriter& builder, int axis) {
  for (const Node& statement : Statements(view.body())) {
    if (!statement.Is("expression_statement")) continue;
    const auto parts = statement.NamedChildren();
    if (parts.size() != 1 || !parts.front().Is("assignment")) continue;
    const Node left = parts.front().Field("left");
    if (left.Is("identifier") && StepAxis(view, parts.front().Field("right")) == axis &&
        view.source.Resolve(left) == parts.front().Field("right")) {
      return std::string(left.text());
    }
    if (left.Is("pattern_list")) {
      for (const Node& name : left.NamedChildren()) {
        if (name.Is("identifier") && StepAxis(view, name) == axis) return std::string(name.text());
      }
    }
  }
  return builder.Pl() + ".program_id(" + std::to_string(axis) + ")";
}

// Adds an argument behind another one, in its style: on a line of its own where that one is.
void AddArgumentAfter(const KernelView& view, Rewriter& builder, const Node& argument, const std::string& text) {
  const std::string& source = view.source.text();
  const size_t newline = source.rfind('\n', argument.begin());
  const size_t line = newline == std::string::npos ? 0 : newline + 1;
  const std::string before = source.substr(line, argument.begin() - line);
  const bool own_line = before.find_first_not_of(" \t") == std::string::npos;
  builder.Insert(argument.end(), (own_line ? "," + view.source.Newline() + before : ", ") + text);
}

// The block shape of a reference as written where the call is, without squeezed dimensions; empty when it is not there.
std::string WrittenShape(const KernelView& view, const Ref& ref) {
  const Node shape = ref.spec ? diagnose::BlockShape(ref.spec) : Node();
  if (!shape || !diagnose::IsSequence(shape)) return "";
  if (!diagnose::Contains(view.source.Function(view.launch.call), shape)) return "";
  std::vector<std::string> parts;
  for (const Node& element : diagnose::Elements(shape)) {
    if (element.Is("none")) continue;
    if (element.Is("call")) return "";  // pl.Element(…), pl.Squeezed()
    parts.emplace_back(element.text());
  }
  if (parts.size() != ref.type.dims.size()) return "";
  std::string text = "(";
  for (size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : ", ") + parts[i];
  return text + (parts.size() == 1 ? ",)" : ")");
}

}  // namespace

std::string Rewriter::Jnp() {
  std::string name = FixBuilder::Jnp();
  if (name.find('.') == std::string::npos) return name;
  const kernels::Import* anchor = nullptr;
  for (const kernels::Import& entry : view_.source.file().imports()) {
    if (entry.top_level && entry.name.empty() && entry.module == "jax") anchor = &entry;
  }
  if (anchor == nullptr || diagnose::Mentions(view_.source.root(), "jnp")) return name;
  if (!imported_) Insert(anchor->range.end, view_.source.Newline() + "import jax.numpy as jnp");
  imported_ = true;
  return "jnp";
}

std::string BlockShapeText(const KernelView& view, const std::vector<int64_t>& dims,
                           const std::set<std::string>& first) {
  for (const bool preferred : {true, false}) {
    for (const Ref& ref : view.refs) {
      if (ref.block == nullptr || first.contains(ref.name) != preferred || ref.type.dims != dims) continue;
      const std::string text = WrittenShape(view, ref);
      if (!text.empty()) return text;
    }
  }
  return ShapeText(dims);
}

std::string FreshName(const KernelView& view, const std::string& base, const std::set<std::string>& taken) {
  const auto used = [&](const std::string& name) {
    return taken.contains(name) || diagnose::Mentions(view.source.root(), name);
  };
  if (!used(base)) return base;
  for (int number = 2;; ++number) {
    const std::string name = base + "_" + std::to_string(number);
    if (!used(name)) return name;
  }
}

std::string LastStepText(const KernelView& view, Rewriter& builder, int axis) {
  return StepText(view, builder, axis) + " == " + builder.Pl() + ".num_programs(" + std::to_string(axis) + ") - 1";
}

std::string FirstStepText(const KernelView& view, Rewriter& builder, int axis) {
  return StepText(view, builder, axis) + " == 0";
}

bool AddScratch(const KernelView& view, Rewriter& builder, const std::vector<NewScratch>& scratch) {
  const Node call = view.launch.call;
  const Node spec_call = view.launch.spec_call;
  std::vector<std::string> shapes;
  std::string names;
  for (const NewScratch& entry : scratch) {
    shapes.push_back(builder.Pltpu() + ".VMEM(" + entry.shape + ", " + entry.dtype + ")");
    names += ", " + entry.name;
  }
  const auto joined = [&](const std::string& between) {
    std::string text;
    for (const std::string& shape : shapes) text += (text.empty() ? "" : between) + shape;
    return text;
  };
  Node given = diagnose::Keyword(spec_call, "scratch_shapes");
  if (!given) given = diagnose::Keyword(call, "scratch_shapes");
  if (given) {
    const Node list = diagnose::StripParentheses(given);
    if (!diagnose::IsSequence(list)) return false;
    const auto elements = list.NamedChildren();
    if (elements.empty()) {
      builder.Insert(list.begin() + 1, joined(", ") + (list.Is("tuple") ? "," : ""));
    } else {
      const bool own_line = elements.back().row() > list.row();
      const std::string between = own_line ? "," + view.source.Newline() + view.source.Indent(elements.back()) : ", ";
      builder.Insert(elements.back().end(), between + joined(between));
    }
  } else {
    const Node after = diagnose::KeywordArgument(spec_call, "out_specs");
    std::string argument = "scratch_shapes=[" + joined(", ") + "]";
    const std::string indent = view.source.Indent(after ? after : call);
    constexpr size_t kColumns = 100;
    if (after && shapes.size() > 1 && indent.size() + argument.size() > kColumns) {
      const std::string inner = view.source.Newline() + indent + "    ";
      argument = "scratch_shapes=[" + inner + joined("," + inner) + "," + view.source.Newline() + indent + "]";
    }
    if (after) {
      AddArgumentAfter(view, builder, after, argument);
    } else {
      builder.AddArgument(spec_call, argument);
    }
  }
  // Behind the last reference among the parameters.
  Node last;
  for (const Node& parameter : view.kernel().Field("parameters").NamedChildren()) {
    const bool named = parameter.Is("identifier") || parameter.Is("typed_parameter");
    if (named && Uses(parameter, view.refs.back().name)) last = parameter;
  }
  if (!last) return false;
  builder.Insert(last.end(), names);
  return true;
}

void BlankLineBefore(const KernelView& view, Rewriter& builder, const Node& statement) {
  const std::string& text = view.source.text();
  const auto siblings = Statements(statement.parent());
  if (siblings.empty() || siblings.front() == statement) return;
  const size_t newline = text.rfind('\n', statement.begin());
  if (newline == std::string::npos || newline == 0) return;
  const size_t before = text.rfind('\n', newline - 1);
  const size_t start = before == std::string::npos ? 0 : before + 1;
  if (text.find_first_not_of(" \t\r\n", start) >= newline) return;  // there is one
  builder.Insert(static_cast<uint32_t>(newline + 1), view.source.Newline());
}

void Guarded(const KernelView& view, Rewriter& builder, const Node& first, const Node& last,
             const std::string& condition) {
  const std::string indent = view.source.Indent(first);
  const std::string newline = view.source.Newline();
  const std::string& text = view.source.text();
  BlankLineBefore(view, builder, first);
  builder.Insert(first.begin(), "@" + builder.Pl() + ".when(" + condition + ")" + newline + indent +
                                    "def _():" + newline + indent + "    ");
  for (uint32_t at = first.begin(); at < last.end(); ++at) {
    if (text[at] == '\n' && at + 1 < last.end() && text[at + 1] != '\n' && text[at + 1] != '\r') {
      builder.Insert(at + 1, "    ");
    }
  }
}

std::string DtypeText(Rewriter& builder, const std::string& dtype) { return builder.Jnp() + "." + dtype; }

std::string ShapeText(const std::vector<int64_t>& dims) {
  std::string text = "(";
  for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  return text + (dims.size() == 1 ? ",)" : ")");
}

std::vector<kernels::TextEdit> ParamsEdits(const KernelView& view,
                                           const std::optional<std::vector<std::string>>& semantics,
                                           std::optional<int64_t> vmem_limit_bytes) {
  kernels::Reached reached;
  for (const kernels::FunctionInfo& function : view.source.file().functions()) {
    if (function.range_with_decorators.begin <= view.launch.call.begin() &&
        view.launch.call.end() <= function.range_with_decorators.end) {
      reached.functions.push_back({&view.source.file(), &function});
      break;
    }
  }
  for (const kernels::CompilerParamsSite& site : kernels::FindCompilerParams(reached)) {
    if (site.call.begin != view.launch.call.begin()) continue;
    return kernels::CompilerParamsEdits(site, {semantics, vmem_limit_bytes});
  }
  return {};
}

}  // namespace kernelwright::rewrite
