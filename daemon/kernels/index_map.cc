// A small interpreter of scalar integer graphs; see index_map.h.
#include "daemon/kernels/index_map.h"

#include <algorithm>
#include <map>
#include <string>

namespace kernelwright::kernels {
namespace {

using Value = std::optional<int64_t>;
using Environment = std::map<uint32_t, Value>;

std::vector<Value> EvaluateGraph(const Graph& graph, const std::vector<Value>& arguments, int depth);

Value Read(const Operand& operand, const Environment& environment) {
  if (operand.value) {
    const auto it = environment.find(*operand.value);
    return it == environment.end() ? std::nullopt : it->second;
  }
  if (const auto* integer = std::get_if<int64_t>(&operand.literal)) return *integer;
  if (const auto* flag = std::get_if<bool>(&operand.literal)) return *flag ? 1 : 0;
  return std::nullopt;
}

int64_t Wrapped(uint64_t value) { return static_cast<int64_t>(value); }

Value Apply(const std::string& name, const std::vector<Value>& in, const Operation& operation) {
  if (name == "select_n") {
    // The cases that are not chosen need not be computable.
    if (in.empty() || !in[0] || *in[0] < 0 || static_cast<size_t>(*in[0]) + 1 >= in.size()) return std::nullopt;
    return in[static_cast<size_t>(*in[0]) + 1];
  }
  if (std::any_of(in.begin(), in.end(), [](const Value& value) { return !value; }) || in.empty()) return std::nullopt;
  const int64_t a = *in[0];
  if (in.size() == 1) {
    if (name == "convert_element_type" || name == "copy" || name == "squeeze" || name == "reshape" ||
        name == "broadcast_in_dim" || name == "stop_gradient" || name == "multiple_of") {
      return a;
    }
    if (name == "neg") return Wrapped(-static_cast<uint64_t>(a));
    if (name == "abs") return a < 0 ? Wrapped(-static_cast<uint64_t>(a)) : a;
    if (name == "sign") return a > 0 ? 1 : (a < 0 ? -1 : 0);
    if (name == "not") return operation.outputs.empty() || operation.outputs[0].type.dtype != "bool" ? ~a : (a == 0);
    if (name == "integer_pow") {
      const auto power = operation.attributes.find("y");
      if (power == operation.attributes.end()) return std::nullopt;
      const auto* exponent = std::get_if<int64_t>(&power->second);
      if (exponent == nullptr || *exponent < 0 || *exponent > 64) return std::nullopt;
      uint64_t result = 1;
      for (int64_t i = 0; i < *exponent; ++i) result *= static_cast<uint64_t>(a);
      return Wrapped(result);
    }
    return std::nullopt;
  }
  const int64_t b = *in[1];
  if (in.size() == 3) {
    if (name == "clamp") return std::min(std::max(b, a), *in[2]);
    return std::nullopt;
  }
  if (name == "add" || name == "add_any") return Wrapped(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  if (name == "sub") return Wrapped(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  if (name == "mul") return Wrapped(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  if (name == "div" || name == "rem") {
    if (b == 0 || (b == -1 && a == INT64_MIN)) return std::nullopt;
    return name == "div" ? a / b : a % b;
  }
  if (name == "max") return std::max(a, b);
  if (name == "min") return std::min(a, b);
  if (name == "eq") return a == b;
  if (name == "ne") return a != b;
  if (name == "lt") return a < b;
  if (name == "le") return a <= b;
  if (name == "gt") return a > b;
  if (name == "ge") return a >= b;
  if (name == "and") return a & b;
  if (name == "or") return a | b;
  if (name == "xor") return a ^ b;
  if (name == "shift_left" && b >= 0 && b < 63) return Wrapped(static_cast<uint64_t>(a) << b);
  if ((name == "shift_right_arithmetic" || (name == "shift_right_logical" && a >= 0)) && b >= 0 && b < 63)
    return a >> b;
  return std::nullopt;
}

bool IsCall(const std::string& name) {
  return name == "pjit" || name == "jit" || name == "closed_call" || name == "core_call" || name == "custom_jvp_call" ||
         name == "custom_vjp_call" || name == "remat" || name == "checkpoint";
}

std::vector<Value> EvaluateGraph(const Graph& graph, const std::vector<Value>& arguments, int depth) {
  Environment environment;
  for (size_t i = 0; i < graph.inputs.size() && i < arguments.size(); ++i) {
    environment[graph.inputs[i].id] = arguments[i];
  }
  for (const Operation& operation : graph.operations) {
    std::vector<Value> in;
    in.reserve(operation.inputs.size());
    for (const Operand& operand : operation.inputs) in.push_back(Read(operand, environment));
    std::vector<Value> out;
    if (IsCall(operation.name) && !operation.regions.empty() && depth < 16) {
      out = EvaluateGraph(operation.regions[0], in, depth + 1);
    } else if (operation.name == "cond" && !in.empty() && in[0] && !operation.regions.empty() && depth < 16) {
      const auto last = static_cast<int64_t>(operation.regions.size()) - 1;
      const auto branch = static_cast<size_t>(std::clamp<int64_t>(*in[0], 0, last));
      out = EvaluateGraph(operation.regions[branch], {in.begin() + 1, in.end()}, depth + 1);
    } else {
      out.push_back(Apply(operation.name, in, operation));
    }
    for (size_t i = 0; i < operation.outputs.size(); ++i) {
      environment[operation.outputs[i].id] = i < out.size() ? out[i] : std::nullopt;
    }
  }
  std::vector<Value> results;
  results.reserve(graph.outputs.size());
  for (const Operand& output : graph.outputs) results.push_back(Read(output, environment));
  return results;
}

// Corners of the grid, and up to 32 positions along each axis from the first and from a corner in the middle.
std::vector<std::vector<int64_t>> SamplePositions(const std::vector<int64_t>& grid) {
  std::vector<int64_t> steps(grid.size());
  for (size_t a = 0; a < grid.size(); ++a) steps[a] = grid[a] < 0 ? 2 : grid[a];
  if (std::any_of(steps.begin(), steps.end(), [](int64_t n) { return n == 0; })) return {};
  std::vector<std::vector<int64_t>> positions;
  int64_t total = 1;
  for (const int64_t n : steps) total = total > 4096 / std::max<int64_t>(n, 1) ? 4097 : total * n;
  if (total <= 256) {
    std::vector<int64_t> position(steps.size(), 0);
    for (int64_t i = 0; i < total; ++i) {
      positions.push_back(position);
      for (size_t a = steps.size(); a-- > 0;) {
        if (++position[a] < steps[a]) break;
        position[a] = 0;
      }
    }
    return positions;
  }
  const size_t corners = size_t{1} << std::min<size_t>(steps.size(), 8);
  for (size_t corner = 0; corner < corners; ++corner) {
    std::vector<int64_t> position(steps.size(), 0);
    for (size_t a = 0; a < std::min<size_t>(steps.size(), 8); ++a) {
      if ((corner >> a & 1) != 0) position[a] = steps[a] - 1;
    }
    positions.push_back(std::move(position));
  }
  for (size_t a = 0; a < steps.size(); ++a) {
    const int64_t count = std::min<int64_t>(steps[a], 32);
    for (const bool middle : {false, true}) {
      std::vector<int64_t> position(steps.size(), 0);
      for (size_t b = 0; b < steps.size(); ++b) position[b] = middle ? steps[b] / 2 : 0;
      for (int64_t i = 0; i < count; ++i) {
        position[a] = count == steps[a] ? i : i * (steps[a] - 1) / (count - 1);
        positions.push_back(position);
      }
    }
  }
  return positions;
}

}  // namespace

std::vector<std::optional<int64_t>> EvaluateIndexMap(const BlockMapping& block, const std::vector<int64_t>& position) {
  std::vector<Value> arguments(position.begin(), position.end());
  return EvaluateGraph(block.index_map, arguments, 0);
}

std::vector<DimUse> AnalyzeBlock(const PallasCall& call, const BlockMapping& block) {
  std::vector<DimUse> uses(block.block.size());
  if (!block.has_index_map) return uses;
  const auto positions = SamplePositions(call.grid);
  if (positions.empty()) return uses;
  std::map<std::vector<int64_t>, std::vector<Value>> results;
  for (const auto& position : positions) {
    auto value = EvaluateIndexMap(block, position);
    value.resize(uses.size());
    results.emplace(position, std::move(value));
  }
  for (size_t d = 0; d < uses.size(); ++d) {
    DimUse& use = uses[d];
    use.known =
        std::all_of(results.begin(), results.end(), [&](const auto& item) { return item.second[d].has_value(); });
    if (!use.known) continue;
    use.first = *results.begin()->second[d];
    use.last = use.first;
    std::vector<bool> identity(call.grid.size(), true);
    for (const auto& [position, values] : results) {
      const int64_t index = *values[d];
      use.first = std::min(use.first, index);
      use.last = std::max(use.last, index);
      for (size_t a = 0; a < position.size(); ++a) {
        if (position[a] != index) identity[a] = false;
      }
    }
    // Dependence: two sampled positions that differ on one axis only and give different indices. With several grid
    // axes of one step no difference can show, which is right: such an axis moves nothing.
    for (size_t a = 0; a < call.grid.size(); ++a) {
      std::map<std::vector<int64_t>, int64_t> seen;
      for (const auto& [position, values] : results) {
        std::vector<int64_t> rest = position;
        rest[a] = 0;
        const auto [it, is_new] = seen.emplace(std::move(rest), *values[d]);
        if (!is_new && it->second != *values[d]) use.axes.insert(static_cast<int>(a));
      }
    }
    // An axis of one step has id 0, as a constant 0 has: the map itself has to tell them apart.
    const Operand* output = d < block.index_map.outputs.size() ? &block.index_map.outputs[d] : nullptr;
    for (size_t a = 0; a < call.grid.size(); ++a) {
      if (!identity[a]) continue;
      const bool direct = output != nullptr && output->value && a < block.index_map.inputs.size() &&
                          block.index_map.inputs[a].id == *output->value;
      if (direct || (use.axes.size() == 1 && use.axes.contains(static_cast<int>(a)))) {
        use.identity_axis = static_cast<int>(a);
        use.axes.insert(static_cast<int>(a));
        break;
      }
    }
  }
  return uses;
}

std::set<int> OutputAxes(const PallasCall& call) {
  std::optional<std::set<int>> common;
  for (const BlockMapping& block : call.blocks) {
    if (!block.is_output || !block.has_index_map) continue;
    std::set<int> used;
    for (const DimUse& use : AnalyzeBlock(call, block)) {
      if (use.known) used.insert(use.axes.begin(), use.axes.end());
    }
    if (!common) {
      common = std::move(used);
    } else {
      std::erase_if(*common, [&](int axis) { return !used.contains(axis); });
    }
  }
  return common.value_or(std::set<int>());
}

std::optional<std::set<int>> RevisitingAxes(const PallasCall& call) {
  bool any_output = false;
  for (const BlockMapping& block : call.blocks) {
    if (!block.is_output || !block.has_index_map) continue;
    any_output = true;
    for (const DimUse& use : AnalyzeBlock(call, block)) {
      if (!use.known) return std::nullopt;
    }
  }
  if (!any_output) return std::nullopt;
  const std::set<int> used = OutputAxes(call);
  std::set<int> revisiting;
  for (size_t a = 0; a < call.grid.size(); ++a) {
    if (!used.contains(static_cast<int>(a))) revisiting.insert(static_cast<int>(a));
  }
  return revisiting;
}

}  // namespace kernelwright::kernels
