// See variant.h.
#include "daemon/agents/variant.h"

#include <algorithm>
#include <utility>

#include "daemon/agents/check_shapes.h"

namespace kernelwright::agents {

std::vector<PallasCall> Variant::Calls() const {
  if (discovery) return discovery->base;
  return traced.program ? LocateCalls(traced.program->main).calls : std::vector<PallasCall>();
}

bool Variant::RoundsUp() const {
  return discovery && !discovery->parameters.empty() &&
         std::all_of(discovery->parameters.begin(), discovery->parameters.end(), [](const kernels::Parameter& each) {
           return each.inside_kernel || each.tails == kernels::TailSupport::kRoundsUp;
         });
}

Expected<std::vector<FileText>> ProposedFiles(const Source& parent, const kernels::Proposal& proposal) {
  auto files = EditedFiles(parent, proposal.edits);
  if (!files) return files;
  for (const kernels::NewFile& added : proposal.new_files) {
    const bool known =
        std::any_of(files->begin(), files->end(), [&](const FileText& file) { return file.path == added.path; });
    if (known) return Fail(ErrorKind::kConflict, "the file exists already", added.path);
    files->push_back({added.path, added.text});
  }
  return files;
}

Expected<Variant> MakeVariant(RunContext& run, const Variant& parent, const kernels::Proposal& proposal,
                              const std::string& chip) {
  Variant variant;
  variant.steps = parent.steps;
  variant.steps.push_back(proposal);
  for (const kernels::Proposal& step : variant.steps) variant.what += (variant.what.empty() ? "" : "; ") + step.what;
  variant.check_inputs = proposal.check_inputs.empty() ? parent.check_inputs : proposal.check_inputs;
  auto files = ProposedFiles(parent.source, proposal);
  if (!files) return Fail(files.error());
  variant.source = {parent.source.file, parent.source.function, *std::move(files)};
  auto traced =
      run.toolchain->Trace({variant.source, run.frozen.inputs, {chip}, true, false, run.compile_limits}, run.stop);
  if (!traced) return Fail(traced.error());
  if (traced->outcome == JobOutcome::kCancelled) return Fail(ErrorKind::kCancelled, "cancelled while tracing");
  if (traced->outcome != JobOutcome::kDone) {
    return Fail(ErrorKind::kUserCode, std::string("tracing it ended by ") + JobOutcomeName(traced->outcome));
  }
  if (traced->error) {
    const std::string& text = traced->error->message;
    return Fail(ErrorKind::kUserCode,
                "it cannot be traced: " + traced->error->type + ": " + text.substr(0, text.find('\n')));
  }
  if (!traced->program) return Fail(ErrorKind::kInternal, "the worker returned no program graph", variant.source.file);
  variant.traced = *std::move(traced);
  return variant;
}

Status Discover(RunContext& run, Variant& variant, const std::string& chip,
                const std::function<void(size_t, size_t)>& progress) {
  if (variant.discovery) return {};
  auto discovery = DiscoverParameters(variant.source, run.frozen.inputs, variant.traced, chip, *run.toolchain,
                                      run.compile_limits, run.parallel, progress, run.stop);
  if (!discovery) return discovery.error();
  variant.discovery = *std::move(discovery);
  return {};
}

Expected<const RetuneSpace*> SpaceOf(Variant& variant, const cost::Chip& chip) {
  auto found = variant.spaces.find(chip.name);
  if (found == variant.spaces.end()) {
    auto space = BuildRetuneSpace(*variant.discovery, chip);
    if (!space) return Fail(space.error());
    found = variant.spaces.emplace(chip.name, *std::move(space)).first;
  }
  return &found->second;
}

void ParseFiles(Variant& variant) {
  if (!variant.files.empty()) return;
  for (const FileText& file : variant.source.files) {
    variant.files.push_back(std::make_unique<kernels::SourceFile>(file.path, file.text));
  }
}

std::vector<CheckShape> ShapesOf(const RunContext& run, const Variant& variant, const std::vector<PallasCall>& calls) {
  Program program = *variant.traced.program;
  const std::vector<kernels::InputSpec>& inputs =
      variant.check_inputs.empty() ? run.frozen.inputs : variant.check_inputs;
  return ProposeCheckShapes(inputs, program, calls, variant.RoundsUp());
}

}  // namespace kernelwright::agents
