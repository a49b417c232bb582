// Decides which sites of the source belong together; see params.h.
//
// The idea: a site that moves grid and blocks together, alone and without changing what is covered, is a parameter by
// itself. Of the others (a block written as a literal here, the grid as a division by another literal there) those that
// move the same grid axis, or a block dimension whose index is that axis's id, are put together; scratch and literals
// of the kernel's body with the same value are added by hypotheses, which the caller traces.
#include <algorithm>
#include <map>
#include <numeric>

#include "daemon/kernels/index_map.h"
#include "daemon/kernels/params.h"

namespace kernelwright::kernels {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What one site does, from its most telling observation.
struct Effect {
  size_t site = 0;
  int64_t before = 0;
  int64_t after = 0;
  bool traced = false;
  bool structural = false;          // the kernels changed their form or number
  bool kernel_changed = false;      // only meaningful when traced
  std::vector<SlotChange> changes;  // grid, block, scratch
  bool moves_limit = false;
  int limit_call = 0;
  const Observation* observation = nullptr;

  bool Moves(Slot::Kind kind) const {
    return std::any_of(changes.begin(), changes.end(), [&](const SlotChange& c) { return c.slot.kind == kind; });
  }
  bool MovesShape() const { return Moves(Slot::Kind::kGrid) || Moves(Slot::Kind::kBlock); }
};

enum class Relation { kProportional, kInverse, kOther };

Relation Relate(const Effect& effect, const SlotChange& change) {
  const int64_t s0 = effect.before;
  const int64_t s1 = effect.after;
  if (change.before * s1 == change.after * s0) return Relation::kProportional;
  // A count of blocks, rounded up or down.
  const int64_t low = ((change.before - 1) * s0 + 1) / s1;
  const int64_t high = (change.before + 1) * s0 / s1;
  return change.after >= low && change.after <= high && change.after >= 1 ? Relation::kInverse : Relation::kOther;
}

// Block size or number of blocks; nothing when the numbers follow no simple law.
std::optional<Member::Role> RoleOf(const Effect& effect) {
  std::optional<Member::Role> role;
  for (const SlotChange& change : effect.changes) {
    const Relation relation = Relate(effect, change);
    if (relation == Relation::kOther) return std::nullopt;
    const bool size = change.slot.kind != Slot::Kind::kGrid;
    const Member::Role now =
        size == (relation == Relation::kProportional) ? Member::Role::kBlock : Member::Role::kCount;
    if (role && *role != now) return std::nullopt;
    role = now;
  }
  return role;
}

class Grouper {
 public:
  Grouper(const std::vector<TunableSite>& sites, const std::vector<PallasCall>& base) : sites_(sites), base_(base) {
    for (const PallasCall& call : base) {
      auto& uses = uses_.emplace_back();
      for (const BlockMapping& block : call.blocks) uses.push_back(AnalyzeBlock(call, block));
    }
  }

  void Read(const std::vector<Observation>& observations) {
    std::map<size_t, Effect> best;
    for (const Observation& observation : observations) {
      if (observation.site >= sites_.size()) continue;
      Effect effect = EffectOf(observation);
      const auto score = [](const Effect& e) { return (e.traced ? 2 : 0) + (e.MovesShape() ? 1 : 0); };
      const auto it = best.find(observation.site);
      if (it == best.end() || score(effect) > score(it->second)) best[observation.site] = std::move(effect);
    }
    for (auto& [site, effect] : best) effects_.push_back(std::move(effect));
  }

  Grouping Run() {
    std::vector<const Effect*> loose;
    for (const Effect& effect : effects_) Sort(effect, loose);
    const size_t first_loose_group = result_.groups.size();
    for (const auto& members : Connect(loose)) AddGroup(members);
    Tie(first_loose_group);
    for (size_t i = 0; i < result_.groups.size(); ++i) AddBodyLiterals(result_.groups[i], groups_members_[i]);
    AddInsideKernel();
    MakeNamesUnique();
    return std::move(result_);
  }

 private:
  Effect EffectOf(const Observation& observation) const {
    Effect effect;
    effect.site = observation.site;
    effect.before = sites_[observation.site].value;
    effect.after = observation.value;
    effect.traced = observation.traced;
    effect.observation = &observation;
    const auto changes = CompareCalls(base_, observation.calls);
    effect.structural = !changes || (observation.traced && observation.calls.size() != base_.size());
    if (effect.structural) return effect;
    for (const SlotChange& change : *changes) {
      if (change.slot.kind == Slot::Kind::kVmemLimit) {
        effect.moves_limit = true;
        effect.limit_call = change.slot.call;
      } else if (change.slot.kind != Slot::Kind::kArray) {
        effect.changes.push_back(change);
      }
    }
    effect.kernel_changed = observation.traced && KernelsDiffer(base_, observation.calls);
    return effect;
  }

  std::string Where(const Effect& effect) const {
    const TunableSite& site = sites_[effect.site];
    return site.file + ":" + std::to_string(site.position.line) + ": " + site.context + " (" + site.text + ")";
  }

  void Sort(const Effect& effect, std::vector<const Effect*>& loose) {
    if (effect.structural) {
      result_.notes.push_back(Where(effect) + " changes the form or the number of the kernels");
      return;
    }
    if (effect.moves_limit && !effect.MovesShape()) {
      result_.vmem_limit_sites.emplace_back(effect.site, effect.limit_call);
      return;
    }
    if (!effect.MovesShape()) {
      (effect.Moves(Slot::Kind::kScratch) ? scratch_only_ : inert_).push_back(&effect);
      return;
    }
    if (MovesOnlyUncut(effect)) return;
    if (!RoleOf(effect)) {
      result_.notes.push_back(Where(effect) + " moves grid or blocks by no simple rule");
      return;
    }
    if (effect.traced && effect.Moves(Slot::Kind::kBlock) && Consistent(base_, effect.observation->calls)) {
      const Hypothesis hypothesis = MakeHypothesis({&effect}, "moves grid and blocks together", effect.after);
      if (auto parameter = Settle(hypothesis, base_, true, effect.observation->calls)) {
        SiteGroup group;
        group.name = parameter->name;
        group.hypotheses.push_back(hypothesis);
        group.settled = *std::move(parameter);
        result_.groups.push_back(std::move(group));
        return;
      }
    }
    loose.push_back(&effect);
  }

  // Whole dimensions that no grid axis cuts, such as the 1 of a (1, d) block: nothing to choose there.
  bool MovesOnlyUncut(const Effect& effect) const {
    return std::all_of(effect.changes.begin(), effect.changes.end(), [&](const SlotChange& change) {
      if (change.slot.kind != Slot::Kind::kBlock) return false;
      const DimUse& use = uses_[change.slot.call][change.slot.index][change.slot.dim];
      const int64_t extent = base_[change.slot.call].blocks[change.slot.index].array.dims[change.slot.dim];
      return use.known && use.axes.empty() && change.before >= extent;
    });
  }

  // Name of what a slot cuts: the grid axis for grid bounds and for blocks that it indexes, else the dimension itself.
  std::pair<int, int> AxisKey(const Slot& slot) const {
    if (slot.kind == Slot::Kind::kGrid) return {slot.call, slot.index};
    const DimUse& use = uses_[slot.call][slot.index][slot.dim];
    if (use.identity_axis >= 0) return {slot.call, use.identity_axis};
    if (use.axes.size() == 1) return {slot.call, *use.axes.begin()};
    return {slot.call, 1000 + slot.index * 16 + slot.dim};
  }

  std::vector<std::vector<const Effect*>> Connect(const std::vector<const Effect*>& loose) const {
    std::vector<size_t> parent(loose.size());
    std::iota(parent.begin(), parent.end(), size_t{0});
    const auto find = [&](size_t i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    std::map<std::pair<int, int>, size_t> owner;
    for (size_t i = 0; i < loose.size(); ++i) {
      for (const SlotChange& change : loose[i]->changes) {
        if (change.slot.kind == Slot::Kind::kScratch) continue;
        const auto [it, is_new] = owner.emplace(AxisKey(change.slot), i);
        if (!is_new) parent[find(i)] = find(it->second);
      }
    }
    std::map<size_t, std::vector<const Effect*>> sets;
    for (size_t i = 0; i < loose.size(); ++i) sets[find(i)].push_back(loose[i]);
    std::vector<std::vector<const Effect*>> result;
    result.reserve(sets.size());
    for (auto& [root, members] : sets) result.push_back(std::move(members));
    return result;
  }

  // The block size that stands for the group.
  int64_t CurrentValue(const std::vector<const Effect*>& members) const {
    if (members.size() == 1 && RoleOf(*members[0]) == Member::Role::kBlock) return members[0]->before;
    for (const Effect* effect : members) {
      for (const SlotChange& change : effect->changes) {
        if (change.slot.kind == Slot::Kind::kBlock) return change.before;
      }
    }
    for (const Effect* effect : members) {
      for (const SlotChange& change : effect->changes) {
        if (change.slot.kind != Slot::Kind::kGrid) continue;
        const auto& uses = uses_[change.slot.call];
        for (size_t b = 0; b < uses.size(); ++b) {
          for (size_t d = 0; d < uses[b].size(); ++d) {
            if (uses[b][d].identity_axis == change.slot.index) {
              return base_[change.slot.call].blocks[b].block[d].size;
            }
          }
        }
      }
    }
    return members[0]->before;
  }

  // ⌈extent / block⌉ steps of a grid axis, with the extent taken from a block that the axis indexes, else from any
  // block of the call that explains the number.
  SlotLaw GridLaw(const Slot& slot, const std::vector<SlotLaw>& sizes, int64_t current,
                  const std::vector<const Effect*>& members) const {
    const int64_t steps = SlotValue(slot, base_);
    for (const bool identity : {true, false}) {
      for (const SlotLaw& law : sizes) {
        if (law.slot.kind != Slot::Kind::kBlock || law.slot.call != slot.call) continue;
        const DimUse& use = uses_[slot.call][law.slot.index][law.slot.dim];
        if (identity && use.identity_axis != slot.index) continue;
        const int64_t extent = base_[slot.call].blocks[law.slot.index].array.dims[law.slot.dim];
        const int64_t block = SlotValue(law.slot, base_);
        if (extent < 1 || block < 1) continue;
        if (steps % CeilDiv(extent, block) != 0) continue;
        if (!identity && !Explains(slot, extent, block, members)) continue;
        return {slot, true, law.num, law.den, extent};
      }
    }
    return {slot, true, 1, 1, std::max<int64_t>(steps, 1) * current};
  }

  // Whether the observed changes of a grid bound are those of a factor ⌈extent / block⌉.
  static bool Explains(const Slot& slot, int64_t extent, int64_t block, const std::vector<const Effect*>& members) {
    for (const Effect* effect : members) {
      for (const SlotChange& change : effect->changes) {
        if (change.slot != slot) continue;
        if (RoleOf(*effect) != Member::Role::kBlock || block * effect->after % effect->before != 0) return false;
        const int64_t other = block * effect->after / effect->before;
        if (change.after * CeilDiv(extent, block) != change.before * CeilDiv(extent, std::max<int64_t>(other, 1))) {
          return false;
        }
      }
    }
    return true;
  }

  Parameter MakeParameter(const std::vector<const Effect*>& members) const {
    Parameter parameter;
    parameter.current = CurrentValue(members);
    std::set<Slot> slots;
    for (const Effect* effect : members) {
      for (const SlotChange& change : effect->changes) slots.insert(change.slot);
    }
    for (const Slot& slot : slots) {
      if (slot.kind == Slot::Kind::kGrid) continue;
      const int64_t size = SlotValue(slot, base_);
      const int64_t divisor = std::gcd(size, parameter.current);
      parameter.laws.push_back({slot, false, size / divisor, parameter.current / divisor, 0});
    }
    std::set<int64_t> extents;
    const std::vector<SlotLaw> sizes = parameter.laws;
    for (const Slot& slot : slots) {
      if (slot.kind == Slot::Kind::kBlock) {
        const DimUse& use = uses_[slot.call][slot.index][slot.dim];
        if (use.identity_axis >= 0) parameter.axes.emplace(slot.call, use.identity_axis);
        if (!use.known) parameter.reduction = true;  // prefetched ids may select one block again and again
        extents.insert(base_[slot.call].blocks[slot.index].array.dims[slot.dim]);
      }
      if (slot.kind != Slot::Kind::kGrid) continue;
      parameter.axes.emplace(slot.call, slot.index);
      parameter.laws.push_back(GridLaw(slot, sizes, parameter.current, members));
    }
    parameter.extents.assign(extents.begin(), extents.end());
    for (const SlotLaw& law : sizes) {
      if (law.slot.kind != Slot::Kind::kBlock) continue;
      const int64_t extent = base_[law.slot.call].blocks[law.slot.index].array.dims[law.slot.dim];
      const int64_t size = SlotValue(law.slot, base_);
      if (size < extent && extent % size != 0) parameter.base_has_tail = true;
    }
    if (parameter.base_has_tail) parameter.tails = TailSupport::kRoundsUp;
    for (const auto& [call, axis] : parameter.axes) {
      if (!OutputAxes(base_[call]).contains(axis)) parameter.reduction = true;
    }
    for (const Effect* effect : members) parameter.members.push_back(MakeMember(*effect, parameter));
    parameter.name = NameOf(members, parameter);
    return parameter;
  }

  Member MakeMember(const Effect& effect, const Parameter& parameter) const {
    Member member;
    member.site = effect.site;
    const auto role = RoleOf(effect);
    if (!role || *role == Member::Role::kBlock) {
      const int64_t divisor = std::gcd(effect.before, parameter.current);
      member.num = effect.before / divisor;
      member.den = parameter.current / divisor;
      return member;
    }
    member.role = Member::Role::kCount;
    member.extent = effect.before * parameter.current;
    for (const SlotLaw& law : parameter.laws) {
      const int64_t block = law.count ? parameter.current * law.num / law.den : 0;
      if (!law.count || block < 1 || CeilDiv(law.extent, block) != effect.before) continue;
      member.extent = law.extent;
      member.num = law.num;
      member.den = law.den;
      break;
    }
    return member;
  }

  std::string NameOf(const std::vector<const Effect*>& members, const Parameter& parameter) const {
    for (const Effect* effect : members) {
      if (!sites_[effect->site].name.empty()) return sites_[effect->site].name;
    }
    for (const SlotLaw& law : parameter.laws) {
      if (law.slot.kind == Slot::Kind::kBlock) return SlotText(law.slot, base_);
    }
    return parameter.laws.empty() ? "literal" : SlotText(parameter.laws.front().slot, base_);
  }

  // `wanted` 0 lets the value be chosen: one that divides the extents, half of the present one at best.
  Hypothesis MakeHypothesis(const std::vector<const Effect*>& members, std::string why, int64_t wanted = 0) const {
    Hypothesis hypothesis;
    hypothesis.parameter = MakeParameter(members);
    hypothesis.why = std::move(why);
    SetTestValue(hypothesis, wanted);
    return hypothesis;
  }

  void SetTestValue(Hypothesis& hypothesis, int64_t wanted) const {
    const Parameter& parameter = hypothesis.parameter;
    const int64_t v = parameter.current;
    // A member that counts blocks is given as a number of blocks; V is what that makes of it.
    std::vector<int64_t> values;
    if (wanted > 0 && parameter.members.size() == 1) {
      const Member& member = parameter.members.front();
      if (member.role == Member::Role::kBlock)
        values.push_back(wanted * member.den / member.num);
      else
        values.push_back(std::max<int64_t>(1, member.extent * member.den / (wanted * member.num)));
    } else {
      for (const int64_t value : {v / 2, v * 2, v * 4, v / 4, v * 3}) {
        if (value >= 1) values.push_back(value);
      }
    }
    for (const bool divides : {true, false}) {
      for (const int64_t value : values) {
        if (value == v && wanted == 0) continue;
        const auto site_values = SiteValues(parameter, value);
        const auto expected = Substitute(base_, {parameter}, {value});
        if (!site_values || !expected) continue;
        const bool fits = std::all_of(parameter.laws.begin(), parameter.laws.end(), [&](const SlotLaw& law) {
          return !law.count || (law.extent * law.den) % (value * law.num) == 0;
        });
        if (divides && !fits) continue;
        hypothesis.test_value = value;
        hypothesis.site_values = *site_values;
        hypothesis.expected = *expected;
        return;
      }
    }
  }

  // A hypothesis is worth a trace when it can be written down and was not traced already.
  bool Worth(const Hypothesis& hypothesis, const std::vector<Hypothesis>& others) const {
    if (hypothesis.test_value == 0) return false;
    if (hypothesis.site_values.size() == 1) {
      for (const Effect& effect : effects_) {
        if (effect.site == hypothesis.site_values[0].first && effect.after == hypothesis.site_values[0].second) {
          return effect.traced && Consistent(base_, effect.observation->calls);
        }
      }
    }
    return std::none_of(others.begin(), others.end(),
                        [&](const Hypothesis& other) { return other.site_values == hypothesis.site_values; });
  }

  void AddGroup(const std::vector<const Effect*>& members) {
    SiteGroup group;
    group.hypotheses = LooseHypotheses(members, "");
    const Parameter parameter = MakeParameter(members);
    group.name = parameter.name;
    // Kept even when it has no hypothesis yet: literals of the kernel's body may add some.
    groups_members_[result_.groups.size()] = members;
    result_.groups.push_back(std::move(group));
  }

  std::vector<Hypothesis> LooseHypotheses(const std::vector<const Effect*>& members, const std::string& what) const {
    std::vector<Hypothesis> hypotheses;
    const Parameter parameter = MakeParameter(members);
    const auto add = [&](const std::vector<const Effect*>& extra, const std::string& why) {
      std::vector<const Effect*> all = members;
      all.insert(all.end(), extra.begin(), extra.end());
      Hypothesis hypothesis = MakeHypothesis(all, what + why);
      if (Worth(hypothesis, hypotheses)) hypotheses.push_back(std::move(hypothesis));
    };
    const auto matched = ScratchOf(parameter, /*by_shape=*/true);
    const auto equal = ScratchOf(parameter, /*by_shape=*/false);
    if (!matched.empty()) add(matched, "places of one grid axis, and scratch of the same shape");
    add({}, "places of one grid axis");
    if (!equal.empty()) add(equal, "places of one grid axis, and scratch of the same size");
    return hypotheses;
  }

  // Sites that move only scratch, of a size that is one of the parameter's blocks. By shape: the buffer has the shape
  // of a block, and the dimension is the one that the parameter moves there.
  std::vector<const Effect*> ScratchOf(const Parameter& parameter, bool by_shape) const {
    std::vector<const Effect*> found;
    for (const Effect* effect : scratch_only_) {
      const bool fits = std::any_of(effect->changes.begin(), effect->changes.end(), [&](const SlotChange& change) {
        return std::any_of(parameter.laws.begin(), parameter.laws.end(), [&](const SlotLaw& law) {
          if (law.slot.kind != Slot::Kind::kBlock || law.slot.call != change.slot.call) return false;
          if (SlotValue(law.slot, base_) != change.before) return false;
          return !by_shape || SamePlace(law.slot, change.slot);
        });
      });
      if (fits) found.push_back(effect);
    }
    return found;
  }

  // Whether a scratch buffer has the shape of an output block (squeezed dimensions aside) and `scratch` is the
  // dimension that corresponds to `block`.
  bool SamePlace(const Slot& block, const Slot& scratch) const {
    const BlockMapping& mapping = base_[block.call].blocks[block.index];
    if (!mapping.is_output) return false;
    std::vector<int64_t> shape;
    int position = -1;
    for (size_t d = 0; d < mapping.block.size(); ++d) {
      if (mapping.block[d].kind == BlockDim::Kind::kSqueezed) continue;
      if (static_cast<int>(d) == block.dim) position = static_cast<int>(shape.size());
      shape.push_back(mapping.block[d].size);
    }
    const auto& dims = base_[scratch.call].scratch[scratch.index].dims;
    return position == scratch.dim && dims == shape;
  }

  // Literals without an effect on grid and blocks that stand for one of the parameter's sizes: those that changed the
  // kernel's body or broke its trace first (`loud`), then those that nothing showed of (asserts, docs of shapes).
  std::vector<const Effect*> BodyLiterals(const Parameter& parameter, bool loud) const {
    std::vector<const Effect*> found;
    for (const Effect* effect : inert_) {
      const bool is_loud = !effect->traced || effect->kernel_changed;
      if (is_loud != loud || sites_[effect->site].priority > 2) continue;
      const bool equal = effect->before == parameter.current ||
                         std::any_of(parameter.laws.begin(), parameter.laws.end(), [&](const SlotLaw& law) {
                           return law.slot.kind == Slot::Kind::kBlock && SlotValue(law.slot, base_) == effect->before;
                         });
      if (equal) found.push_back(effect);
    }
    return found;
  }

  // `members` is empty for a group that its probe settled.
  void AddBodyLiterals(SiteGroup& group, const std::vector<const Effect*>& members) {
    std::vector<Hypothesis> bases = group.hypotheses;
    if (bases.empty() && !members.empty()) bases.push_back(MakeHypothesis(members, "places of one grid axis"));
    for (const bool quiet : {false, true}) {
      for (const Hypothesis& start : bases) {
        auto extra = BodyLiterals(start.parameter, /*loud=*/true);
        if (quiet) {
          const auto more = BodyLiterals(start.parameter, /*loud=*/false);
          if (more.empty()) continue;
          extra.insert(extra.end(), more.begin(), more.end());
        }
        if (extra.empty()) continue;
        Hypothesis hypothesis;
        hypothesis.parameter = start.parameter;
        for (const Effect* effect : extra) hypothesis.parameter.members.push_back(MakeMember(*effect, start.parameter));
        hypothesis.why =
            start.why + (quiet ? ", and all literals of the same value" : ", and literals of the kernel's body");
        SetTestValue(hypothesis, 0);
        if (Worth(hypothesis, group.hypotheses)) group.hypotheses.push_back(std::move(hypothesis));
      }
    }
  }

  // Blocks of one size, written as literals everywhere, can be told apart on the grid but not in the kernel's body. As
  // a last resort they all keep one size.
  void Tie(size_t first) {
    std::map<int64_t, std::vector<size_t>> by_value;
    for (const auto& [index, members] : groups_members_) {
      if (index >= first && !members.empty()) by_value[CurrentValue(members)].push_back(index);
    }
    for (const auto& [value, indices] : by_value) {
      if (indices.size() < 2) continue;
      std::vector<const Effect*> members;
      for (const size_t index : indices) {
        members.insert(members.end(), groups_members_[index].begin(), groups_members_[index].end());
      }
      SiteGroup group;
      group.name = "blocks of " + std::to_string(value);
      group.hypotheses = LooseHypotheses(members, "all " + group.name + ": ");
      for (Hypothesis& hypothesis : group.hypotheses) hypothesis.parameter.name = group.name;
      AddBodyLiterals(group, members);
      if (!group.hypotheses.empty()) result_.fallbacks.push_back({std::move(group), indices});
    }
  }

  // Named sizes that only the kernel's own code or its scratch shows: chunks of manual copies, inner pipelines.
  void AddInsideKernel() {
    for (const auto* list : {&scratch_only_, &inert_}) {
      for (const Effect* effect : *list) {
        const TunableSite& site = sites_[effect->site];
        const bool named = !site.name.empty() && site.priority == 0 && site.kind != SiteKind::kExpression;
        if (!named || !effect->traced || !effect->kernel_changed || IsUsed(effect->site)) continue;
        SiteGroup group;
        Hypothesis hypothesis = MakeHypothesis({effect}, "moves the kernel's own code", effect->after);
        hypothesis.parameter.inside_kernel = true;
        group.name = hypothesis.parameter.name;
        group.settled = hypothesis.parameter;
        group.hypotheses.push_back(std::move(hypothesis));
        result_.groups.push_back(std::move(group));
      }
    }
  }

  bool IsUsed(size_t site) const {
    for (const SiteGroup& group : result_.groups) {
      for (const Hypothesis& hypothesis : group.hypotheses) {
        for (const Member& member : hypothesis.parameter.members) {
          if (member.site == site) return true;
        }
      }
    }
    return false;
  }

  void MakeNamesUnique() {
    std::map<std::string, int> count;
    for (const SiteGroup& group : result_.groups) ++count[group.name];
    std::map<std::string, int> used;
    for (SiteGroup& group : result_.groups) {
      if (count[group.name] > 1) {
        const std::string function = group.hypotheses.empty() || group.hypotheses[0].parameter.members.empty()
                                         ? ""
                                         : sites_[group.hypotheses[0].parameter.members[0].site].function;
        if (!function.empty()) group.name = function + "." + group.name;
      }
      const int repeat = ++used[group.name];
      if (repeat > 1) group.name += " (" + std::to_string(repeat) + ")";
      for (Hypothesis& hypothesis : group.hypotheses) hypothesis.parameter.name = group.name;
      if (group.settled) group.settled->name = group.name;
    }
  }

  const std::vector<TunableSite>& sites_;
  const std::vector<PallasCall>& base_;
  std::vector<std::vector<std::vector<DimUse>>> uses_;  // by call, block, dimension
  std::vector<Effect> effects_;
  std::vector<const Effect*> scratch_only_;
  std::vector<const Effect*> inert_;
  std::map<size_t, std::vector<const Effect*>> groups_members_;
  Grouping result_;
};

}  // namespace

Grouping GroupSites(const std::vector<TunableSite>& sites, const std::vector<PallasCall>& base,
                    const std::vector<Observation>& observations) {
  Grouper grouper(sites, base);
  grouper.Read(observations);
  return grouper.Run();
}

}  // namespace kernelwright::kernels
