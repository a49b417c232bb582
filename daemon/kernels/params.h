// From places in the source to tunable parameters. Each place was changed alone and the function traced again; from how
// grid, blocks and scratch moved, this decides which places have to change together, what they control and which
// values keep the kernel's meaning. Pure: traces are run by the caller.
//
// The order of work: probe every site (ProbeValues, ProbeAgain) → GroupSites → for each group that is not settled,
// trace its hypotheses in order until Settle accepts one → ObserveTails for each parameter → candidates.h.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/kernels/edits.h"
#include "daemon/kernels/program.h"
#include "daemon/kernels/slots.h"
#include "daemon/kernels/tunables.h"

namespace kernelwright::kernels {

// Values to try in a site to see what it does, best first; see ProbeAgain.
std::vector<int64_t> ProbeValues(int64_t value);

// What a trace with one site changed showed. `calls` may be incomplete when the trace failed.
struct Observation {
  size_t site = 0;
  int64_t value = 0;
  bool traced = false;
  std::vector<PallasCall> calls;
};

// Whether the next of the ProbeValues is worth a trace: this one failed and showed no effect (a value that the code
// refuses, for instance).
bool ProbeAgain(const std::vector<PallasCall>& base, const Observation& observation);

// How a site's number follows from the parameter's value V (a block size): kBlock: V · num / den; kCount: the number
// of blocks, ⌈extent / (V · num / den)⌉.
struct Member {
  enum class Role { kBlock, kCount };
  size_t site = 0;
  Role role = Role::kBlock;
  int64_t num = 1;
  int64_t den = 1;
  int64_t extent = 0;  // kCount
};

// How a slot follows from V: sizes are V · num / den; grid bounds carry a factor ⌈extent / (V · num / den)⌉.
struct SlotLaw {
  Slot slot;
  bool count = false;
  int64_t num = 1;
  int64_t den = 1;
  int64_t extent = 0;  // count
};

enum class TailSupport {
  kUnknown,   // not observed; treated as kDivisors
  kDivisors,  // the block has to divide the extents (`//`, asserts)
  kRoundsUp,  // the grid rounds up, so the last block may be partial
};

struct Parameter {
  std::string name;             // "bm", or a description of what it cuts ("rows of x_ref")
  std::vector<Member> members;  // sites that change together
  int64_t current = 0;          // V of the original
  std::vector<SlotLaw> laws;
  std::set<std::pair<int, int>> axes;  // (call, grid axis) that it cuts
  std::vector<int64_t> extents;        // distinct extents of the operands that its blocks cut
  bool reduction = false;              // cuts an axis on which output blocks are revisited
  bool base_has_tail = false;          // the original's block does not divide an extent
  bool inside_kernel = false;          // moves only scratch or the kernel's own code: no grid or block shows its effect
  TailSupport tails = TailSupport::kUnknown;
};

// A set of sites proposed to change together, and what a trace with `site_values` must show.
struct Hypothesis {
  Parameter parameter;
  int64_t test_value = 0;
  std::vector<std::pair<size_t, int64_t>> site_values;
  std::vector<PallasCall> expected;  // grids, blocks and scratch only; kernel bodies are the original's
  std::string why;                   // "sites of grid axis 0", "with scratch of the same shape", …
};

struct SiteGroup {
  std::string name;
  std::vector<Hypothesis> hypotheses;  // to be traced in order
  // Set when the probe of a single site already proves hypotheses[0]. The later hypotheses then add literals of the
  // kernel's body with the same value: use them when candidates of the first compute wrong values.
  std::optional<Parameter> settled;
};

// Ties together blocks of one size whose literals in the kernel's body cannot be told apart: all keep one size.
struct FallbackGroup {
  SiteGroup group;
  std::vector<size_t> replaces;  // indices of the groups that it stands in for
};

struct Grouping {
  std::vector<SiteGroup> groups;
  // To be traced only when some of the groups that it replaces could not be settled; once settled, none of those
  // counts.
  std::vector<FallbackGroup> fallbacks;
  std::vector<std::pair<size_t, int>> vmem_limit_sites;  // (site, call): integers that set vmem_limit_bytes
  std::vector<std::string> notes;                        // sites that move something but cannot be tuned, and why
};

Grouping GroupSites(const std::vector<TunableSite>& sites, const std::vector<PallasCall>& base,
                    const std::vector<Observation>& observations);

// The parameter, when a trace of a hypothesis succeeded, moved what it should and does the same work; else the reason
// (kUserCode).
Expected<Parameter> Settle(const Hypothesis& hypothesis, const std::vector<PallasCall>& base, bool traced,
                           const std::vector<PallasCall>& observed);

// A value that divides no extent of the parameter, to learn whether the code rounds up; nothing when there is none.
std::optional<int64_t> TailProbe(const Parameter& parameter, const std::vector<PallasCall>& base);
// Sets `tails` from the trace of that value.
void ObserveTails(Parameter& parameter, int64_t value, const std::vector<PallasCall>& base, bool traced,
                  const std::vector<PallasCall>& observed);

// Numbers for the sites of a parameter at V; nothing when one would not be a whole number ≥ 1.
std::optional<std::vector<std::pair<size_t, int64_t>>> SiteValues(const Parameter& parameter, int64_t value);

// The calls that result when the parameters take `values` (one each), without tracing: grids, block and scratch sizes
// are set, kernel bodies stay the original's. Nothing when a size would not be a whole number ≥ 1.
std::optional<std::vector<PallasCall>> Substitute(const std::vector<PallasCall>& base,
                                                  const std::vector<Parameter>& parameters,
                                                  const std::vector<int64_t>& values);

// Edits of all sites of all parameters whose value differs from the present one. kConflict when two parameters want
// different numbers in one site; kInternal when a value gives no whole number.
Expected<std::vector<TextEdit>> ParameterEdits(const std::vector<TunableSite>& sites,
                                               const std::vector<Parameter>& parameters,
                                               const std::vector<int64_t>& values);

}  // namespace kernelwright::kernels
