// Parts of a pallas_call that an error is about: a BlockSpec, an index map, a scratch shape, the kernel's parameters.
// See locate.h.
#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/text.h"
#include "daemon/diagnose/locate.h"
#include "daemon/diagnose/locate_operand.h"

namespace kernelwright::diagnose {
namespace {

using kernels::Node;

std::string Captured(const Captures& captures, const std::string& name) {
  const auto found = captures.find(name);
  return found == captures.end() ? std::string() : found->second;
}

size_t Number(const std::string& text, size_t fallback) {
  return text.empty() || text.find_first_not_of("0123456789") != std::string::npos
             ? fallback
             : std::strtoul(text.c_str(), nullptr, 10);
}

size_t ParameterCount(const Node& function) {
  size_t count = 0;
  for (const Node& parameter : function.Field("parameters").NamedChildren()) count += parameter.Is("comment") ? 0 : 1;
  return count;
}

// The lambda or function that starts on a line; null when there is none.
Node FunctionAt(const LocatedFile& file, int line) {
  Node found;
  Walk(file.source().tree().root(), [&](const Node& node) {
    if (found || !file.Covers(node, line)) return false;
    if ((node.Is("lambda") || node.Is("function_definition")) && node.row() + 1 == line) found = node;
    return true;
  });
  return found;
}

// First return statement of a function that gives a value, inner functions left out.
Node ReturnWithValue(const Node& function) {
  Node found;
  Walk(function.Field("body"), [&](const Node& node) {
    if (found || node.Is("function_definition") || node.Is("lambda")) return false;
    if (node.Is("return_statement") && !node.NamedChildren().empty()) found = node;
    return true;
  });
  return found;
}

// First name in a kernel's body that a call outside of it made: what it can have captured.
Node CapturedName(const Node& kernel) {
  std::set<std::string_view> own;
  Walk(kernel, [&](const Node& node) {
    if (node.Is("parameters") || node.Is("lambda_parameters")) {
      Walk(node, [&](const Node& inner) {
        if (inner.Is("identifier")) own.insert(inner.text());
        return true;
      });
    }
    if (node.Is("assignment") && node.Field("left").Is("identifier")) own.insert(node.Field("left").text());
    return true;
  });
  Node found;
  Walk(kernel.Field("body"), [&](const Node& node) {
    if (found) return false;
    if (node.Is("attribute")) return true;
    const Node up = node.parent();
    const bool is_name =
        node.Is("identifier") && !own.contains(node.text()) && !(up.Is("attribute") && up.Field("attribute") == node) &&
        !(up.Is("keyword_argument") && up.Field("name") == node) && !(up.Is("call") && up.Field("function") == node);
    if (!is_name) return true;
    const Node value = Resolve(node);
    const bool computed = value.Is("call") || value.Is("binary_operator") || value.Is("subscript");
    // A parameter of the function around has no value to look at, and what a traced function takes is traced.
    if (computed || (value.Is("identifier") && value == node && !node.parent().Is("attribute"))) {
      const std::string_view name = node.text();
      if (computed || !(name == "jnp" || name == "jax" || name == "pl" || name == "pltpu" || name == "lax"))
        found = node;
    }
    return true;
  });
  return found;
}

// The scratch buffer of a shape ("8192,8192"); without one that fits, the first in VMEM.
size_t ScratchIndex(const std::string& shape, const PallasCall* call, const PallasCallSite& written) {
  for (size_t i = 0; call != nullptr && i < call->scratch.size(); ++i) {
    std::vector<std::string> dims;
    for (const int64_t dim : call->scratch[i].dims) dims.push_back(std::to_string(dim));
    if (Join(dims, ",") == shape) return i;
  }
  const auto elements = ElementsOf(written.Argument("scratch_shapes"));
  for (size_t i = 0; elements && i < elements->size(); ++i) {
    if ((*elements)[i].text().find("VMEM") != std::string_view::npos) return i;
  }
  return 0;
}

}  // namespace

std::optional<Place> Locator::IndexMapPlace(const Site& site, const Captures& captures) const {
  const auto operand = OperandOf(captures, site.written, nullptr, false);
  const Node spec = operand ? site.written.BlockSpec(*operand) : Node();
  const Node of_spec = spec ? PallasCallSite::IndexMap(spec) : Node();
  const int line = static_cast<int>(Number(Captured(captures, "map_line"), 0));
  if (const LocatedFile* file = FileOf(Captured(captures, "map_file")); file != nullptr && line > 0) {
    if (of_spec && file == site.file && of_spec.row() + 1 == line) return file->PlaceOfHead(of_spec);
    if (const Node function = FunctionAt(*file, line)) return file->PlaceOfHead(function);
    return file->PlaceOfLine(line);
  }
  if (of_spec) return site.file->PlaceOfHead(of_spec);
  if (spec) return site.file->PlaceOf(spec);
  // Python's own text names the function and how many arguments it takes: the first map that is so. jax asks them in
  // order.
  std::string name = Captured(captures, "function");
  name = name.substr(name.rfind('.') == std::string::npos ? 0 : name.rfind('.') + 1);
  const size_t takes = Number(Captured(captures, "takes"), 0);
  std::vector<Node> maps;
  for (const Node& block_spec : site.written.BlockSpecs()) {
    if (const Node map = PallasCallSite::IndexMap(block_spec)) maps.push_back(map);
  }
  if (maps.empty() && name != "<lambda>" && !name.empty()) {
    const auto function = site.file->source().FindFunction(Captured(captures, "function"));
    if (function) return site.file->PlaceOfLine(function->position.line);
  }
  for (const Node& map : maps) {
    const bool named = map.Is("lambda") ? name == "<lambda>" || name.empty() : map.Field("name").text() == name;
    if (named && (takes == 0 || ParameterCount(map) == takes)) return site.file->PlaceOfHead(map);
  }

  return std::nullopt;
}

std::optional<Place> Locator::Anchored(const Entry& entry, const Site& site, const PallasCall* call,
                                       const Captures& captures) const {
  const PallasCallSite& written = site.written;
  Node node;
  switch (entry.anchor) {
    case Anchor::kFrame:
      return std::nullopt;
    case Anchor::kCall:
      node = written.call().Field("function");
      break;
    case Anchor::kBlockSpec: {
      const auto operand = OperandOf(captures, written, call, true);
      if (operand) node = written.BlockSpec(*operand);
      break;
    }
    case Anchor::kIndexMap:
      return IndexMapPlace(site, captures);
    case Anchor::kScratch:
      node = written.Scratch(ScratchIndex(Captured(captures, "scratch_shape"), call, written));
      break;
    case Anchor::kOperand:
      if (const Node invocation = written.Invocation()) {
        const CallArguments arguments = ArgumentsOf(invocation);
        const size_t index = Number(Captured(captures, "operand"), 0);
        if (index < arguments.positional.size()) node = arguments.positional[index];
      }
      break;
    case Anchor::kKernel:
      node = written.Kernel();
      break;
    case Anchor::kKernelParameters:
      node = written.Kernel().Field("parameters");
      break;
    case Anchor::kKernelReturn:
      node = ReturnWithValue(written.Kernel());
      if (!node) node = written.Kernel();
      break;
    case Anchor::kKernelCapture:
      node = CapturedName(written.Kernel());
      if (!node) node = written.Kernel();
      break;
    case Anchor::kArgument:
      node = written.Argument(entry.argument);
      break;
  }
  for (const auto& file : files_) {
    if (node && file->Holds(node)) return file->PlaceOfHead(node);
  }
  return std::nullopt;
}

}  // namespace kernelwright::diagnose
