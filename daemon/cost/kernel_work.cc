// A small shape inference over the kernel's body. Where an operation's rule is not known its result takes the sizes of
// an input of the same traced shape, else the traced sizes.
#include "daemon/cost/kernel_work.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "daemon/cost/dtype.h"

namespace kernelwright::cost {
namespace {

using Dims = std::vector<int64_t>;

double Elements(const Dims& dims) {
  double n = 1;
  for (const int64_t d : dims) n *= static_cast<double>(std::max<int64_t>(d, 0));
  return n;
}

bool OneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const Dims* Ints(const Operation& op, const char* name) {
  const auto it = op.attributes.find(name);
  return it == op.attributes.end() ? nullptr : std::get_if<std::vector<int64_t>>(&it->second);
}

std::optional<int64_t> Int(const Operation& op, const char* name) {
  const auto it = op.attributes.find(name);
  if (it == op.attributes.end()) return std::nullopt;
  const auto* value = std::get_if<int64_t>(&it->second);
  return value == nullptr ? std::nullopt : std::optional<int64_t>(*value);
}

std::string Text(const Operation& op, const char* name) {
  const auto it = op.attributes.find(name);
  if (it == op.attributes.end()) return {};
  const auto* value = std::get_if<std::string>(&it->second);
  return value == nullptr ? std::string() : *value;
}

// "(((1),(0)),((),()))" -> contracting dimensions left, right, batch dimensions left, right.
std::optional<std::array<std::vector<int64_t>, 4>> ParseDimensionNumbers(const std::string& text) {
  std::array<std::vector<int64_t>, 4> out;
  int depth = 0;
  size_t group = 0;
  int64_t number = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      number = std::max<int64_t>(number, 0) * 10 + (c - '0');
      if (number > 64) return std::nullopt;
      continue;
    }
    if (number >= 0) {
      if (depth != 3 || group >= 4) return std::nullopt;
      out[group].push_back(number);
      number = -1;
    }
    if (c == '(') ++depth;
    if (c == ')' && depth-- == 3) ++group;
  }
  if (group != 4) return std::nullopt;
  return out;
}

class Counter {
 public:
  explicit Counter(const std::vector<int64_t>& grid) : grid_(grid) {}

  void Seed(const GraphValue& value, Dims dims) { sizes_[value.id] = std::move(dims); }

  void Count(const Graph& graph, double times) {
    if (++depth_ > 64) return;
    for (const Operation& op : graph.operations) CountOp(op, times);
    --depth_;
  }

  StepWork& work() { return work_; }

 private:
  Dims SizesOf(const Operand& operand) const {
    if (!operand.value) return operand.literal_type.dims;
    const auto it = sizes_.find(*operand.value);
    return it == sizes_.end() ? Dims{} : it->second;
  }
  const TensorType* TypeOf(const Operand& operand) const {
    if (!operand.value) return &operand.literal_type;
    const auto it = types_.find(*operand.value);
    return it == types_.end() ? nullptr : &it->second;
  }

  void Define(const GraphValue& value, Dims dims) {
    sizes_[value.id] = std::move(dims);
    types_[value.id] = value.type;
  }

 public:
  void Declare(const GraphValue& value) { types_[value.id] = value.type; }

 private:
  // An input of the same traced shape lends its sizes.
  Dims Default(const Operation& op, const GraphValue& output) const {
    for (const Operand& operand : op.inputs) {
      const TensorType* type = TypeOf(operand);
      if (operand.value && type != nullptr && type->dims == output.type.dims) return SizesOf(operand);
    }
    return output.type.dims;
  }

  void CountOp(const Operation& op, double times) {
    if (!op.regions.empty()) return CountRegions(op, times);
    if (op.name == "program_id") {
      if (const auto axis = Int(op, "axis"); axis && !op.outputs.empty()) program_ids_[op.outputs[0].id] = *axis;
    }
    TrackCondition(op);
    for (const GraphValue& output : op.outputs) Define(output, OutputSizes(op, output));
    if (op.name == "dot_general") return CountProduct(op, times);
    if (op.name == "get" || op.name == "masked_load" || op.name == "load") {
      if (!op.outputs.empty()) work_.loaded_bytes += times * Bytes(op.outputs[0]);
      return;
    }
    if (OneOf(op.name, {"swap", "masked_swap", "store", "addupdate"})) {
      const double elements = op.inputs.size() > 1 ? Elements(SizesOf(op.inputs[1])) : 0;
      const TensorType* type = op.inputs.size() > 1 ? TypeOf(op.inputs[1]) : nullptr;
      const auto bits = type == nullptr ? std::nullopt : DtypeBits(type->dtype);
      work_.stored_bytes += times * elements * bits.value_or(32) / 8;
      return;
    }
    double elements = 0;
    for (const GraphValue& output : op.outputs) elements += Elements(SizesOf(Operand{output.id, {}, {}}));
    if (op.name.starts_with("reduce") || op.name.starts_with("arg") || op.name.starts_with("cum")) {
      const Dims in = op.inputs.empty() ? Dims{} : SizesOf(op.inputs[0]);
      const Dims* axes = Ints(op, "axes");
      const bool lanes =
          axes == nullptr || std::find(axes->begin(), axes->end(), static_cast<int64_t>(in.size()) - 1) != axes->end();
      (lanes ? work_.lane_elements : work_.vector_elements) += times * Elements(in);
    } else if (OneOf(op.name, {"transpose", "rev", "gather", "roll", "concatenate"})) {
      work_.lane_elements += times * elements;
    } else if (OneOf(op.name, {"exp", "exp2", "tanh", "log", "log1p", "logistic", "rsqrt", "sqrt", "erf", "sin", "cos",
                               "tan", "pow", "div", "expm1", "erf_inv"})) {
      work_.transcendental += times * elements;
    } else if (!OneOf(op.name, {"broadcast_in_dim", "reshape", "squeeze", "program_id", "num_programs", "iota",
                                "multiple_of", "stop_gradient", "copy"})) {
      work_.vector_elements += times * elements;
    }
  }

  double Bytes(const GraphValue& value) const {
    return Elements(SizesOf(Operand{value.id, {}, {}})) * DtypeBits(value.type.dtype).value_or(32) / 8;
  }

  Dims OutputSizes(const Operation& op, const GraphValue& output) const {
    const Dims& traced = output.type.dims;
    if (op.name == "dot_general" && op.inputs.size() == 2) {
      if (const auto numbers = ParseDimensionNumbers(Text(op, "dimension_numbers.structure"))) {
        const Dims left = SizesOf(op.inputs[0]);
        const Dims right = SizesOf(op.inputs[1]);
        const auto& [lc, rc, lb, rb] = *numbers;
        Dims out;
        for (const int64_t d : lb)
          out.push_back(d < static_cast<int64_t>(left.size()) ? left[static_cast<size_t>(d)] : 1);
        AppendFree(left, lc, lb, &out);
        AppendFree(right, rc, rb, &out);
        if (out.size() == traced.size()) return out;
      }
      return traced;
    }
    if (op.name == "broadcast_in_dim" && op.inputs.size() == 1) {
      Dims out = traced;
      const Dims in = SizesOf(op.inputs[0]);
      const TensorType* type = TypeOf(op.inputs[0]);
      const Dims* map = Ints(op, "broadcast_dimensions");
      if (map != nullptr && type != nullptr && map->size() == in.size() && type->dims.size() == in.size()) {
        for (size_t i = 0; i < in.size(); ++i) {
          const auto to = static_cast<size_t>((*map)[i]);
          if (to < out.size() && type->dims[i] == traced[to]) out[to] = in[i];
        }
      }
      return out;
    }
    if (op.name == "transpose" && op.inputs.size() == 1) {
      const Dims in = SizesOf(op.inputs[0]);
      const Dims* permutation = Ints(op, "permutation");
      if (permutation != nullptr && permutation->size() == in.size()) {
        Dims out;
        for (const int64_t p : *permutation) out.push_back(in[std::min(static_cast<size_t>(p), in.size() - 1)]);
        return out;
      }
    }
    if (op.name.starts_with("reduce") && op.inputs.size() == 1) {
      const Dims in = SizesOf(op.inputs[0]);
      if (const Dims* axes = Ints(op, "axes"); axes != nullptr) {
        Dims out;
        for (size_t i = 0; i < in.size(); ++i) {
          if (std::find(axes->begin(), axes->end(), static_cast<int64_t>(i)) == axes->end()) out.push_back(in[i]);
        }
        if (out.size() == traced.size()) return out;
      }
    }
    if ((op.name == "get" || op.name == "swap") && !op.inputs.empty()) {
      // The traced result keeps some of the ref's dimensions whole; those follow the new sizes.
      const TensorType* ref = TypeOf(op.inputs[0]);
      const Dims sizes = SizesOf(op.inputs[0]);
      if (ref != nullptr && ref->dims.size() == sizes.size()) {
        Dims out = traced;
        size_t from = 0;
        for (size_t i = 0; i < out.size(); ++i) {
          for (size_t j = from; j < ref->dims.size(); ++j) {
            if (ref->dims[j] != traced[i]) continue;
            out[i] = sizes[j];
            from = j + 1;
            break;
          }
        }
        return out;
      }
    }
    return Default(op, output);
  }

  static void AppendFree(const Dims& sizes, const Dims& contracting, const Dims& batch, Dims* out) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      const auto d = static_cast<int64_t>(i);
      if (std::find(contracting.begin(), contracting.end(), d) != contracting.end()) continue;
      if (std::find(batch.begin(), batch.end(), d) != batch.end()) continue;
      out->push_back(sizes[i]);
    }
  }

  void CountProduct(const Operation& op, double times) {
    if (op.inputs.size() != 2 || op.outputs.empty()) return;
    const Dims left = SizesOf(op.inputs[0]);
    const Dims right = SizesOf(op.inputs[1]);
    Product product;
    product.times = times;
    const TensorType* type = TypeOf(op.inputs[0]);
    product.dtype = type == nullptr ? "" : type->dtype;
    const auto numbers = ParseDimensionNumbers(Text(op, "dimension_numbers.structure"));
    const auto size = [](const Dims& dims, int64_t d) {
      return d < static_cast<int64_t>(dims.size()) ? static_cast<double>(dims[static_cast<size_t>(d)]) : 1.0;
    };
    if (numbers) {
      const auto& [lc, rc, lb, rb] = *numbers;
      for (const int64_t d : lc) product.k *= size(left, d);
      for (const int64_t d : lb) product.batch *= size(left, d);
      const double per_batch = std::max(product.batch * product.k, 1.0);
      product.m = Elements(left) / per_batch;
      product.n = Elements(right) / per_batch;
    } else {
      const double out = std::max(Elements(op.outputs[0].type.dims), 1.0);
      product.k = std::max(1.0, std::sqrt(Elements(left) * Elements(right) / out));
      product.m = Elements(left) / product.k;
      product.n = Elements(right) / product.k;
    }
    work_.products.push_back(product);
  }

  // How often a predicate holds, from comparisons of a grid position with a number; 1 when it cannot be told.
  void TrackCondition(const Operation& op) {
    if (op.outputs.size() != 1) return;
    const uint32_t id = op.outputs[0].id;
    if (OneOf(op.name, {"convert_element_type", "copy", "squeeze"}) && op.inputs.size() == 1 && op.inputs[0].value) {
      if (const auto it = share_.find(*op.inputs[0].value); it != share_.end()) share_[id] = it->second;
      if (const auto it = program_ids_.find(*op.inputs[0].value); it != program_ids_.end())
        program_ids_[id] = it->second;
      return;
    }
    if (OneOf(op.name, {"and", "or"}) && op.inputs.size() == 2 && op.inputs[0].value && op.inputs[1].value) {
      const auto a = share_.find(*op.inputs[0].value);
      const auto b = share_.find(*op.inputs[1].value);
      if (a == share_.end() || b == share_.end()) return;
      share_[id] = op.name == "and" ? a->second * b->second : std::min(1.0, a->second + b->second);
      return;
    }
    if (op.name == "not" && op.inputs.size() == 1 && op.inputs[0].value) {
      if (const auto it = share_.find(*op.inputs[0].value); it != share_.end()) share_[id] = 1 - it->second;
      return;
    }
    if (!OneOf(op.name, {"eq", "ne"})) return;
    for (const Operand& operand : op.inputs) {
      if (!operand.value) continue;
      const auto it = program_ids_.find(*operand.value);
      if (it == program_ids_.end() || it->second < 0 || it->second >= static_cast<int64_t>(grid_.size())) continue;
      const double extent = static_cast<double>(std::max<int64_t>(grid_[static_cast<size_t>(it->second)], 1));
      share_[id] = op.name == "eq" ? 1 / extent : 1 - 1 / extent;
    }
  }

  void Bind(const Graph& body, const Operation& op, size_t first) {
    for (size_t i = 0; i < body.inputs.size() && first + i < op.inputs.size(); ++i) {
      const Operand& operand = op.inputs[first + i];
      Declare(body.inputs[i]);
      Dims dims = SizesOf(operand);
      if (dims.size() != body.inputs[i].type.dims.size()) dims = body.inputs[i].type.dims;
      sizes_[body.inputs[i].id] = std::move(dims);
      if (!operand.value) continue;
      if (const auto it = share_.find(*operand.value); it != share_.end()) share_[body.inputs[i].id] = it->second;
      if (const auto it = program_ids_.find(*operand.value); it != program_ids_.end()) {
        program_ids_[body.inputs[i].id] = it->second;
      }
    }
  }

  void CountRegions(const Operation& op, double times) {
    if (op.name == "cond") {
      // branches[0] runs when the index is 0 (the predicate is false), the last one when it is true.
      double share = 1;
      bool known = false;
      if (!op.inputs.empty() && op.inputs[0].value) {
        if (const auto it = share_.find(*op.inputs[0].value); it != share_.end()) {
          share = it->second;
          known = true;
        }
      }
      for (size_t i = 0; i < op.regions.size(); ++i) {
        Bind(op.regions[i], op, 1);
        const bool last = i + 1 == op.regions.size();
        Count(op.regions[i], times * (known && op.regions.size() == 2 ? (last ? share : 1 - share) : 1.0));
      }
    } else if (op.name == "scan") {
      const auto length = Int(op, "length");
      if (!length) work_.has_unknown_loops = true;
      Bind(op.regions[0], op, 0);
      Count(op.regions[0], times * static_cast<double>(length.value_or(1)));
    } else if (op.name == "while") {
      work_.has_unknown_loops = true;
      for (size_t i = 0; i < op.regions.size(); ++i) {
        const auto skipped =
            i < op.region_names.size() && op.region_names[i] == "body_jaxpr" ? Int(op, "cond_nconsts") : 0;
        Bind(op.regions[i], op, static_cast<size_t>(skipped.value_or(0)));
        Count(op.regions[i], times);
      }
    } else {
      for (const Graph& region : op.regions) {
        Bind(region, op, 0);
        Count(region, times);
      }
      const Graph& body = op.regions[0];
      for (size_t i = 0; i < op.outputs.size() && i < body.outputs.size(); ++i) {
        Dims dims = SizesOf(body.outputs[i]);
        if (dims.size() != op.outputs[i].type.dims.size()) dims = op.outputs[i].type.dims;
        Define(op.outputs[i], std::move(dims));
      }
      return;
    }
    for (const GraphValue& output : op.outputs) Define(output, Default(op, output));
  }

  const std::vector<int64_t>& grid_;
  StepWork work_;
  std::unordered_map<uint32_t, Dims> sizes_;
  std::unordered_map<uint32_t, TensorType> types_;
  std::unordered_map<uint32_t, int64_t> program_ids_;
  std::unordered_map<uint32_t, double> share_;
  int depth_ = 0;
};

Dims Window(const BlockMapping& block) {
  if (!block.has_index_map) return block.array.dims;
  Dims dims;
  for (const BlockDim& dim : block.block) {
    if (dim.kind != BlockDim::Kind::kSqueezed) dims.push_back(dim.size);
  }
  return dims;
}

// Adds the flops of a graph; false when a count is not fixed.
bool AddFlops(const Graph& graph, double times, int depth, double* flops, std::string* dtype) {
  if (depth > 32) return false;
  for (const Operation& op : graph.operations) {
    if (!op.pallas.empty()) {
      const PallasCall& call = op.pallas[0];
      double steps = times;
      for (const int64_t extent : call.grid) {
        if (extent < 0) return false;
        steps *= static_cast<double>(extent);
      }
      const StepWork step = CountStep(call);
      if (step.has_unknown_loops && !step.products.empty()) return false;
      *flops += steps * step.flops();
      if (!step.products.empty() && dtype->empty()) *dtype = step.products[0].dtype;
      continue;
    }
    if (op.name == "dot_general") {
      static const std::vector<int64_t> kNoGrid;
      Graph one;
      one.operations.push_back(op);
      Counter counter(kNoGrid);
      for (const Operand& operand : op.inputs) {
        if (!operand.value) continue;
        for (const GraphValue& input : graph.inputs) {
          if (input.id == *operand.value) counter.Seed(input, input.type.dims), counter.Declare(input);
        }
        for (const Operation& other : graph.operations) {
          for (const GraphValue& output : other.outputs) {
            if (output.id == *operand.value) counter.Seed(output, output.type.dims), counter.Declare(output);
          }
        }
      }
      counter.Count(one, times);
      *flops += counter.work().flops();
      if (dtype->empty() && !counter.work().products.empty()) *dtype = counter.work().products[0].dtype;
      continue;
    }
    if (op.name.starts_with("conv_general")) return false;
    double inner = times;
    if (op.name == "scan") {
      const auto length = Int(op, "length");
      if (!length) return false;
      inner *= static_cast<double>(*length);
    }
    double before = *flops;
    if (op.name == "cond") {
      // At least the cheapest branch.
      double least = -1;
      for (const Graph& region : op.regions) {
        double branch = 0;
        if (!AddFlops(region, inner, depth + 1, &branch, dtype)) return false;
        least = least < 0 ? branch : std::min(least, branch);
      }
      *flops = before + std::max(least, 0.0);
      continue;
    }
    for (const Graph& region : op.regions) {
      if (!AddFlops(region, inner, depth + 1, flops, dtype)) return false;
    }
    if (op.name == "while" && *flops != before) return false;
  }
  return true;
}

}  // namespace

double StepWork::flops() const {
  double sum = 0;
  for (const Product& p : products) sum += 2 * p.batch * p.m * p.k * p.n * p.times;
  return sum;
}

StepWork CountStep(const PallasCall& call) {
  Counter counter(call.grid);
  const auto& refs = call.kernel.inputs;
  for (const GraphValue& ref : refs) {
    counter.Declare(ref);
    counter.Seed(ref, ref.type.dims);
  }
  const auto prefetch = static_cast<size_t>(std::max(call.num_scalar_prefetch, 0));
  for (size_t i = 0; i < call.blocks.size() && prefetch + i < refs.size(); ++i) {
    Dims dims = Window(call.blocks[i]);
    if (dims.size() == refs[prefetch + i].type.dims.size()) counter.Seed(refs[prefetch + i], std::move(dims));
  }
  const size_t first = prefetch + call.blocks.size();
  for (size_t i = 0; i < call.scratch.size() && first + i < refs.size(); ++i) {
    const Dims& dims = call.scratch[i].dims;
    if (dims.size() == refs[first + i].type.dims.size()) counter.Seed(refs[first + i], dims);
  }
  counter.Count(call.kernel, 1);
  return std::move(counter.work());
}

Work WorkOfProgram(const Graph& main) {
  Work work;
  double flops = 0;
  std::string dtype;
  if (AddFlops(main, 1, 0, &flops, &dtype) && flops > 0) {
    work.flops = flops;
    work.flop_dtype = dtype;
  }
  double bytes = 0;
  bool known = true;
  const auto add = [&](const TensorType& type) {
    const auto bits = DtypeBits(type.dtype);
    known &= bits.has_value();
    bytes += Elements(type.dims) * bits.value_or(0) / 8;
  };
  std::map<uint32_t, TensorType> types;
  for (const GraphValue& input : main.inputs) {
    add(input.type);
    types[input.id] = input.type;
  }
  for (const Operation& op : main.operations) {
    for (const GraphValue& output : op.outputs) types[output.id] = output.type;
  }
  for (const Operand& output : main.outputs) {
    if (!output.value) continue;
    // An argument that is returned as it is moves nothing.
    const bool is_input = std::any_of(main.inputs.begin(), main.inputs.end(),
                                      [&](const GraphValue& input) { return input.id == *output.value; });
    if (const auto it = types.find(*output.value); it != types.end() && !is_input) add(it->second);
  }
  if (known && bytes > 0) work.bytes = bytes;
  return work;
}

}  // namespace kernelwright::cost
