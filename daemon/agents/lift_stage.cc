// See lift_stage.h.
#include "daemon/agents/lift_stage.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "daemon/kernels/lift/lift.h"

namespace kernelwright::agents {
namespace {

// The inputs at other sizes: each size has a factor of its own, so that a number that depends on a size, or on a ratio
// of two, shows. Sizes of 1 may be broadcast and stay.
std::vector<kernels::InputSpec> AtOtherSizes(std::vector<kernels::InputSpec> inputs) {
  constexpr std::array<int64_t, 6> kFactors = {2, 3, 5, 7, 11, 13};
  std::map<int64_t, int64_t> scaled;
  for (const kernels::InputSpec& input : inputs) {
    for (int64_t dim : input.dims) {
      if (dim > 1) scaled[dim] = 0;
    }
  }
  size_t next = 0;
  for (auto& [size, other] : scaled) other = size * kFactors[next++ % kFactors.size()];
  for (kernels::InputSpec& input : inputs) {
    for (int64_t& dim : input.dims) {
      if (dim > 1) dim = scaled[dim];
    }
    if (input.kind != kernels::InputSpec::Kind::kStatic) continue;
    const auto value = nlohmann::json::parse(input.static_json, nullptr, false);
    if (!value.is_number_integer()) continue;
    const auto size = scaled.find(value.get<int64_t>());
    // Small numbers are counts and flags more often than sizes.
    if (size != scaled.end() && size->first >= 64) input.static_json = std::to_string(size->second);
  }
  return inputs;
}

// A path beside the function's file that nothing has yet.
std::string ModulePath(const Source& source) {
  const std::filesystem::path folder = std::filesystem::path(source.file).parent_path();
  const std::string stem = source.function.substr(source.function.rfind('.') + 1) + "_kernels";
  for (int i = 1;; ++i) {
    const std::string path = (folder / (stem + (i > 1 ? std::to_string(i) : "") + ".py")).string();
    const bool known =
        std::any_of(source.files.begin(), source.files.end(), [&](const FileText& file) { return file.path == path; });
    std::error_code error;
    if (!known && !std::filesystem::exists(path, error)) return path;
  }
}

}  // namespace

Expected<Lifts> MakeLifts(RunContext& run, Variant& original, const cost::Chip& chip) {
  Lifts lifts;
  ParseFiles(original);
  std::optional<Program> other;
  auto traced = run.toolchain->Trace(
      {original.source, AtOtherSizes(run.frozen.inputs), {chip.name}, true, false, run.compile_limits}, run.stop);
  if (!traced) return Fail(traced.error());
  if (traced->outcome == JobOutcome::kCancelled) return Fail(ErrorKind::kCancelled, "cancelled while tracing");
  if (traced->outcome == JobOutcome::kDone && !traced->error) other = std::move(traced->program);

  const kernels::ProposalContext context{original.files,           original.source.file, original.source.function,
                                         *original.traced.program, run.frozen.inputs,    chip};
  kernels::lift::LiftRequest request{context, original.traced.output_tree, other ? &*other : nullptr, "", false};
  if (run.request.lift_into == "module") {
    request.module_path = ModulePath(original.source);
    std::error_code error;
    request.in_package =
        std::filesystem::exists(std::filesystem::path(original.source.file).parent_path() / "__init__.py", error);
  }
  kernels::Proposals proposals = kernels::lift::ProposeLifts(request);
  lifts.refusals = std::move(proposals.refusals);
  for (const kernels::Proposal& proposal : proposals.proposals) {
    auto variant = MakeVariant(run, original, proposal, chip.name);
    if (!variant && variant.error().kind() != ErrorKind::kUserCode) return Fail(variant.error());
    if (!variant) {
      lifts.refusals.push_back({proposal.rule, proposal.what + ": " + variant.error().message(), proposal.place});
      continue;
    }
    auto made = std::make_unique<Variant>(*std::move(variant));
    const Status found = Discover(run, *made, chip.name, [&](size_t done, size_t total) {
      run.Emit("progress", ProgressPayload("", "planning", done, total, 0, -1));
    });
    if (!found.ok()) return Fail(found);
    lifts.variants.push_back(std::move(made));
  }
  return lifts;
}

}  // namespace kernelwright::agents
