// What parameters mean in numbers: substitution, edits, and the tests that settle a hypothesis; see params.h.
// How sites are put together is in grouping.cc.
#include "daemon/kernels/params.h"

#include <algorithm>
#include <map>

namespace kernelwright::kernels {
namespace {

// V · num / den when it is a whole number ≥ 1.
std::optional<int64_t> Scale(int64_t value, int64_t num, int64_t den) {
  if (value <= 0 || num <= 0 || den <= 0 || value > (int64_t{1} << 62) / num || value * num % den != 0) {
    return std::nullopt;
  }
  return value * num / den;
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::optional<int64_t> Steps(const SlotLaw& law, int64_t value) {
  const auto block = Scale(value, law.num, law.den);
  if (!block) return std::nullopt;
  return CeilDiv(law.extent, *block);
}

}  // namespace

std::vector<int64_t> ProbeValues(int64_t value) {
  std::vector<int64_t> values;
  // Half of a block divides what the block divides; double may reach beyond the operand.
  if (value % 2 == 0) values.push_back(value / 2);
  values.push_back(value * 2);
  return values;
}

bool ProbeAgain(const std::vector<PallasCall>& base, const Observation& observation) {
  if (observation.traced) return false;
  const auto changes = CompareCalls(base, observation.calls);
  return !changes || changes->empty();
}

std::optional<std::vector<std::pair<size_t, int64_t>>> SiteValues(const Parameter& parameter, int64_t value) {
  std::vector<std::pair<size_t, int64_t>> values;
  for (const Member& member : parameter.members) {
    auto number = Scale(value, member.num, member.den);
    if (number && member.role == Member::Role::kCount) number = CeilDiv(member.extent, *number);
    if (!number) return std::nullopt;
    values.emplace_back(member.site, *number);
  }
  return values;
}

std::optional<std::vector<PallasCall>> Substitute(const std::vector<PallasCall>& base,
                                                  const std::vector<Parameter>& parameters,
                                                  const std::vector<int64_t>& values) {
  // A slot that several parameters move takes the product of their ratios (one grid axis over two dimensions).
  struct Ratio {
    int64_t before = 1;
    int64_t after = 1;
  };
  std::map<Slot, Ratio> ratios;
  for (size_t p = 0; p < parameters.size() && p < values.size(); ++p) {
    for (const SlotLaw& law : parameters[p].laws) {
      const auto before =
          law.count ? Steps(law, parameters[p].current) : Scale(parameters[p].current, law.num, law.den);
      const auto after = law.count ? Steps(law, values[p]) : Scale(values[p], law.num, law.den);
      if (!before || !after) return std::nullopt;
      Ratio& ratio = ratios[law.slot];
      ratio.before *= *before;
      ratio.after *= *after;
    }
  }
  std::vector<PallasCall> calls = base;
  for (const auto& [slot, ratio] : ratios) {
    const auto value = Scale(SlotValue(slot, base), ratio.after, ratio.before);
    if (!value) return std::nullopt;
    SetSlot(slot, *value, calls);
  }
  return calls;
}

Expected<Parameter> Settle(const Hypothesis& hypothesis, const std::vector<PallasCall>& base, bool traced,
                           const std::vector<PallasCall>& observed) {
  const std::string where = hypothesis.parameter.name;
  if (!traced) return Fail(ErrorKind::kUserCode, "the changed function does not trace", where);
  if (auto why = WhyInconsistent(base, observed)) return Fail(ErrorKind::kUserCode, *why, where);
  const auto differences = CompareCalls(hypothesis.expected, observed);
  if (!differences) return Fail(ErrorKind::kUserCode, "the kernels changed their form", where);
  Parameter parameter = hypothesis.parameter;
  for (const SlotChange& change : *differences) {
    switch (change.slot.kind) {
      case Slot::Kind::kGrid:
      case Slot::Kind::kBlock:
        return Fail(ErrorKind::kUserCode,
                    SlotText(change.slot, base) + " became " + std::to_string(change.after) + " instead of " +
                        std::to_string(change.before),
                    where);
      case Slot::Kind::kScratch: {
        // Scratch may follow in a way that no single site showed; it is believed when it scales.
        const int64_t original = SlotValue(change.slot, base);
        std::erase_if(parameter.laws, [&](const SlotLaw& law) { return law.slot == change.slot; });
        if (change.after == original) break;
        if (Scale(hypothesis.test_value, original, parameter.current) != change.after) {
          return Fail(ErrorKind::kUserCode, SlotText(change.slot, base) + " does not scale with the block", where);
        }
        parameter.laws.push_back({change.slot, false, original, parameter.current, 0});
        break;
      }
      case Slot::Kind::kArray:
      case Slot::Kind::kVmemLimit:
        break;
    }
  }
  return parameter;
}

std::optional<int64_t> TailProbe(const Parameter& parameter, const std::vector<PallasCall>& base) {
  const int64_t v = parameter.current;
  for (const int64_t value : {3 * v, 3 * v / 2, 3 * v / 4, 5 * v, 5 * v / 4, 7 * v, v + 8, v - 8, v - 1}) {
    if (value < 1 || value == v || !SiteValues(parameter, value)) continue;
    const auto calls = Substitute(base, {parameter}, {value});
    if (!calls) continue;
    bool has_tail = false;
    bool fits = true;
    for (const SlotLaw& law : parameter.laws) {
      if (!law.count) continue;
      const auto block = Scale(value, law.num, law.den);
      if (!block || *block > law.extent) fits = false;
      if (block && law.extent % *block != 0) has_tail = true;
    }
    if (has_tail && fits) return value;
  }
  return std::nullopt;
}

void ObserveTails(Parameter& parameter, int64_t value, const std::vector<PallasCall>& base, bool traced,
                  const std::vector<PallasCall>& observed) {
  parameter.tails = TailSupport::kDivisors;
  if (!traced || !Consistent(base, observed)) return;
  const auto expected = Substitute(base, {parameter}, {value});
  if (!expected) return;
  const auto differences = CompareCalls(*expected, observed);
  if (!differences) return;
  const bool as_expected = std::none_of(differences->begin(), differences->end(), [](const SlotChange& change) {
    return change.slot.kind == Slot::Kind::kGrid || change.slot.kind == Slot::Kind::kBlock;
  });
  if (as_expected) parameter.tails = TailSupport::kRoundsUp;
}

Expected<std::vector<TextEdit>> ParameterEdits(const std::vector<TunableSite>& sites,
                                               const std::vector<Parameter>& parameters,
                                               const std::vector<int64_t>& values) {
  std::map<size_t, int64_t> wanted;
  for (size_t p = 0; p < parameters.size() && p < values.size(); ++p) {
    const auto numbers = SiteValues(parameters[p], values[p]);
    if (!numbers) {
      return Fail(ErrorKind::kInternal, std::to_string(values[p]) + " gives no whole numbers in the source",
                  parameters[p].name);
    }
    for (const auto& [site, number] : *numbers) {
      const auto [it, is_new] = wanted.emplace(site, number);
      if (!is_new && it->second != number) {
        return Fail(ErrorKind::kConflict, "two parameters want different values in one place",
                    sites[site].file + ":" + std::to_string(sites[site].position.line));
      }
    }
  }
  std::vector<TextEdit> edits;
  for (const auto& [site, number] : wanted) {
    if (number != sites[site].value) edits.push_back(IntegerEdit(sites[site], number));
  }
  return edits;
}

}  // namespace kernelwright::kernels
