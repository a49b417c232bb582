// Sizes of blocks: rounded to the tile that the chip asks for, with the grid and every other block and buffer that is
// cut by the same grid axis; grids that leave part of an output unwritten; blocks of fewer dimensions than their array.
#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include "daemon/diagnose/fix_families.h"
#include "daemon/diagnose/fix_launch.h"
#include "daemon/kernels/index_map.h"
#include "daemon/kernels/inputs.h"
#include "daemon/kernels/literals.h"

namespace kernelwright::diagnose {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The literal that decides an expression: itself, or the integer that its name is bound to (also a parameter's
// default).
Node DecidingLiteral(const FixSource& source, const Node& expression) {
  Node at = StripParentheses(expression);
  for (int hops = 0; hops < 4 && at.Is("identifier"); ++hops) {
    Node value = source.Resolve(at);
    if (!value) {
      const Node parameters = source.Function(at).Field("parameters");
      for (const Node& parameter : parameters.NamedChildren()) {
        if (parameter.Field("name").text() == at.text()) value = parameter.Field("value");
      }
    }
    if (!value) return {};
    at = StripParentheses(value);
  }
  return kernels::EvaluateInteger(at) ? at : Node();
}

// Smallest legal size of one block dimension that is no smaller than `size`.
int64_t LegalSize(int64_t size, int64_t extent, size_t from_last, bool rank_one, int bits) {
  if (rank_one) {
    int64_t legal = int64_t{128} * std::max(1, 32 / std::max(bits, 1));
    while (legal < size && legal < 1024) legal *= 2;
    if (legal < size) legal = CeilDiv(size, 1024) * 1024;
    return std::min(legal, extent);
  }
  const int64_t tile = from_last == 0 ? 128 : 8;
  const int64_t legal = CeilDiv(size, tile) * tile;
  return legal >= extent ? extent : legal;
}

// Edits of literals, each with one value; two different values for one literal are a contradiction.
class Literals {
 public:
  bool Set(const Node& literal, int64_t value) {
    const auto [at, added] = values_.try_emplace(literal.begin(), std::pair(literal, value));
    return added || at->second.second == value;
  }
  bool Has(const Node& literal) const { return values_.contains(literal.begin()); }
  std::optional<int64_t> Get(const Node& literal) const {
    const auto at = values_.find(literal.begin());
    if (at == values_.end()) return std::nullopt;
    return at->second.second;
  }
  void Write(FixBuilder& builder) const {
    for (const auto& [begin, entry] : values_) {
      builder.Replace(entry.first, kernels::FormatInteger(entry.first.text(), entry.second));
    }
  }

 private:
  std::map<uint32_t, std::pair<Node, int64_t>> values_;
};

std::vector<Node> SpecsOf(const Launch& launch) {
  std::vector<Node> specs = launch.in_specs;
  specs.insert(specs.end(), launch.out_specs.begin(), launch.out_specs.end());
  return specs;
}

// New number of steps of a grid axis, written in the axis' own form.
bool SetGridAxis(const FixSource& source, const Node& axis, int64_t old_steps, int64_t steps, const Literals& changed,
                 FixBuilder& builder, Literals& grid_literals) {
  if (old_steps == steps) return true;
  const Node node = StripParentheses(axis);
  if (const Node literal = DecidingLiteral(source, node)) return grid_literals.Set(literal, steps);
  if (node.Is("binary_operator") && node.Field("operator").text() == "//") {
    const Node divisor = DecidingLiteral(source, node.Field("right"));
    if (!divisor) return false;
    const std::string right(divisor == StripParentheses(node.Field("right")) && changed.Has(divisor)
                                ? std::to_string(*changed.Get(divisor))
                                : std::string(node.Field("right").text()));
    builder.Replace(axis, builder.Pl() + ".cdiv(" + std::string(node.Field("left").text()) + ", " + right + ")");
    return true;
  }
  // `pl.cdiv(n, block)` follows its block; a block written in it as a number is changed with it.
  if (IsCallOf(node, {"cdiv"})) {
    const Node divisor = Argument(node, 1, "b");
    const Node literal = DecidingLiteral(source, divisor);
    if (!literal) return false;
    if (changed.Has(literal)) return true;
    return false;
  }
  return false;
}

}  // namespace

Fixes RoundBlocks(const FixRequest& request) {
  const FixSource& source = request.source;
  const auto launch = LaunchOf(source, source.place());
  if (!launch) return {};
  const PallasCall* call = TracedCall(source, *launch, request.context);
  const auto specs = SpecsOf(*launch);
  if (call == nullptr || specs.empty()) return {};
  // Specs follow the operands after the prefetched ones; outputs come last.
  std::vector<const BlockMapping*> mappings;
  mappings.reserve(call->blocks.size());
  for (const BlockMapping& mapping : call->blocks) mappings.push_back(&mapping);
  if (mappings.size() != specs.size()) return {};
  if (!call->grid.empty() && launch->grid.size() != call->grid.size()) return {};

  // Blocks that must change, and what each change says about the grid axis that cuts this dimension.
  std::map<int, std::pair<int64_t, int64_t>> axes;  // axis -> (old block, new block)
  Literals literals;
  struct Change {
    size_t spec;
    size_t dim;
    int64_t size;
  };
  std::vector<Change> changes;
  bool any = false;
  for (size_t m = 0; m < mappings.size(); ++m) {
    const BlockMapping& mapping = *mappings[m];
    const size_t rank = mapping.block.size();
    if (rank == 0 || mapping.array.dims.size() != rank || !mapping.has_index_map || mapping.memory_space == "smem") {
      continue;
    }
    const auto uses = kernels::AnalyzeBlock(*call, mapping);
    for (size_t d = rank < 2 ? 0 : rank - 2; d < rank; ++d) {
      if (mapping.block[d].kind != BlockDim::Kind::kBlocked) continue;
      const int64_t size = mapping.block[d].size;
      const int64_t extent = mapping.array.dims[d];
      const int bits = kernels::DtypeBits(mapping.array.dtype);
      if (size == extent) continue;
      const int64_t legal = LegalSize(size, extent, rank - 1 - d, rank == 1, bits);
      if (legal == size) continue;
      // Rows of one are a choice of the user's (another layout, or eight rows).
      if (size == 1 && rank > 1) return {};
      any = true;
      if (!uses[d].known) return {};
      if (uses[d].axes.empty()) {
        changes.push_back({m, d, legal});
        continue;
      }
      if (uses[d].identity_axis < 0) return {};
      const auto [at, added] = axes.try_emplace(uses[d].identity_axis, std::pair(size, legal));
      if (!added && at->second.first != size) return {};
      at->second.second = std::max(at->second.second, legal);
    }
  }
  if (!any) return {};
  std::map<int, int64_t> steps;
  for (size_t m = 0; m < mappings.size(); ++m) {
    const BlockMapping& mapping = *mappings[m];
    if (!mapping.has_index_map) continue;
    const auto uses = kernels::AnalyzeBlock(*call, mapping);
    for (size_t d = 0; d < mapping.block.size() && d < mapping.array.dims.size(); ++d) {
      for (const int axis : uses[d].axes) {
        const auto changed = axes.find(axis);
        if (changed == axes.end()) continue;
        if (uses[d].identity_axis != axis || mapping.block[d].kind != BlockDim::Kind::kBlocked ||
            mapping.block[d].size != changed->second.first) {
          return {};
        }
        const int64_t count = CeilDiv(mapping.array.dims[d], changed->second.second);
        const auto [at, added] = steps.try_emplace(axis, count);
        if (!added && at->second != count) return {};
        changes.push_back({m, d, changed->second.second});
      }
    }
  }
  FixBuilder builder(source);
  std::string shown;
  for (const Change& change : changes) {
    const auto sizes = Elements(BlockShape(specs[change.spec]));
    if (change.dim >= sizes.size()) return {};
    const Node literal = DecidingLiteral(source, sizes[change.dim]);
    if (!literal || !literals.Set(literal, change.size)) return {};
  }
  Literals grid_literals;
  for (const auto& [axis, count] : steps) {
    const auto index = static_cast<size_t>(axis);
    if (!SetGridAxis(source, launch->grid[index], call->grid[index], count, literals, builder, grid_literals)) {
      return {};
    }
  }
  // Scratch buffers of the block's sizes go along.
  for (size_t s = 0; s < launch->scratch.size() && s < call->scratch.size(); ++s) {
    const auto sizes = Elements(Argument(launch->scratch[s], 0, "shape"));
    for (size_t d = 0; d < sizes.size() && d < call->scratch[s].dims.size(); ++d) {
      const Node literal = DecidingLiteral(source, sizes[d]);
      if (!literal || literals.Has(literal)) continue;
      for (const auto& [axis, sizes_of] : axes) {
        if (call->scratch[s].dims[d] == sizes_of.first && !literals.Set(literal, sizes_of.second)) return {};
      }
    }
  }
  literals.Write(builder);
  grid_literals.Write(builder);
  for (const auto& [axis, sizes] : axes) {
    shown += (shown.empty() ? "" : ", ") + std::to_string(sizes.first) + " to " + std::to_string(sizes.second);
  }
  if (shown.empty()) shown = "to the tile";
  if (builder.empty()) return {};
  return {builder.Build("Round the block up: " + shown)};
}

Fixes CoverOutput(const FixRequest& request) {
  const FixSource& source = request.source;
  const auto launch = LaunchOf(source, source.place());
  if (!launch) return {};
  const PallasCall* call = TracedCall(source, *launch, request.context);
  if (call == nullptr || call->grid.size() != launch->grid.size()) return {};
  std::map<int, int64_t> needed;
  for (const BlockMapping& mapping : call->blocks) {
    if (!mapping.is_output || !mapping.has_index_map) continue;
    const auto uses = kernels::AnalyzeBlock(*call, mapping);
    for (size_t d = 0; d < mapping.block.size() && d < mapping.array.dims.size(); ++d) {
      const int axis = uses[d].identity_axis;
      if (axis < 0 || mapping.block[d].kind == BlockDim::Kind::kElement) continue;
      int64_t& steps = needed[axis];
      steps = std::max(steps, CeilDiv(mapping.array.dims[d], std::max<int64_t>(mapping.block[d].size, 1)));
    }
  }
  FixBuilder builder(source);
  for (const auto& [axis, steps] : needed) {
    const auto index = static_cast<size_t>(axis);
    if (call->grid[index] >= steps || call->grid[index] < 0) continue;
    const Node node = StripParentheses(launch->grid[index]);
    if (node.Is("binary_operator") && node.Field("operator").text() == "//") {
      builder.Replace(launch->grid[index], builder.Pl() + ".cdiv(" + std::string(node.Field("left").text()) + ", " +
                                               std::string(node.Field("right").text()) + ")");
    } else if (kernels::EvaluateInteger(node)) {
      builder.Replace(node, std::to_string(steps));
    } else {
      return {};
    }
  }
  if (builder.empty()) return {};
  return {builder.Build("Make the grid cover the whole output")};
}

Fixes SqueezeBlock(const FixRequest& request) {
  const FixSource& source = request.source;
  Node spec;
  for (Node at = source.place(); at && !spec; at = at.parent()) {
    if (IsCallOf(at, {"BlockSpec"})) spec = at;
  }
  if (!spec) {
    const auto near = source.AtPlace([](const Node& node) { return IsCallOf(node, {"BlockSpec"}); });
    if (near.size() == 1) spec = near.front();
  }
  std::smatch match;
  const std::string& raw = request.diagnostic.raw;
  if (!spec || !std::regex_search(raw, match, std::regex(R"(array shape \(([0-9, ]*)\))"))) return {};
  std::vector<int64_t> dims;
  const std::string list = match[1].str();
  const std::regex number(R"(\d+)");
  for (auto at = std::sregex_iterator(list.begin(), list.end(), number); at != std::sregex_iterator(); ++at) {
    dims.push_back(std::stoll(at->str()));
  }
  const Node shape = BlockShape(spec);
  const Node map = IndexMap(source, spec);
  const auto sizes = Elements(shape);
  if (!IsSequence(shape) || dims.size() <= sizes.size() || (map && !map.Is("lambda"))) return {};
  const size_t missing = dims.size() - sizes.size();
  std::string block;
  for (size_t i = 0; i < missing; ++i) block += "None, ";
  for (size_t i = 0; i < sizes.size(); ++i) block += (i > 0 ? ", " : "") + std::string(sizes[i].text());
  FixBuilder builder(source);
  builder.Replace(shape, "(" + block + ")");
  if (map) {
    const Node value = map.Field("body");
    const auto ids = Elements(value);
    if (ids.size() == sizes.size()) {
      // An id of a dimension that its block covers whole can only have meant one of the dimensions in front.
      std::string front;
      std::string rest;
      size_t moved = 0;
      for (size_t d = 0; d < ids.size(); ++d) {
        const bool whole = kernels::EvaluateInteger(sizes[d]) == std::optional<int64_t>(dims[missing + d]);
        if (whole && kernels::EvaluateInteger(ids[d]) != std::optional<int64_t>(0) && moved < missing) {
          front += std::string(ids[d].text()) + ", ";
          rest += ", 0";
          ++moved;
        } else {
          rest += ", " + std::string(ids[d].text());
        }
      }
      if (moved != missing) return {};
      builder.Replace(value, "(" + front + rest.substr(2) + ")");
    } else if (ids.size() != dims.size()) {
      return {};
    }
  }
  return {builder.Build("Squeeze the leading dimension: (" + block + ")")};
}

}  // namespace kernelwright::diagnose
