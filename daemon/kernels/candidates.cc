// Enumeration of block sizes; see candidates.h.
#include "daemon/kernels/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "daemon/kernels/index_map.h"
#include "daemon/kernels/inputs.h"

namespace kernelwright::kernels {
namespace {

constexpr int64_t kLanes = 128;
constexpr int64_t kSublanes = 8;
constexpr int64_t kMiB = int64_t{1} << 20;

bool IsTiled(const BlockMapping& block) {
  return block.has_index_map && (block.memory_space.empty() || block.memory_space == "vmem");
}

bool IsPowerOfTwo(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

// Multiple that a block size must have in one dimension of an operand, the whole dimension aside.
int64_t UnitOf(const BlockMapping& block, size_t dim, bool packed) {
  const size_t rank = block.block.size();
  if (!IsTiled(block)) return 1;
  if (rank == 1) {
    const int bits = std::max(DtypeBits(block.array.dtype), 1);
    return kLanes * std::max(1, 32 / bits);
  }
  if (dim + 1 == rank) return kLanes;
  if (dim + 2 == rank) return packed ? PackedRows(block.array.dtype) : kSublanes;
  return 1;
}

// The unit in terms of the parameter: V must be a multiple of this for V · num / den to be a multiple of `unit`.
int64_t ParameterUnit(int64_t unit, int64_t num, int64_t den) { return den * (unit / std::gcd(unit, num)); }

struct Bounds {
  int64_t unit = 1;
  int64_t largest = std::numeric_limits<int64_t>::max();  // V at which a block is a whole dimension
  std::vector<int64_t> whole;                             // V values that make a block a whole dimension
};

Bounds BoundsOf(const Parameter& parameter, const std::vector<PallasCall>& base, bool packed) {
  Bounds bounds;
  for (const SlotLaw& law : parameter.laws) {
    if (law.slot.kind != Slot::Kind::kBlock) continue;
    const BlockMapping& block = base[law.slot.call].blocks[law.slot.index];
    if (block.block[law.slot.dim].kind == BlockDim::Kind::kSqueezed) continue;
    const int64_t extent = block.array.dims[law.slot.dim];
    const int64_t unit = UnitOf(block, static_cast<size_t>(law.slot.dim), packed);
    bounds.unit = std::lcm(bounds.unit, ParameterUnit(unit, law.num, law.den));
    bounds.largest = std::min(bounds.largest, std::max<int64_t>(1, extent * law.den / law.num));
    if (extent * law.den % law.num == 0) bounds.whole.push_back(extent * law.den / law.num);
  }
  return bounds;
}

bool Divides(const Parameter& parameter, const std::vector<PallasCall>& base, int64_t value) {
  return std::all_of(parameter.laws.begin(), parameter.laws.end(), [&](const SlotLaw& law) {
    int64_t extent = law.extent;
    if (!law.count) {
      if (law.slot.kind != Slot::Kind::kBlock) return true;
      extent = base[law.slot.call].blocks[law.slot.index].array.dims[law.slot.dim];
    }
    return (extent * law.den) % (value * law.num) == 0;
  });
}

bool TailsAllowed(const Parameter& parameter, const CandidateOptions& options) {
  if (parameter.tails != TailSupport::kRoundsUp) return false;
  return !parameter.reduction || parameter.base_has_tail || options.masked_reductions;
}

// Keeps `count` values spread over the list, the present one among them.
void Thin(std::vector<int64_t>& values, size_t count, int64_t keep) {
  if (values.size() <= count) return;
  // Powers of two times the smallest first: they are the ones that divide.
  std::vector<int64_t> ranked = values;
  std::stable_sort(ranked.begin(), ranked.end(), [&](int64_t a, int64_t b) {
    const auto oddness = [](int64_t v) { return v >> __builtin_ctzll(static_cast<uint64_t>(v)); };
    return std::tuple(a != keep, oddness(a)) < std::tuple(b != keep, oddness(b));
  });
  ranked.resize(std::max<size_t>(count, 1));
  std::sort(ranked.begin(), ranked.end());
  values = std::move(ranked);
}

// Smallest round limit above the need.
int64_t RoundLimit(int64_t need) {
  const int64_t with_margin = need + need / 8;  // the estimate leaves out spills and the compiler's own scratch
  const int64_t step = 16 * kMiB;
  return (with_margin + step - 1) / step * step;
}

class Enumerator {
 public:
  Enumerator(const std::vector<Parameter>& parameters, const std::vector<PallasCall>& base, const VmemPolicy& vmem,
             const CostFunction& cost)
      : parameters_(parameters), base_(base), vmem_(vmem), cost_(cost) {}

  void Look(const std::vector<int64_t>& values, bool is_original) {
    ++list.considered;
    auto calls = is_original ? std::optional(base_) : Substitute(base_, parameters_, values);
    if (!calls || (!is_original && IllegalBlocks(*calls))) {
      ++list.illegal;
      return;
    }
    Candidate candidate;
    candidate.values = values;
    candidate.is_original = is_original;
    candidate.new_vmem_limits.resize(base_.size());
    if (!is_original && !FitVmem(*calls, candidate)) {
      ++list.too_large;
      return;
    }
    const auto cost = cost_ ? cost_(*calls) : std::nullopt;
    candidate.cost = cost.value_or(std::numeric_limits<double>::infinity());
    candidate.calls = *std::move(calls);
    list.candidates.push_back(std::move(candidate));
  }

  CandidateList list;

 private:
  bool FitVmem(std::vector<PallasCall>& calls, Candidate& candidate) const {
    if (!vmem_.need_bytes) return true;
    for (size_t c = 0; c < calls.size(); ++c) {
      const int64_t need = vmem_.need_bytes(calls[c]);
      const int64_t limit = calls[c].vmem_limit_bytes.value_or(vmem_.default_limit_bytes);
      if (need <= limit) continue;
      if (need > vmem_.largest_limit_bytes || c >= vmem_.can_set_limit.size() || !vmem_.can_set_limit[c]) return false;
      const int64_t raised = std::min(RoundLimit(need), vmem_.largest_limit_bytes);
      candidate.new_vmem_limits[c] = raised;
      calls[c].vmem_limit_bytes = raised;
    }
    return true;
  }

  const std::vector<Parameter>& parameters_;
  const std::vector<PallasCall>& base_;
  const VmemPolicy& vmem_;
  const CostFunction& cost_;
};

}  // namespace

int64_t PackedRows(const std::string& dtype) {
  const int bits = DtypeBits(dtype);
  return bits <= 0 || bits >= 32 ? kSublanes : kSublanes * (32 / bits);
}

std::optional<std::string> IllegalBlock(const BlockMapping& block) {
  if (!IsTiled(block) || block.block.empty() || block.block.size() != block.array.dims.size()) return std::nullopt;
  const size_t rank = block.block.size();
  const auto describe = [&](size_t dim, const std::string& rule) {
    return "block of " + block.origin + ": dimension " + std::to_string(dim) + " is " +
           std::to_string(block.block[dim].size) + " of " + std::to_string(block.array.dims[dim]) + "; it must be " +
           rule + " or the whole dimension";
  };
  const auto size = [&](size_t dim) { return block.block[dim].size; };
  if (rank == 1) {
    const int64_t smallest = UnitOf(block, 0, false);
    const bool legal =
        size(0) == block.array.dims[0] || size(0) % 1024 == 0 || (IsPowerOfTwo(size(0)) && size(0) >= smallest);
    if (legal) return std::nullopt;
    return describe(0, "a multiple of 1024, a power of two from " + std::to_string(smallest) + " up,");
  }
  if (size(rank - 1) != block.array.dims[rank - 1] && size(rank - 1) % kLanes != 0) {
    return describe(rank - 1, "a multiple of 128");
  }
  if (size(rank - 2) != block.array.dims[rank - 2] && size(rank - 2) % kSublanes != 0) {
    return describe(rank - 2, "a multiple of 8");
  }
  return std::nullopt;
}

std::optional<std::string> IllegalBlocks(const std::vector<PallasCall>& calls) {
  for (const PallasCall& call : calls) {
    for (const BlockMapping& block : call.blocks) {
      if (auto why = IllegalBlock(block)) return why;
    }
  }
  return std::nullopt;
}

std::vector<int64_t> LegalValues(const Parameter& parameter, const std::vector<PallasCall>& base,
                                 const CandidateOptions& options) {
  std::set<int64_t> values;
  if (parameter.inside_kernel) {
    // Nothing shows how large it may get: the neighbourhood, by powers of two.
    for (const int64_t factor : {1, 2, 4, 8}) {
      values.insert(parameter.current * factor);
      if (parameter.current % factor == 0) values.insert(parameter.current / factor);
    }
    return {values.begin(), values.end()};
  }
  const Bounds bounds = BoundsOf(parameter, base, options.prefer_packed);
  if (bounds.largest == std::numeric_limits<int64_t>::max()) return {parameter.current};
  for (int64_t value = bounds.unit; value <= bounds.largest; value *= 2) values.insert(value);
  for (int64_t value = 3 * bounds.unit; value <= bounds.largest; value *= 2) values.insert(value);
  for (const int64_t extent : bounds.whole) {
    for (int64_t count = 1; count <= 4096 && count <= extent; ++count) {
      if (extent % count == 0 && (extent / count) % bounds.unit == 0) values.insert(extent / count);
    }
    values.insert(extent);
  }
  std::vector<int64_t> kept;
  for (const int64_t value : values) {
    if (value > bounds.largest || !SiteValues(parameter, value)) continue;
    if (!TailsAllowed(parameter, options) && !Divides(parameter, base, value)) continue;
    const auto calls = Substitute(base, {parameter}, {value});
    if (calls && (value == parameter.current || !IllegalBlocks(*calls))) kept.push_back(value);
  }
  if (!std::binary_search(kept.begin(), kept.end(), parameter.current)) {
    kept.insert(std::upper_bound(kept.begin(), kept.end(), parameter.current), parameter.current);
  }
  Thin(kept, options.max_values, parameter.current);
  return kept;
}

CandidateList EnumerateCandidates(const std::vector<Parameter>& parameters, const std::vector<PallasCall>& base,
                                  const CandidateOptions& options, const VmemPolicy& vmem, const CostFunction& cost) {
  Enumerator enumerator(parameters, base, vmem, cost);
  std::vector<int64_t> original;
  original.reserve(parameters.size());
  std::vector<std::vector<int64_t>> lists;
  lists.reserve(parameters.size());
  for (const Parameter& parameter : parameters) {
    original.push_back(parameter.current);
    lists.push_back(LegalValues(parameter, base, options));
  }
  const auto product = [&] {
    double total = 1;
    for (const auto& list : lists) total *= static_cast<double>(list.size());
    return total;
  };
  while (product() > static_cast<double>(options.max_assignments)) {
    const auto longest =
        std::max_element(lists.begin(), lists.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
    if (longest->size() <= 1) break;
    Thin(*longest, longest->size() - 1, original[static_cast<size_t>(longest - lists.begin())]);
  }
  std::vector<size_t> at(lists.size(), 0);
  for (bool done = false; !done;) {
    std::vector<int64_t> values;
    values.reserve(lists.size());
    for (size_t p = 0; p < lists.size(); ++p) values.push_back(lists[p][at[p]]);
    enumerator.Look(values, values == original);
    done = true;
    for (size_t p = lists.size(); p-- > 0;) {
      if (++at[p] < lists[p].size()) {
        done = false;
        break;
      }
      at[p] = 0;
    }
  }
  CandidateList result = std::move(enumerator.list);
  // Of equal costs the one nearest to the original wins, so that edits stay small.
  const auto distance = [&](const Candidate& candidate) {
    double sum = 0;
    for (size_t p = 0; p < original.size(); ++p) {
      sum += std::abs(std::log2(static_cast<double>(candidate.values[p]) / static_cast<double>(original[p])));
    }
    return sum;
  };
  std::stable_sort(result.candidates.begin(), result.candidates.end(), [&](const Candidate& a, const Candidate& b) {
    if (a.cost != b.cost) return a.cost < b.cost;
    return distance(a) < distance(b);
  });
  if (result.candidates.size() > options.max_results) {
    const auto kept_end = result.candidates.begin() + static_cast<std::ptrdiff_t>(options.max_results);
    const auto is_original = [](const Candidate& candidate) { return candidate.is_original; };
    if (std::none_of(result.candidates.begin(), kept_end, is_original)) {
      const auto it = std::find_if(kept_end, result.candidates.end(), is_original);
      if (it != result.candidates.end()) std::iter_swap(kept_end - 1, it);
    }
    result.candidates.resize(options.max_results);
  }
  return result;
}

std::optional<std::vector<std::string>> ProposeSemantics(const PallasCall& call) {
  const auto revisiting = RevisitingAxes(call);
  if (!revisiting || call.grid.empty()) return std::nullopt;
  std::vector<std::string> semantics;
  semantics.reserve(call.grid.size());
  for (size_t a = 0; a < call.grid.size(); ++a) {
    semantics.emplace_back(revisiting->contains(static_cast<int>(a)) ? "arbitrary" : "parallel");
  }
  if (semantics == call.dimension_semantics) return std::nullopt;
  const bool any = std::find(semantics.begin(), semantics.end(), "parallel") != semantics.end();
  if (!any && call.dimension_semantics.empty()) return std::nullopt;
  return semantics;
}

}  // namespace kernelwright::kernels
