// Dimension classes and the ladder of reduced shapes; see shapes.h.
#include "daemon/kernels/shapes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "daemon/kernels/index_map.h"

namespace kernelwright::kernels {
namespace {

using InputDim = std::pair<size_t, size_t>;

bool IsCut(const PallasCall& call, const BlockMapping& block, size_t dim, const DimUse& use) {
  const bool whole =
      block.block[dim].size >= block.array.dims[dim] && block.block[dim].kind != BlockDim::Kind::kSqueezed;
  return !whole && block.array.dims[dim] > 1 && !call.grid.empty() && (!use.known || !use.axes.empty());
}

// An operand of a kernel and the function input that it is, if it is one.
struct BoundOperand {
  const PallasCall* call = nullptr;
  int call_index = 0;
  const BlockMapping* block = nullptr;
  std::optional<size_t> input;  // index into the InputSpecs
};

bool KeepsShape(const Operation& operation) {
  static const std::set<std::string> kNames = {
      "convert_element_type", "copy", "stop_gradient", "neg", "mul", "add", "exp", "optimization_barrier",
      "sharding_constraint"};
  return kNames.contains(operation.name);
}

bool IsCall(const Operation& operation) {
  return operation.name == "pjit" || operation.name == "jit" || operation.name == "closed_call" ||
         operation.name == "core_call" || operation.name == "custom_jvp_call" || operation.name == "custom_vjp_call" ||
         operation.name == "remat" || operation.name == "checkpoint" || operation.name == "custom_vjp_call_jaxpr";
}

class Binder {
 public:
  Binder(const std::vector<InputSpec>& inputs, const Program& program) {
    std::vector<size_t> leaves;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].kind != InputSpec::Kind::kStatic) leaves.push_back(i);
    }
    const auto matches = [&](size_t spec, const GraphValue& value) {
      return inputs[spec].kind == InputSpec::Kind::kPrngKey ||
             (inputs[spec].dims == value.type.dims && inputs[spec].dtype == value.type.dtype);
    };
    bool in_order = leaves.size() == program.main.inputs.size();
    for (size_t i = 0; in_order && i < leaves.size(); ++i) in_order = matches(leaves[i], program.main.inputs[i]);
    for (size_t i = 0; i < program.main.inputs.size(); ++i) {
      const GraphValue& value = program.main.inputs[i];
      if (in_order) {
        origin_[value.id] = leaves[i];
        continue;
      }
      // Another order (sorted keys of a dictionary): a leaf is known by its type when only one has it.
      std::vector<size_t> found;
      std::copy_if(leaves.begin(), leaves.end(), std::back_inserter(found),
                   [&](size_t leaf) { return inputs[leaf].kind == InputSpec::Kind::kTensor && matches(leaf, value); });
      if (found.size() == 1) origin_[value.id] = found[0];
    }
    Visit(program.main);
  }

  const std::vector<BoundOperand>& operands() const { return operands_; }

 private:
  std::optional<size_t> OriginOf(const Operand& operand) const {
    if (!operand.value) return std::nullopt;
    const auto it = origin_.find(*operand.value);
    return it == origin_.end() ? std::nullopt : std::optional(it->second);
  }

  void Visit(const Graph& graph) {
    for (const Operation& operation : graph.operations) {
      for (const PallasCall& call : operation.pallas) Bind(operation, call);
      if (KeepsShape(operation) && operation.outputs.size() == 1) {
        for (const Operand& operand : operation.inputs) {
          if (const auto origin = OriginOf(operand)) origin_.try_emplace(operation.outputs[0].id, *origin);
        }
      }
      if (!operation.pallas.empty()) continue;
      for (const Graph& region : operation.regions) {
        if (IsCall(operation)) {
          for (size_t i = 0; i < region.inputs.size() && i < operation.inputs.size(); ++i) {
            if (const auto origin = OriginOf(operation.inputs[i])) origin_[region.inputs[i].id] = *origin;
          }
        }
        Visit(region);
        if (IsCall(operation)) {
          for (size_t i = 0; i < region.outputs.size() && i < operation.outputs.size(); ++i) {
            if (const auto origin = OriginOf(region.outputs[i])) origin_[operation.outputs[i].id] = *origin;
          }
        }
      }
    }
  }

  void Bind(const Operation& operation, const PallasCall& call) {
    // Operands: dynamic grid bounds, prefetched scalars, then one per block.
    size_t first = static_cast<size_t>(call.num_scalar_prefetch);
    first += static_cast<size_t>(std::count(call.grid.begin(), call.grid.end(), -1));
    size_t next = first;
    for (const BlockMapping& block : call.blocks) {
      BoundOperand operand{&call, calls_, &block, std::nullopt};
      if (!block.is_output) {
        if (next < operation.inputs.size()) operand.input = OriginOf(operation.inputs[next]);
        ++next;
      }
      operands_.push_back(operand);
    }
    ++calls_;
  }

  std::map<uint32_t, size_t> origin_;
  std::vector<BoundOperand> operands_;
  int calls_ = 0;
};

void AddStatics(const std::vector<InputSpec>& inputs, std::vector<DimClass>& classes) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind != InputSpec::Kind::kStatic) continue;
    const auto value = nlohmann::json::parse(inputs[i].static_json, nullptr, /*allow_exceptions=*/false);
    if (!value.is_number_integer()) continue;
    std::vector<DimClass*> same;
    for (DimClass& dim_class : classes) {
      if (dim_class.size == value.get<int64_t>()) same.push_back(&dim_class);
    }
    // Small numbers are counts and flags more often than sizes.
    if (same.size() == 1 && value.get<int64_t>() >= 64) same[0]->statics.push_back(i);
  }
}

std::vector<DimClass> FinishClasses(const std::vector<InputSpec>& inputs, std::map<size_t, DimClass> by_root) {
  std::vector<DimClass> classes;
  classes.reserve(by_root.size());
  for (auto& [root, dim_class] : by_root) classes.push_back(std::move(dim_class));
  std::sort(classes.begin(), classes.end(), [](const DimClass& a, const DimClass& b) { return a.dims < b.dims; });
  AddStatics(inputs, classes);
  return classes;
}

// Copies of the inputs with each class at its new size.
ReducedShape Resize(const std::vector<InputSpec>& inputs, const std::vector<DimClass>& classes,
                    const std::vector<int64_t>& sizes) {
  ReducedShape shape;
  shape.inputs = inputs;
  shape.full = true;
  for (size_t c = 0; c < classes.size(); ++c) {
    for (const auto& [input, dim] : classes[c].dims) shape.inputs[input].dims[dim] = sizes[c];
    for (const size_t input : classes[c].statics) shape.inputs[input].static_json = std::to_string(sizes[c]);
    if (sizes[c] == classes[c].size) continue;
    shape.full = false;
    int64_t& shown = shape.sizes[classes[c].size];
    shown = std::max(shown, sizes[c]);
  }
  for (const InputSpec& input : shape.inputs) {
    if (input.kind != InputSpec::Kind::kTensor) continue;
    shape.elements += std::accumulate(input.dims.begin(), input.dims.end(), int64_t{1}, std::multiplies<>());
  }
  return shape;
}

int64_t CommonMultiple(const std::set<int64_t>& blocks) {
  int64_t multiple = 1;
  for (const int64_t block : blocks) {
    multiple = std::lcm(multiple, std::max<int64_t>(block, 1));
    if (multiple > int64_t{1} << 40) return multiple;
  }
  return multiple;
}

bool HasPartialBlock(const BlockMapping& block, size_t dim) {
  return block.array.dims[dim] % std::max<int64_t>(block.block[dim].size, 1) != 0;
}

}  // namespace

std::vector<DimClass> DimClassesBySize(const std::vector<InputSpec>& inputs, const Program& program) {
  std::map<int64_t, DimClass> by_size;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t d = 0; d < inputs[i].dims.size(); ++d) {
      DimClass& dim_class = by_size[inputs[i].dims[d]];
      dim_class.size = inputs[i].dims[d];
      dim_class.dims.emplace_back(i, d);
    }
  }
  for (const PallasCall* call : FindPallasCalls(program)) {
    for (const BlockMapping& block : call->blocks) {
      const auto uses = AnalyzeBlock(*call, block);
      for (size_t d = 0; d < block.block.size() && d < block.array.dims.size(); ++d) {
        const auto it = by_size.find(block.array.dims[d]);
        if (it != by_size.end() && IsCut(*call, block, d, uses[d])) it->second.blocks.insert(block.block[d].size);
      }
    }
  }
  std::map<size_t, DimClass> by_root;
  for (auto& [size, dim_class] : by_size) by_root[by_root.size()] = std::move(dim_class);
  return FinishClasses(inputs, std::move(by_root));
}

std::vector<DimClass> DimClassesByAxis(const std::vector<InputSpec>& inputs, const Program& program) {
  const Binder binder(inputs, program);
  std::vector<InputDim> dims;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t d = 0; d < inputs[i].dims.size(); ++d) dims.emplace_back(i, d);
  }
  const auto node_of = [&](InputDim dim) {
    return static_cast<size_t>(std::lower_bound(dims.begin(), dims.end(), dim) - dims.begin());
  };
  std::vector<size_t> parent(dims.size());
  std::iota(parent.begin(), parent.end(), size_t{0});
  const auto find = [&](size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  const auto size_of = [&](size_t node) { return inputs[dims[node].first].dims[dims[node].second]; };

  std::set<size_t> cut_nodes;                           // tied by an axis, so not by their size
  std::set<int64_t> shared_sizes;                       // sizes that something unknown has: all of them stay together
  std::map<std::pair<int, int>, size_t> axis_owner;     // (call, axis) -> node
  std::vector<std::pair<size_t, int64_t>> node_blocks;  // block sizes that cut a node
  std::map<std::pair<int, int>, std::set<std::pair<int64_t, int64_t>>> axis_blocks;  // (extent, block)
  std::map<int64_t, std::set<int64_t>> size_blocks;
  for (const BoundOperand& operand : binder.operands()) {
    const auto uses = AnalyzeBlock(*operand.call, *operand.block);
    for (size_t d = 0; d < operand.block->array.dims.size(); ++d) {
      const int64_t extent = operand.block->array.dims[d];
      const bool has_block = d < operand.block->block.size() && operand.block->has_index_map;
      const bool cut = has_block && IsCut(*operand.call, *operand.block, d, uses[d]);
      const int axis = has_block ? uses[d].identity_axis : -1;
      const bool bound =
          operand.input && d < inputs[*operand.input].dims.size() && inputs[*operand.input].dims[d] == extent;
      if (cut && axis >= 0) {
        axis_blocks[{operand.call_index, axis}].emplace(extent, operand.block->block[d].size);
        // Outputs are tied to the inputs by the axis itself; other operands come from code that is not seen through.
        if (!bound && !operand.block->is_output) shared_sizes.insert(extent);
      } else if (cut) {
        size_blocks[extent].insert(operand.block->block[d].size);
        shared_sizes.insert(extent);
      }
      if (!bound || !cut || axis < 0) continue;
      const size_t node = node_of({*operand.input, d});
      cut_nodes.insert(node);
      const auto [it, is_new] = axis_owner.emplace(std::pair(operand.call_index, axis), node);
      if (!is_new && size_of(it->second) == extent) parent[find(node)] = find(it->second);
      if (!is_new && size_of(it->second) != extent) shared_sizes.insert(extent);
    }
  }
  for (const auto& [key, blocks] : axis_blocks) {
    const auto owner = axis_owner.find(key);
    for (const auto& [extent, block] : blocks) {
      if (owner != axis_owner.end())
        node_blocks.emplace_back(owner->second, block);
      else
        size_blocks[extent].insert(block);  // an axis that no input shows: its size is all that is known
    }
  }
  // Whatever is not tied by an axis is tied by its size.
  std::map<int64_t, size_t> size_owner;
  for (size_t node = 0; node < dims.size(); ++node) {
    if (cut_nodes.contains(node) && !shared_sizes.contains(size_of(node))) continue;
    const auto [it, is_new] = size_owner.emplace(size_of(node), node);
    if (!is_new) parent[find(node)] = find(it->second);
  }
  std::map<size_t, DimClass> by_root;
  for (size_t node = 0; node < dims.size(); ++node) {
    DimClass& dim_class = by_root[find(node)];
    dim_class.size = size_of(node);
    dim_class.dims.push_back(dims[node]);
    const auto blocks = size_blocks.find(size_of(node));
    if (blocks != size_blocks.end()) dim_class.blocks.insert(blocks->second.begin(), blocks->second.end());
  }
  for (const auto& [node, block] : node_blocks) by_root[find(node)].blocks.insert(block);
  return FinishClasses(inputs, std::move(by_root));
}

ShapeLadder ProposeShapes(const std::vector<InputSpec>& inputs, const std::vector<DimClass>& classes,
                          const ShapeOptions& options) {
  ShapeLadder ladder;
  int64_t largest = options.largest_block;
  for (const DimClass& dim_class : classes) {
    if (!dim_class.blocks.empty()) largest = std::max(largest, *dim_class.blocks.rbegin());
  }
  for (int64_t factor = 1; factor <= (int64_t{1} << 20); factor *= 2) {
    std::vector<int64_t> sizes;
    sizes.reserve(classes.size());
    bool any_block = false;
    for (const DimClass& dim_class : classes) {
      int64_t size = dim_class.size;
      if (!dim_class.blocks.empty()) {
        const int64_t block = std::max<int64_t>(*dim_class.blocks.rbegin(), 1) * factor;
        any_block = any_block || block <= largest;
        const int64_t common = CommonMultiple(dim_class.blocks);
        // Blocks without a common multiple below the size leave nothing to reduce.
        if (common <= size && block <= size) {
          const int64_t multiple = std::max<int64_t>(std::lcm(common, block), 1);
          size = std::min(size, dim_class.size % multiple + options.min_blocks * multiple);
        }
      }
      sizes.push_back(size);
    }
    if (!any_block) break;
    ReducedShape shape = Resize(inputs, classes, sizes);
    const bool full = shape.full;
    const bool repeated = !ladder.shapes.empty() && ladder.shapes.back().inputs == shape.inputs;
    if (!repeated && (ladder.shapes.empty() || shape.elements <= options.max_elements)) {
      ladder.shapes.push_back(std::move(shape));
    }
    if (full) break;
  }
  std::vector<int64_t> full_sizes;
  full_sizes.reserve(classes.size());
  for (const DimClass& dim_class : classes) full_sizes.push_back(dim_class.size);
  ReducedShape full = Resize(inputs, classes, full_sizes);
  const bool has_full = !ladder.shapes.empty() && ladder.shapes.back().full;
  if (!has_full && (ladder.shapes.empty() || full.elements <= options.max_elements)) ladder.shapes.push_back(full);

  std::vector<int64_t> tail_sizes;
  tail_sizes.reserve(classes.size());
  bool any_cut = false;
  for (const DimClass& dim_class : classes) {
    int64_t size = dim_class.size;
    const int64_t smallest = dim_class.blocks.empty() ? 1 : *dim_class.blocks.begin();
    if (smallest > 1) {
      any_cut = true;
      // Half a block and one: no multiple of a tile, so that masks have to be exact.
      size = options.min_blocks * CommonMultiple(dim_class.blocks) + smallest / 2 + 1;
      if (smallest == 2) size = options.min_blocks * CommonMultiple(dim_class.blocks) + 1;
    }
    tail_sizes.push_back(size);
  }
  if (any_cut) {
    ladder.with_tails = Resize(inputs, classes, tail_sizes);
    ladder.with_tails->tails = true;
  }
  return ladder;
}

bool CoversFullShape(const std::vector<PallasCall>& reduced, const std::vector<PallasCall>& full, int64_t min_blocks) {
  if (reduced.size() != full.size()) return false;
  for (size_t c = 0; c < full.size(); ++c) {
    if (reduced[c].grid.size() != full[c].grid.size() || reduced[c].blocks.size() != full[c].blocks.size())
      return false;
    for (size_t a = 0; a < full[c].grid.size(); ++a) {
      if (full[c].grid[a] >= 0 && reduced[c].grid[a] < std::min(min_blocks, full[c].grid[a])) return false;
    }
    for (size_t b = 0; b < full[c].blocks.size(); ++b) {
      const BlockMapping& x = reduced[c].blocks[b];
      const BlockMapping& y = full[c].blocks[b];
      if (x.block.size() != y.block.size()) return false;
      for (size_t d = 0; d < y.block.size() && d < y.array.dims.size() && d < x.array.dims.size(); ++d) {
        if (HasPartialBlock(x, d) != HasPartialBlock(y, d)) return false;
      }
    }
  }
  return true;
}

}  // namespace kernelwright::kernels
