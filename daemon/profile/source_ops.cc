// An operation belongs to its innermost frame in the user's code, which is where the compiler puts its location too.
#include "daemon/profile/source_ops.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace kernelwright::profile {
namespace {

constexpr std::array<std::string_view, 4> kCasts = {"convert_element_type", "bitcast_convert_type", "bitcast",
                                                    "reduce_precision"};
constexpr std::array<std::string_view, 16> kMoves = {
    "transpose",   "broadcast_in_dim", "reshape", "concatenate", "roll",          "gather", "rev",    "split",
    "expand_dims", "squeeze",          "pad",     "slice",       "dynamic_slice", "tile",   "repeat", "iota"};

bool IsUserFrame(const SourceSpan& span) {
  return span.line > 0 && span.file.find("site-packages") == std::string::npos;
}

}  // namespace

SourceOps::SourceOps(const Program* program) {
  if (program != nullptr) Add(program->main);
}

void SourceOps::Add(const Graph& graph) {
  for (const GraphValue& value : graph.inputs) dims_[value.id] = value.type.dims;
  for (const GraphConstant& constant : graph.constants) dims_[constant.value] = constant.type.dims;
  for (const Operation& operation : graph.operations) Add(operation);
}

void SourceOps::Add(const Operation& operation) {
  // Element-wise operations stretch operands of size 1 without an operation that says so.
  bool stretches = false;
  if (operation.outputs.size() == 1 && operation.name != "dot_general" && operation.pallas.empty()) {
    const std::vector<int64_t>& result = operation.outputs.front().type.dims;
    for (const Operand& operand : operation.inputs) {
      const auto found = operand.value ? dims_.find(*operand.value) : dims_.end();
      stretches |= found != dims_.end() && found->second.size() == result.size() && found->second != result;
    }
  }
  for (const GraphValue& value : operation.outputs) dims_[value.id] = value.type.dims;
  const auto span = std::find_if(operation.spans.begin(), operation.spans.end(), IsUserFrame);
  if (span != operation.spans.end()) {
    std::set<std::string>& names = lines_[{span->file, span->line}];
    names.insert(operation.name);
    if (stretches) names.insert("broadcast_in_dim");
    // A product whose result has another type than its operands converts as well.
    if (operation.name == "dot_general" && !operation.outputs.empty()) names.insert("convert_element_type");
  }
  for (const Graph& region : operation.regions) Add(region);
  for (const PallasCall& call : operation.pallas) Add(call.kernel);
}

bool SourceOps::HasCast(const std::string& file, int line) const {
  const auto found = lines_.find({file, line});
  return found != lines_.end() && std::any_of(kCasts.begin(), kCasts.end(), [&](std::string_view name) {
           return found->second.contains(std::string(name));
         });
}

bool SourceOps::HasRelayout(const std::string& file, int line) const {
  const auto found = lines_.find({file, line});
  if (found == lines_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [](const std::string& name) {
    return name.starts_with("reduce") || name.starts_with("arg") ||
           std::find(kMoves.begin(), kMoves.end(), name) != kMoves.end();
  });
}

}  // namespace kernelwright::profile
