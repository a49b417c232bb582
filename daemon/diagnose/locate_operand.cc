// See locate_operand.h.
#include "daemon/diagnose/locate_operand.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace kernelwright::diagnose {
namespace {

using kernels::Node;

size_t InputCount(const PallasCall& call) {
  return static_cast<size_t>(
      std::count_if(call.blocks.begin(), call.blocks.end(), [](const BlockMapping& b) { return !b.is_output; }));
}

// The operand that a kernel's parameter is; scratch is none.
std::optional<OperandPath> OperandOfRef(const std::string& ref, const PallasCallSite& site) {
  const std::vector<std::string> names = KernelParameters(site.Kernel());
  const auto found = std::find(names.begin(), names.end(), ref);
  const auto inputs = ElementsOf(site.Argument("in_specs"));
  if (found == names.end() || !inputs) return std::nullopt;
  const size_t position = static_cast<size_t>(found - names.begin());
  const size_t prefetch = site.PrefetchCount();
  if (position < prefetch) return std::nullopt;
  const size_t index = position - prefetch;
  if (index < inputs->size()) return OperandPath{false, {index}};
  return OperandPath{true, {index - inputs->size()}};
}

double BytesOf(std::string_view dtype) {
  const size_t digits = dtype.find_first_of("0123456789");
  if (digits == std::string_view::npos) return dtype == "bool" ? 1 : 0;
  return std::strtod(std::string(dtype.substr(digits)).c_str(), nullptr) / 8;
}

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() < 6 && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

double BlockBytes(const BlockMapping& block) {
  double bytes = BytesOf(block.array.dtype);
  for (const BlockDim& dim : block.block) bytes *= static_cast<double>(std::max<int64_t>(dim.size, 1));
  return bytes;
}

std::optional<OperandPath> OperandOf(const Captures& captures, const PallasCallSite& site, const PallasCall* call,
                                     bool largest_if_unnamed) {
  if (const auto named = captures.find("operand"); named != captures.end()) {
    std::optional<OperandPath> operand;
    if (IsNumber(named->second)) {
      const auto kind = captures.find("operand_kind");
      operand = OperandPath{kind != captures.end() && kind->second == "output",
                            {std::strtoul(named->second.c_str(), nullptr, 10)}};
    } else {
      operand = ParseOperandPath(named->second);
      if (!operand) return OperandOfRef(named->second, site);
    }
    const size_t prefetch = call == nullptr ? site.PrefetchCount() : static_cast<size_t>(call->num_scalar_prefetch);
    if (!operand->output && !operand->path.empty() && operand->path.front() >= prefetch) {
      operand->path.front() -= prefetch;
    }
    return operand;
  }
  if (!largest_if_unnamed || call == nullptr || call->blocks.empty()) return std::nullopt;
  size_t largest = 0;
  for (size_t i = 1; i < call->blocks.size(); ++i) {
    if (BlockBytes(call->blocks[i]) > BlockBytes(call->blocks[largest])) largest = i;
  }
  OperandPath operand;
  operand.output = call->blocks[largest].is_output;
  operand.path = {operand.output ? largest - InputCount(*call) : largest};
  return operand;
}

std::vector<std::string> KernelParameters(const Node& kernel) {
  std::vector<std::string> names;
  for (const Node& parameter : kernel.Field("parameters").NamedChildren()) {
    if (parameter.Is("identifier")) {
      names.emplace_back(parameter.text());
    } else if (parameter.Is("typed_parameter")) {
      const std::vector<Node> inner = parameter.NamedChildren();
      if (inner.empty() || !inner.front().Is("identifier")) return {};
      names.emplace_back(inner.front().text());
    } else if (parameter.Is("default_parameter") || parameter.Is("typed_default_parameter")) {
      names.emplace_back(parameter.Field("name").text());
    } else if (parameter.Is("keyword_separator")) {
      break;
    } else if (!parameter.Is("comment")) {
      return {};
    }
  }
  return names;
}

std::string OperandName(const OperandPath& operand, const PallasCallSite& site, const PallasCall* call) {
  const size_t index = operand.path.empty() ? 0 : operand.path.front();
  std::string text = operand.output ? "output " : "input ";
  text += std::to_string(index);
  size_t position = index + site.PrefetchCount();
  if (operand.output) {
    if (call != nullptr) {
      position += InputCount(*call);
    } else if (const auto inputs = ElementsOf(site.Argument("in_specs"))) {
      position += inputs->size();
    } else if (site.Invocation()) {
      position = index + ArgumentsOf(site.Invocation()).positional.size();
    } else {
      return text;
    }
  }
  const std::vector<std::string> names = KernelParameters(site.Kernel());
  if (operand.path.size() <= 1 && position < names.size()) text += " (`" + names[position] + "`)";
  return text;
}

}  // namespace kernelwright::diagnose
