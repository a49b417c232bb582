// See check_shapes.h.
#include "daemon/agents/check_shapes.h"

#include <algorithm>
#include <utility>

#include "daemon/kernels/shapes.h"

namespace kernelwright::agents {
namespace {

constexpr int64_t kMinBlocks = 2;                   // per grid axis: the second block shows what the first hides
constexpr int64_t kMaxElements = int64_t{1} << 25;  // of all inputs of a check: minutes in the interpreter
constexpr const char* kTails = "tails: ";           // in the name of a shape made to have partial blocks

void ReplaceCalls(Graph& graph, const std::vector<PallasCall>& calls, size_t& next) {
  for (Operation& operation : graph.operations) {
    for (PallasCall& call : operation.pallas) {
      if (next < calls.size()) {
        call.grid = calls[next].grid;
        for (size_t i = 0; i < std::min(call.blocks.size(), calls[next].blocks.size()); ++i) {
          call.blocks[i].block = calls[next].blocks[i].block;
        }
      }
      ++next;
    }
    for (Graph& region : operation.regions) ReplaceCalls(region, calls, next);
  }
}

Expected<std::string> WhyNot(const CheckShape& shape, const FrozenReference& frozen, const std::vector<FileText>& files,
                             const std::vector<PallasCall>& full, const std::string& chip, Toolchain& toolchain,
                             const Limits& limits, std::stop_token stop) {
  const Source source{frozen.original.file, frozen.original.function, files};
  auto report = toolchain.Trace({source, shape.inputs, {chip}, false, false, limits}, std::move(stop));
  if (!report) return Fail(report.error());
  if (report->outcome == JobOutcome::kCancelled) return Fail(ErrorKind::kCancelled, "the check was cancelled");
  if (report->outcome != JobOutcome::kDone) {
    return "tracing at " + shape.name + " ended by " + JobOutcomeName(report->outcome);
  }
  if (report->error) {
    return "at " + shape.name + ": " + report->error->message.substr(0, report->error->message.find('\n'));
  }
  if (shape.name.starts_with(kTails) || kernels::CoversFullShape(report->calls_seen, full, kMinBlocks)) return "";
  return "at " + shape.name + " some grid axis has fewer than two blocks, or other tails than at full size";
}

}  // namespace

std::vector<CheckShape> ProposeCheckShapes(const std::vector<kernels::InputSpec>& inputs, Program& program,
                                           const std::vector<PallasCall>& calls, bool with_tails) {
  size_t next = 0;
  ReplaceCalls(program.main, calls, next);
  kernels::ShapeOptions options;
  options.min_blocks = kMinBlocks;
  options.max_elements = kMaxElements;
  std::vector<CheckShape> shapes;
  std::vector<CheckShape> tails;
  for (const auto& classes : {kernels::DimClassesByAxis(inputs, program), kernels::DimClassesBySize(inputs, program)}) {
    const kernels::ShapeLadder ladder = kernels::ProposeShapes(inputs, classes, options);
    for (const kernels::ReducedShape& shape : ladder.shapes) {
      if (shape.elements <= kMaxElements) shapes.push_back({kernels::FormatInputs(shape.inputs), shape.inputs});
    }
    if (with_tails && ladder.with_tails && ladder.with_tails->elements <= kMaxElements) {
      tails.push_back({kTails + kernels::FormatInputs(ladder.with_tails->inputs), ladder.with_tails->inputs});
    }
  }
  shapes.insert(shapes.end(), tails.begin(), tails.end());
  return shapes;
}

void AddToLadder(const std::vector<CheckShape>& shapes, std::vector<CheckShape>& ladder) {
  for (const CheckShape& shape : shapes) {
    const bool known =
        std::any_of(ladder.begin(), ladder.end(), [&](const CheckShape& other) { return other.name == shape.name; });
    if (!known) ladder.push_back(shape);
  }
}

Expected<ShapeChoice> ChooseShapes(const FrozenReference& frozen, const std::vector<CheckShape>& proposed,
                                   const std::vector<FileText>& files, const std::vector<PallasCall>& full,
                                   const std::string& chip, Toolchain& toolchain, const Limits& limits,
                                   std::stop_token stop) {
  ShapeChoice choice;
  for (const CheckShape& shape : proposed) {
    const bool is_tails = shape.name.starts_with(kTails);
    // One shape that stands for the full size, then at most one with tails beside it.
    if (is_tails ? choice.shapes.size() != 1 : !choice.shapes.empty()) continue;
    const bool frozen_shape = std::any_of(frozen.ladder.begin(), frozen.ladder.end(),
                                          [&](const CheckShape& other) { return other == shape; });
    if (!frozen_shape) continue;
    auto why = WhyNot(shape, frozen, files, full, chip, toolchain, limits, stop);
    if (!why) return Fail(why.error());
    if (why->empty()) {
      choice.shapes.push_back(shape);
    } else if (!is_tails) {
      choice.why_none = *std::move(why);
    }
  }
  if (choice.shapes.empty() && choice.why_none.empty()) {
    choice.why_none = "no reduced shape fits the interpreter's limits";
  }
  return choice;
}

}  // namespace kernelwright::agents
